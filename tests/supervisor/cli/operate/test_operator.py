"""`midwatch approve`, `reject` and `tell` over a real journal."""

import re
import shlex
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Change,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Step,
    StepKind,
    TaskTransition,
)
from midwatch_monitor.records.work import EMBEDDED
from midwatch_stage.command import (
    ask,
    midwatch,
    new_attempt,
    new_task,
    printed,
    read,
    refused,
    write,
)
from midwatch_supervisor.cli.operate.approval import settle
from midwatch_supervisor.present.assignment import assignments

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]

HELD = Intervention(action=Action.RESTART, by=Actor.POLICY, needs_approval=True)
PAUSE = Intervention(action=Action.PAUSE, by=Actor.OPERATOR)
PARKED = Change(lifecycle=Lifecycle.INPUT_REQUIRED)
OVER = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.ERROR)


@pytest.fixture
def task_spec() -> str:
    """The specification of a task `fix` as `midwatch run` stores it."""
    tasks = [{"id": "fix", "goal": "Fix it.", "acceptance": ["true"]}]
    file = TaskFile.model_validate({"workers": {"coder": {}}, "tasks": tasks})
    return assignments(file, Path.cwd())[0].model_dump_json()


pytestmark = pytest.mark.usefixtures("by_ada")


async def written(journal: Journal, after: int) -> list[Record]:
    """What was written since, each about the attempt and without a `seq`."""
    entries = await journal.entries(after)
    assert {(entry.task, entry.attempt, entry.seq) for entry in entries} <= {(1, 1, None)}
    return [entry.record for entry in entries]


async def test_who_tells_a_secret_hears_what_the_worker_is_told_instead(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    id = await write(Step(number=7, kind=StepKind.MESSAGE))
    (said,) = await read(capsys, "tell", "fix", "Use sk-proj-" + "a1B2c3D4" * 6)
    (told,) = await written(journal, id)
    assert isinstance(told, Intervention)
    assert "[masked: openai key" in told.message
    assert said == f"fix#1: guidance sent ({id + 1}); secrets in it are masked: {told.message}"


@pytest.mark.parametrize(
    ("command", "state"),
    [("approve", DeliveryState.APPROVED), ("reject", DeliveryState.REJECTED)],
)
async def test_what_waits_for_approval_is_approved_or_rejected(
    journal: Journal, write: Write, capsys: Capture, command: str, state: DeliveryState
) -> None:
    id = await write(Step(number=7, kind=StepKind.MESSAGE), HELD)
    assert await read(capsys, command, str(id)) == [f"{state} restart {id} for fix#1"]
    stamp = Delivery(intervention=id, state=state, step=7, author="ada")
    assert await written(journal, id) == [stamp]


async def test_what_was_waited_for_is_no_reason_once_it_is_answered(
    write: Write, capsys: Capture
) -> None:
    why = "a proposal is waiting for approval"
    parked = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason=why)
    id = await write(HELD, parked) - 1
    shown = await read(capsys, "show", "fix")
    assert [each for each in shown if why in each] == [
        f"status: waits for you: {why}",
        f"attempt 1, fix#1: waits for you: {why}",
    ]
    await midwatch("reject", str(id))
    capsys.readouterr()
    shown = await read(capsys, "show", "fix")
    assert {"status: resuming…", "attempt 1, fix#1: resuming…"} <= {*shown}
    assert why not in "".join(shown)


async def test_the_beginning_of_what_waits_is_enough_while_it_is_unique(
    write: Write, capsys: Capture
) -> None:
    filler = [Step(number=number, kind=StepKind.MESSAGE) for number in range(1, 10)]
    await write(*filler, HELD, HELD)  # entries 1 and 2 are the first states
    assert await refused(capsys, "approve", "1") == (
        "`1` could mean several; waiting for approval: 12 (restart), 13 (restart)\n"
    )
    assert await midwatch("approve", "12") == 0
    assert (await printed(capsys, "approve", "1")).endswith("approved restart 13 for fix#1\n")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        *(
            (
                (HELD, Delivery(intervention=3, state=state)),
                f"restart 3 for fix#1 is already {state}",
            )
            for state in DeliveryState
        ),
        ((PAUSE,), "pause 3 for fix#1 needs no approval: it is being delivered"),
        ((HELD, OVER), "restart 3 for fix#1 comes too late: the attempt is failed"),
    ],
)
async def test_what_does_not_wait_is_neither_approved_nor_rejected(
    journal: Journal, write: Write, capsys: Capture, records: tuple[Record, ...], said: str
) -> None:
    last = await write(*records)
    for command in ("approve", "reject"):
        assert await refused(capsys, command, "3") == f"{said}\n"
    assert await written(journal, last) == []


