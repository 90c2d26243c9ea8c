"""`midwatch cancel` over a real journal."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import commit_unmoved
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    Commit,
    Ending,
    Intervention,
    Lifecycle,
    Record,
    TaskTransition,
    Terms,
)
from midwatch_supervisor.fleet.queue.submission import submit
from midwatch_supervisor.present.assignment import assignments
from midwatch_tests.command import Cli, assignment, midwatch, new_attempt, new_task, write
from midwatch_tests.factories import draft, ended, intervention, task_transition, transition
from midwatch_tests.matrix import DATABASES

CANCELED = task_transition(Lifecycle.CANCELED, reason="canceled by ada: too dear")
WORKING = transition()
DEAR = ("--comment", "too dear")

both = pytest.mark.parametrize("location", DATABASES, indirect=True)
pytestmark = pytest.mark.usefixtures("by_ada", "empty_working_folder")


@pytest.fixture
def empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def fleet_journal(journal: Journal, at: datetime) -> Journal:
    """A journal with a run of a fleet: `fix`, and `ship` that depends on it."""
    raw = [
        {"id": "fix", "goal": "g", "acceptance": ["true"]},
        {"id": "ship", "goal": "g", "acceptance": ["true"], "depends_on": ["fix"]},
    ]
    wanted = assignments(TaskFile.model_validate({"tasks": raw}), Path("/"))
    await submit(journal, wanted, source="t.yaml", settings=Settings(), clock=lambda: at)
    return journal


async def start_attempt(journal: Journal, at: datetime, *records: Record, task: int = 1) -> Attempt:
    """The first attempt at a task, with what is recorded of it."""
    attempt = await new_attempt(journal, await journal.task(task))
    if records:
        await write(journal, attempt, at, *records)
    return attempt


async def read_transitions(journal: Journal, task: int = 1) -> list[TaskTransition]:
    entries = await journal.entries(task=task, kinds=(TaskTransition,))
    return [each.record for each in entries if isinstance(each.record, TaskTransition)]


@both
async def test_a_task_that_has_not_begun_is_canceled_with_who_and_why(
    fleet_journal: Journal, cli: Cli
) -> None:
    (said,) = await cli.ask("cancel", "fix", *DEAR)
    assert said == {
        "type": "cancel",
        "run": 1,
        "task": "fix",
        "attempt": None,
        "course": "canceled",
        "lifecycle": "canceled",
        "stands": "canceled",
        "intervention": None,
        "already": False,
        "dry_run": False,
    }
    assert (await read_transitions(fleet_journal))[-1] == CANCELED
    assert [each.lifecycle for each in await read_transitions(fleet_journal, 2)] == [
        Lifecycle.SUBMITTED
    ]


@both
async def test_whole_runs_are_canceled_what_depends_on_others_first(
    fleet_journal: Journal, cli: Cli
) -> None:
    assert await cli.read("cancel", "--run", "1") == ["canceled ship", "canceled fix"]
    said = await cli.read("cancel", "--run", "1", "fix", "ship")
    assert said == ["ship is over: canceled", "fix is over: canceled"]
    assert [len(await read_transitions(fleet_journal, task)) for task in (1, 2)] == [2, 2]


@both
async def test_an_attempt_under_way_is_stopped_once(
    fleet_journal: Journal, at: datetime, cli: Cli
) -> None:
    await start_attempt(fleet_journal, at, WORKING)
    before = await fleet_journal.last_id()
    assert await cli.read("cancel", "--run", "1", "--dry-run") == [
        "would cancel ship",
        "fix#1: stop would be sent; fix ends with it",
    ]
    assert await fleet_journal.last_id() == before
    first, again = [await cli.said("cancel", "fix", *DEAR) for _ in range(2)]
    (entry,) = await fleet_journal.entries(kinds=(Intervention,))
    order = intervention(Action.STOP, Actor.OPERATOR, author="ada", terms=Terms(withdraws=True))
    assert (entry.attempt, entry.record) == (1, replace(order, message=CANCELED.reason))
    assert first == f"fix#1: stop sent ({entry.id}); fix ends with it\n"
    assert again == f"fix#1 is already being stopped ({entry.id})\n"
    assert [each.lifecycle for each in await read_transitions(fleet_journal)] == [
        Lifecycle.SUBMITTED
    ]


async def test_who_cancels_a_task_whose_process_is_gone_hears_what_must_come_first(
    journal: Journal, at: datetime, cli: Cli
) -> None:
    await new_task(journal, "fix", spec=assignment().model_dump_json())
    async with hold_run(journal, 1, lease_seconds=15):
        await start_attempt(journal, at, WORKING)
    assert (await cli.said("cancel", "fix")).endswith(
        "; fix ends with it; no process works on it now: it waits for `midwatch resume --run 1`\n"
    )


async def test_an_attempt_that_nobody_has_begun_is_canceled_with_its_task(
    fleet_journal: Journal, at: datetime
) -> None:
    await start_attempt(fleet_journal, at)
    assert await midwatch("cancel", "fix", *DEAR) == 0
    last = (await fleet_journal.entries(attempt=1))[-1].record
    assert last == ended(Ending.CANCELED, reason=CANCELED.reason)
    assert (await read_transitions(fleet_journal))[-1] == CANCELED


@both
async def test_a_canceled_task_is_not_begun_by_who_looked_before(
    fleet_journal: Journal, at: datetime
) -> None:
    await midwatch("cancel", "fix")
    with pytest.raises(StaleIncarnationError, match="task 1 is already canceled"):
        await start_attempt(fleet_journal, at)


@both
async def test_what_moved_since_the_look_is_not_canceled_by_it(
    fleet_journal: Journal, at: datetime
) -> None:
    seen = (await fleet_journal.entries(task=1))[-1].id
    await start_attempt(fleet_journal, at)
    commit = Commit(drafts=(draft(CANCELED, attempt=None),))
    assert await fleet_journal.write(commit_unmoved, commit, task=1, after=seen) is None
    assert len(await read_transitions(fleet_journal)) == 1


async def test_a_split_task_ends_with_its_parts(
    fleet_journal: Journal, at: datetime, capsys: pytest.CaptureFixture[str], cli: Cli
) -> None:
    await start_attempt(fleet_journal, at, WORKING, ended(Ending.SPLIT))
    assert await midwatch("cancel", "fix") == 1
    assert capsys.readouterr().out == "fix is being split; try again in a moment\n"
    whole = json.loads((await fleet_journal.task(1)).spec)
    for id in (3, 4):
        spec = {**whole, "task": {**whole["task"], "id": f"part-{id}"}, "parent": "fix"}
        await new_task(fleet_journal, f"part-{id}", run=1, spec=json.dumps(spec))
    await start_attempt(fleet_journal, at, WORKING, task=3)
    assert [line.partition(" (")[0] for line in await cli.read("cancel", "--run", "1")] == [
        "canceled ship",
        "fix was split: it ends with its parts",
        "canceled part-4",
        "part-3#1: stop sent",
    ]
    assert [each.lifecycle for each in await read_transitions(fleet_journal)] == [
        Lifecycle.SUBMITTED
    ]


async def test_work_that_was_not_checked_is_not_called_completed(
    journal: Journal, at: datetime, cli: Cli
) -> None:
    task = await new_task(journal, "usage")
    over = (ended(Ending.UNCHECKED), task_transition(Lifecycle.COMPLETED))
    await start_attempt(journal, at, *over, task=task.id)
    assert await cli.read("cancel", "--run", "1") == ["usage is over: ended"]


async def test_what_waits_within_a_program_that_is_only_watched_is_left_to_it(
    journal: Journal, at: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    await new_task(journal)
    assert await midwatch("cancel", "fix") == 1
    assert capsys.readouterr().out.startswith("fix is waiting in the program that works on run 1")
    await start_attempt(journal, at, WORKING)
    assert await midwatch("cancel", "fix") == 0
    assert len(await read_transitions(journal)) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name tasks, or a whole run with --run"),
        (("nothing",), "there is no task or attempt `nothing`"),
        (("--run", "9"), "there is no run 9"),
        (("fix#1",), "`midwatch tell fix#1 --stop` stops it, and `midwatch cancel fix`"),
    ],
)
async def test_what_cannot_be_meant_is_bad_usage(
    words: tuple[str, ...], told: str, fleet_journal: Journal, at: datetime, cli: Cli
) -> None:
    await start_attempt(fleet_journal, at, WORKING)
    assert told in await cli.refused("cancel", *words)


async def test_of_several_runs_the_one_that_is_named_is_meant(
    fleet_journal: Journal, at: datetime, cli: Cli
) -> None:
    await start_attempt(fleet_journal, at, WORKING)
    spec = (await fleet_journal.task(1)).spec
    second, over = [await new_task(fleet_journal, "fix", spec=spec) for _ in range(2)]
    await fleet_journal.commit(Commit(drafts=(draft(CANCELED, attempt=None, task=over.id),)))
    said = "`midwatch tell fix#1 --run 1 --stop` stops it, and `midwatch cancel fix --run 1`"
    assert said in await cli.refused("cancel", "fix#1", "--run", "1")
    said = f"fix is open in runs {second.run}, 1: name one with --run"
    assert said in await cli.refused("cancel", "fix")
    assert await cli.read("cancel", "fix", "--run", str(second.run), *DEAR) == ["canceled fix"]
    assert (await read_transitions(fleet_journal, second.id))[-1] == CANCELED
    assert len(await read_transitions(fleet_journal)) == 1
