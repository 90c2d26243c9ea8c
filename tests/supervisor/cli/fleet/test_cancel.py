"""`midwatch cancel` over a real journal."""

import json
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
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Intervention,
    Lifecycle,
    Record,
    TaskTransition,
    Terms,
)
from midwatch_stage.command import midwatch, new_attempt, new_task, printed, read, refused, write
from midwatch_stage.matrix import DATABASES
from midwatch_supervisor.fleet.queue.submission import submit
from midwatch_supervisor.present.assignment import assignments

Capture = pytest.CaptureFixture[str]

CANCELED = TaskTransition(lifecycle=Lifecycle.CANCELED, reason="canceled by ada: too dear")
SPLIT = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)

both = pytest.mark.parametrize("location", DATABASES, indirect=True)


@pytest.fixture(autouse=True)
def _named_by_the_environment(  # pyright: ignore[reportUnusedFunction]
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_JOURNAL", location)
    monkeypatch.setenv("LOGNAME", "ada")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def submitted(journal: Journal, at: datetime) -> Journal:
    """A journal with a run of a fleet: `fix`, and `ship` that depends on it."""
    raw = [
        {"id": "fix", "goal": "g", "acceptance": ["true"]},
        {"id": "ship", "goal": "g", "acceptance": ["true"], "depends_on": ["fix"]},
    ]
    wanted = assignments(TaskFile.model_validate({"tasks": raw}), Path("/"))
    await submit(journal, wanted, source="t.yaml", settings=Settings(), clock=lambda: at)
    return journal


async def begin(journal: Journal, at: datetime, *said: Record, task: int = 1) -> Attempt:
    """The first attempt at a task, of which something is said."""
    attempt = await new_attempt(journal, await journal.task(task))
    if said:
        await write(journal, attempt, at, *said)
    return attempt


async def states(journal: Journal, task: int = 1) -> list[TaskTransition]:
    entries = await journal.entries(task=task, kinds=(TaskTransition,))
    return [each.record for each in entries if isinstance(each.record, TaskTransition)]


@both
async def test_a_task_that_has_not_begun_is_canceled_with_who_and_why(
    submitted: Journal, capsys: Capture
) -> None:
    assert await read(capsys, "cancel", "fix", "--comment", "too dear") == ["canceled fix"]
    assert (await states(submitted))[-1] == CANCELED
    assert [each.lifecycle for each in await states(submitted, 2)] == [Lifecycle.SUBMITTED]


@both
async def test_whole_runs_are_canceled_what_depends_on_others_first(
    submitted: Journal, capsys: Capture
) -> None:
    assert await printed(capsys, "cancel", "--run", "1") == "canceled ship\ncanceled fix\n"
    assert await midwatch("cancel", "--run", "1", "fix", "ship") == 0
    assert capsys.readouterr().out == "ship is over: canceled\nfix is over: canceled\n"
    assert [len(await states(submitted, task)) for task in (1, 2)] == [2, 2]


@both
async def test_an_attempt_under_way_is_stopped_once(
    submitted: Journal, at: datetime, capsys: Capture
) -> None:
    await begin(submitted, at, WORKING)
    assert [await midwatch("cancel", "fix", "--comment", "too dear") for _ in range(2)] == [0, 0]
    (entry,) = await submitted.entries(kinds=(Intervention,))
    assert entry.attempt == 1
    assert entry.record == Intervention(
        action=Action.STOP,
        by=Actor.OPERATOR,
        author="ada",
        message=CANCELED.reason,
        terms=Terms(withdraws=True),
    )
    assert capsys.readouterr().out == (
        f"fix#1: stop sent ({entry.id}); fix ends with it\n"
        f"fix#1 is already being stopped ({entry.id})\n"
    )
    assert [each.lifecycle for each in await states(submitted)] == [Lifecycle.SUBMITTED]


async def test_who_cancels_a_task_whose_process_is_gone_hears_what_must_come_first(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    (raw,) = assignments(
        TaskFile.model_validate({"tasks": [{"id": "fix", "goal": "g", "acceptance": ["true"]}]}),
        Path("/"),
    )
    await new_task(journal, "fix", spec=raw.model_dump_json())
    async with hold_run(journal, 1, lease_seconds=15):
        await begin(journal, at, WORKING)
    (said,) = await read(capsys, "cancel", "fix")
    assert said.endswith(
        "; fix ends with it; no process works on it now: it waits for `midwatch resume --run 1`"
    )


async def test_an_attempt_that_nobody_has_begun_is_canceled_with_its_task(
    submitted: Journal, at: datetime
) -> None:
    await begin(submitted, at)
    assert await midwatch("cancel", "fix", "--comment", "too dear") == 0
    last = (await submitted.entries(attempt=1))[-1].record
    assert last == AttemptTransition(
        lifecycle=Lifecycle.CANCELED, reason=CANCELED.reason, ending=Ending.CANCELED
    )
    assert (await states(submitted))[-1] == CANCELED


@both
async def test_a_canceled_task_is_not_begun_by_who_looked_before(
    submitted: Journal, at: datetime
) -> None:
    await midwatch("cancel", "fix")
    with pytest.raises(StaleIncarnationError, match="task 1 is already canceled"):
        await begin(submitted, at)


@both
async def test_what_moved_since_the_look_is_not_canceled_by_it(
    submitted: Journal, at: datetime
) -> None:
    seen = (await submitted.entries(task=1))[-1].id
    await begin(submitted, at)
    commit = Commit(drafts=(Draft(record=CANCELED, at=at, task=1),))
    assert await submitted.write(commit_unmoved, commit, task=1, after=seen) is None
    assert len(await states(submitted)) == 1


async def test_a_split_task_ends_with_its_parts(
    submitted: Journal, at: datetime, capsys: Capture
) -> None:
    await begin(submitted, at, WORKING, SPLIT)
    assert await midwatch("cancel", "fix") == 1
    assert capsys.readouterr().out == "fix is being split; try again in a moment\n"
    whole = json.loads((await submitted.task(1)).spec)
    for id in (3, 4):
        spec = {**whole, "task": {**whole["task"], "id": f"part-{id}"}, "parent": "fix"}
        await new_task(submitted, f"part-{id}", run=1, spec=json.dumps(spec))
    await begin(submitted, at, WORKING, task=3)
    assert [line.partition(" (")[0] for line in await read(capsys, "cancel", "--run", "1")] == [
        "canceled ship",
        "fix was split: it ends with its parts",
        "canceled part-4",
        "part-3#1: stop sent",
    ]
    assert [each.lifecycle for each in await states(submitted)] == [Lifecycle.SUBMITTED]


async def test_a_dry_run_cancels_nothing(submitted: Journal, at: datetime, capsys: Capture) -> None:
    await begin(submitted, at, WORKING)
    before = await submitted.last_id()
    assert await printed(capsys, "cancel", "--run", "1", "--dry-run") == (
        "would cancel ship\nfix#1: stop would be sent; fix ends with it\n"
    )
    assert await submitted.last_id() == before


async def test_json_says_what_came_of_each(submitted: Journal, capsys: Capture) -> None:
    assert await midwatch("cancel", "fix", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "type": "cancel",
        "run": (await submitted.runs())[0].id,
        "task": "fix",
        "attempt": None,
        "course": "canceled",
        "lifecycle": "canceled",
        "stands": "canceled",
        "intervention": None,
        "already": False,
        "dry_run": False,
    }


async def test_work_that_was_not_checked_is_not_called_completed(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await new_task(journal, "usage")
    over = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.UNCHECKED)
    await begin(journal, at, over, TaskTransition(lifecycle=Lifecycle.COMPLETED), task=task.id)
    assert await read(capsys, "cancel", "--run", "1") == ["usage is over: ended"]


async def test_what_waits_within_a_program_that_is_only_watched_is_left_to_it(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    await new_task(journal)
    assert await midwatch("cancel", "fix") == 1
    assert capsys.readouterr().out.startswith("fix is waiting in the program that works on run 1")
    await begin(journal, at, WORKING)
    assert await midwatch("cancel", "fix") == 0
    assert len(await states(journal)) == 1


async def test_what_waits_in_a_run_of_one_process_is_canceled(submitted: Journal) -> None:
    spec = (await submitted.task(1)).spec
    task = await new_task(submitted, spec=spec)
    said = ("--run", str(task.run), "--comment", "too dear")
    assert await midwatch("cancel", "fix", *said) == 0
    assert (await states(submitted, task.id))[-1] == CANCELED


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
    words: tuple[str, ...], told: str, submitted: Journal, at: datetime, capsys: Capture
) -> None:
    await begin(submitted, at, WORKING)
    assert told in await refused(capsys, "cancel", *words)


async def test_an_attempt_of_an_older_run_is_stopped_or_withdrawn_with_its_run(
    submitted: Journal, at: datetime, capsys: Capture
) -> None:
    await begin(submitted, at, WORKING)
    await new_task(submitted, "fix")
    assert await midwatch("cancel", "fix#1", "--run", "1") == 2
    told = "`midwatch tell fix#1 --run 1 --stop` stops it, and `midwatch cancel fix --run 1`"
    assert told in capsys.readouterr().err


async def test_a_task_that_is_open_in_several_runs_is_withdrawn_in_the_one_that_is_named(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    first, second = [await new_task(journal, "fix", spec="{}") for _ in range(2)]
    over = await new_task(journal, "fix", spec="{}")
    done = Draft(record=CANCELED, at=at, task=over.id)
    await journal.commit(Commit(drafts=(done,)))
    assert await midwatch("cancel", "fix") == 2
    said = f"fix is open in runs {second.run}, {first.run}: name one with --run"
    assert said in capsys.readouterr().err
    assert await midwatch("cancel", "fix", "--run", str(first.run), "--dry-run") in (0, 1)