async def test_a_question_is_answered_and_not_approved(write: Write, capsys: Capture) -> None:
    asked = Intervention(action=Action.ASK_OPERATOR, by=Actor.POLICY)
    await write(asked, Delivery(intervention=3, state=DeliveryState.DELIVERED), PARKED)
    for command in ("approve", "reject"):
        assert await refused(capsys, command, "3") == (
            'ask_operator 3 for fix#1 cannot be approved: `midwatch tell fix "your answer"` '
            "answers it\n"
        )


async def test_a_question_of_an_older_run_is_answered_with_its_run(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    asked = Intervention(action=Action.ASK_OPERATOR, by=Actor.POLICY)
    await write(asked, Delivery(intervention=3, state=DeliveryState.DELIVERED), PARKED)
    await new_task(journal, "fix")
    assert await midwatch("approve", "3") == 2
    assert '`midwatch tell fix --run 1 "your answer"`' in capsys.readouterr().err


async def test_of_two_who_answer_at_the_same_moment_one_hears_what_the_other_said(
    journal: Journal, location: str, write: Write, capsys: Capture
) -> None:
    id = await write(HELD)

    class Slower(Journal):
        async def answer(self, commit: Commit) -> tuple[Entry, ...] | None:
            assert await midwatch("approve", str(id)) == 0
            return await super().answer(commit)

    async with await Slower.open(location) as slower:
        with pytest.raises(UsageError, match=f"restart {id} for fix#1 is already approved"):
            await settle(slower, id, author="eve", agreed=False)
    assert await written(journal, id) == [
        Delivery(intervention=id, state=DeliveryState.APPROVED, author="ada")
    ]


@pytest.mark.parametrize(
    ("argv", "action", "message"),
    [
        (["Look up."], Action.NUDGE, "Look up."),
        (["--pause"], Action.PAUSE, ""),
        (["Enough.", "--stop"], Action.STOP, "Enough."),
        (["Go day by day.", "--restart"], Action.RESTART, "Go day by day."),
    ],
)
async def test_what_is_told_becomes_an_operators_intervention(
    journal: Journal,
    attempt: Attempt,
    capsys: Capture,
    argv: list[str],
    action: Action,
    message: str,
) -> None:
    before = await journal.last_id()
    assert await midwatch("tell", "fix", *argv) == 0
    what = "guidance" if action is Action.NUDGE else action.value
    assert capsys.readouterr().out == f"fix#1: {what} sent ({before + 1})\n"
    told = Intervention(action=action, by=Actor.OPERATOR, author="ada", message=message)
    assert await written(journal, before) == [told]


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        ("", "no process works on it now: it waits for `midwatch resume --run 1`"),
        (EMBEDDED, "its process is gone, and nothing reaches it: `midwatch cancel --run 1`"),
    ],
    ids=["of a task file", "of an agent with a Watch"],
)
async def test_who_speaks_to_an_attempt_whose_process_is_gone_hears_what_must_come_first(
    journal: Journal, capsys: Capture, task_spec: str, spec: str, waits: str
) -> None:
    await new_attempt(journal, await new_task(journal, spec=spec or task_spec))
    async with hold_run(journal, 1, lease_seconds=15):
        assert (await read(capsys, "tell", "fix", "Hello."))[0].endswith(")")
    assert (await read(capsys, "tell", "fix", "Hello."))[0].endswith(f"; {waits}")


@pytest.mark.parametrize(("text", "message"), [([], "Go on."), (["Try b.py."], "Try b.py.")])
@pytest.mark.parametrize("waiting", [PARKED, PAUSE])
async def test_a_paused_attempt_can_be_resumed(
    journal: Journal, text: list[str], message: str, waiting: Record, write: Write
) -> None:
    last = await write(waiting)
    assert await midwatch("tell", "fix#1", *text, "--resume", "--from", "eve") == 0
    told = Intervention(action=Action.RESUME, by=Actor.OPERATOR, author="eve", message=message)
    assert await written(journal, last) == [told]


async def test_a_task_means_its_latest_attempt(
    journal: Journal, attempt: Attempt, write: Write, capsys: Capture
) -> None:
    await write(OVER)
    await new_attempt(journal, await journal.task(attempt.task), 2)
    assert await read(capsys, "tell", "fix", "Look up.", "--dry-run") == [
        "fix#2: guidance would be sent"
    ]


async def test_a_name_means_the_newest_task_that_can_still_be_told_something(
    journal: Journal, attempt: Attempt, at: datetime, write: Write, capsys: Capture
) -> None:
    await write(PARKED)
    task = await new_task(journal)
    await new_attempt(journal, task, 1)
    assert await read(capsys, "tell", "fix", "Look up.", "--dry-run") == [
        "fix#1: guidance would be sent"
    ]
    over = Draft(record=OVER, at=at, task=task.id, attempt=attempt.id + 1)
    await journal.commit(Commit(drafts=(over,)))
    for name in ("fix", "fi", "fix#1"):
        assert await read(capsys, "tell", name, "Look up.", "--dry-run") == [
            "fix#1 of run 1: guidance would be sent"
        ]
        assert await read(capsys, "tell", name, "Anew.", "--restart", "--dry-run") == [
            "fix#1 of run 1: restart would be sent"
        ]
    assert "fix#1 is over: failed" in await refused(capsys, "tell", str(attempt.id + 1), "Look up.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tell", "fix", "Look up."), "fix#1: guidance"),
        (("tell", "fi#1", "--pause"), "fix#1: pause"),
        (("grant", "fix", "--requests", "5"), "fix#1: grant of 5 requests"),
        (("switch", "fix", "openai:other"), "fix#1: switch to openai:other"),
    ],
)
async def test_of_two_runs_with_a_task_of_one_name_the_one_that_is_named_is_meant(
    journal: Journal, attempt: Attempt, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    later = await new_attempt(journal, await new_task(journal), 1)
    before = await journal.last_id()
    for run, of in (("1", attempt), ("2", later)):
        assert (await read(capsys, *words, "--run", run))[0].startswith(f"{said} sent (")
        assert [each.attempt for each in await journal.entries(before)] == [of.id]
        before = await journal.last_id()
    assert "there is no run 3 in " in await refused(capsys, *words, "--run", "3")


async def test_in_a_run_that_is_named_no_other_run_is_looked_at(
    journal: Journal, attempt: Attempt, at: datetime, capsys: Capture
) -> None:
    later = await new_attempt(journal, await new_task(journal), 1)
    over = Draft(record=OVER, at=at, task=later.task, attempt=later.id)
    await journal.commit(Commit(drafts=(over,)))
    assert "fix#1 is over: failed" in await refused(capsys, "tell", "fix", "Look up.", "--run", "2")


@pytest.mark.parametrize("argv", [("tell", "proj", "--stop"), ("grant", "proj#1")])
async def test_of_several_open_tasks_with_one_beginning_none_is_chosen(
    journal: Journal, at: datetime, capsys: Capture, argv: tuple[str, ...]
) -> None:
    first = await new_task(journal, "proj-1a")
    made = await new_attempt(journal, first)
    await new_attempt(journal, await new_task(journal, "proj-2b"))
    assert await refused(capsys, *argv) == "`proj` could mean any of proj-2b, proj-1a\n"
    assert await midwatch("tell", "proj-1a", "--stop", "--dry-run") == 0
    end = TaskTransition(lifecycle=Lifecycle.FAILED)
    over = Draft(record=OVER, at=at, task=first.id, attempt=made.id)
    await journal.commit(Commit(drafts=(over, Draft(record=end, at=at, task=first.id))))
    assert "proj-2b#1" in await printed(capsys, "tell", "proj", "--stop", "--dry-run")


@pytest.mark.parametrize(
    ("records", "argv", "said"),
    [
        ((), [], "give a message, or use --pause, --resume, --stop or --restart"),
        ((), [" "], "give a message, or use --pause, --resume, --stop or --restart"),
        ((), ["--pause", "--stop"], "choose one of --pause, --resume, --stop and --restart"),
        ((), ["--restart"], "say what the next attempt should do differently"),
        ((OVER,), ["No.", "--restart"], "fix: it is not over: it continues by itself"),
        ((), ["--resume"], "fix#1: it is not paused: submitted"),
        ((PARKED,), ["--pause"], "fix#1: it is already paused, or waiting for you"),
        ((PAUSE,), ["--pause"], "fix#1: it is already paused, or waiting for you"),
        ((OVER,), ["Hello."], "fix#1 is over: failed; nothing reaches it any more"),
    ],
)
async def test_what_can_change_nothing_is_bad_usage(
    journal: Journal,
    write: Write,
    capsys: Capture,
    records: tuple[Record, ...],
    argv: list[str],
    said: str,
) -> None:
    if records:
        await write(*records)
    before = await journal.last_id()
    assert await midwatch("tell", "fix", *argv) == 2
    assert capsys.readouterr() == ("", f"{said}\n")
    assert await written(journal, before) == []


async def test_a_task_that_has_not_begun_hears_nothing(journal: Journal, capsys: Capture) -> None:
    await new_task(journal)
    assert await midwatch("tell", "fix", "Hello.") == 2
    told = "fix has no attempt yet; `midwatch cancel fix` cancels it\n"
    assert capsys.readouterr().err == told


async def over_in(journal: Journal, at: datetime, spec: str) -> Attempt:
    """The failed attempt of a failed task."""
    task = await new_task(journal, spec=spec)
    made = await new_attempt(journal, task)
    await write(journal, made, at, Step(number=7, kind=StepKind.MESSAGE), OVER)
    end = TaskTransition(lifecycle=Lifecycle.FAILED)
    await journal.commit(Commit(drafts=(Draft(record=end, at=at, task=task.id),)))
    return made


async def test_a_task_that_is_over_is_begun_again_with_a_note(
    journal: Journal, at: datetime, capsys: Capture, task_spec: str
) -> None:
    made = await over_in(journal, at, task_spec)
    before = await journal.last_id()
    follows = "attempt 2 begins if run 1 is running, or with `midwatch resume --run 1`\n"
    argv = ("tell", "fix", "Go day by day.", "--restart")
    assert await printed(capsys, *argv, "--dry-run") == f"fix: would be begun again: {follows}"
    assert await journal.last_id() == before
    assert await printed(capsys, *argv) == f"fix: begun again: {follows}"
    order = Intervention(
        action=Action.RESTART, by=Actor.OPERATOR, author="ada", message="Go day by day."
    )
    stamp = Delivery(intervention=before + 1, state=DeliveryState.DELIVERED, step=7)
    reason = "begun again by ada: Go day by day."
    state = TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason=reason)
    entries = await journal.entries(before)
    assert [entry.record for entry in entries] == [order, stamp, state]
    assert [entry.attempt for entry in entries] == [made.id, made.id, None]


async def test_who_speaks_to_an_attempt_that_is_over_hears_how_it_is_begun_again(
    journal: Journal, at: datetime, capsys: Capture, task_spec: str
) -> None:
    await over_in(journal, at, task_spec)
    assert await refused(capsys, "tell", "fix", "Hello.") == (
        "fix#1 is over: failed; nothing reaches it any more, but `midwatch tell fix --run 1 "
        '--restart "what to do differently"` begins the task again\n'
    )


async def test_how_an_attempt_is_begun_again_names_its_run_if_a_newer_one_has_the_same_tasks(
    journal: Journal, at: datetime, capsys: Capture, task_spec: str
) -> None:
    made = await over_in(journal, at, task_spec)
    await over_in(journal, at, task_spec)
    assert await midwatch("tell", str(made.id), "Hello.") == 2
    (hint,) = re.findall(r"`midwatch (.*)`", capsys.readouterr().err)
    assert "if run 1 is running" in await printed(capsys, *shlex.split(hint), "--dry-run")


async def test_a_task_that_is_begun_again_waits_for_its_turn_or_for_resume_if_its_run_is_over(
    journal: Journal, at: datetime, capsys: Capture, task_spec: str
) -> None:
    await over_in(journal, at, task_spec)
    await midwatch("tell", "fix", "Go day by day.", "--restart")
    async with hold_run(journal, 1, lease_seconds=15):
        (line,) = await ask(capsys, "status")
    assert (line["status"], line["waits_for"]) == ("submitted", "its turn")
    (line,) = await ask(capsys, "status")
    left = "`midwatch resume --run 1`: no process works on it"
    assert (line["interrupted"], line["waits_for"]) == (True, left)
    assert "begun again by ada: Go day by day." in await printed(capsys, "show", "fix")
