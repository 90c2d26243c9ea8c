"""`midwatch approve` and `reject` of decisions and of what a worker asked for."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    BudgetRequest,
    Commit,
    DeliveryState,
    Ending,
    Entry,
    Grant,
    Lifecycle,
    PermissionRequest,
    PlanCheck,
    Record,
    Ruling,
    Terms,
)
from midwatch_supervisor.cli.operate.approval import settle
from midwatch_tests.command import Cli, midwatch, new_task
from midwatch_tests.factories import change, delivery, ended, intervention, message

Write = Callable[..., Awaitable[int]]

BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
REVISION = PlanCheck(
    plan_step=2,
    assumption="",
    reality="none",
    impact="",
    proposed=("x", "y"),
    ruling=Ruling.PENDING,
)
PERMISSION = PermissionRequest(tool="execute", what="run `make`")
HELD = intervention(Action.RESTART, needs_approval=True)
ASKED = intervention(Action.ASK_OPERATOR)
PAUSE = intervention(Action.PAUSE, Actor.OPERATOR)
MINE = intervention(by=Actor.OPERATOR, author="ada", petition=4)
APPROVED, REFUSED = replace(MINE, message="Approved."), replace(MINE, message="Simplify.")
GRANT = Terms(grant=BUDGET.wanted)
GRANTED = replace(MINE, action=Action.GRANT_BUDGET, message="Granted.", terms=GRANT)
STAMP = delivery(4, DeliveryState.APPROVED, step=7, author="ada")
PARKED, OVER = change(lifecycle=Lifecycle.INPUT_REQUIRED), ended(Ending.ERROR)
SIMPLIFY = "reject 4 --comment Simplify."

pytestmark = pytest.mark.usefixtures("by_ada")


async def read_new_records(journal: Journal, after: int) -> list[Record]:
    """What was written since, each about the attempt and without a `seq`."""
    entries = await journal.entries(after)
    assert {(entry.task, entry.attempt, entry.seq) for entry in entries} <= {(1, 1, None)}
    return [entry.record for entry in entries]


@pytest.mark.parametrize(
    ("words", "asked", "said", "answer"),
    [
        ("approve 4", HELD, "approved restart", STAMP),
        ("reject 4", HELD, "rejected restart", replace(STAMP, state=DeliveryState.REJECTED)),
        ("approve 4", BUDGET, "approved budget request", GRANTED),
        (
            "approve 4",
            REVISION,
            "approved plan revision",
            replace(APPROVED, action=Action.REPLAN, plan=("x", "y")),
        ),
        ("approve 4", PERMISSION, "approved permission", replace(APPROVED, action=Action.RESUME)),
        (SIMPLIFY, BUDGET, "rejected budget request", REFUSED),
        (SIMPLIFY, REVISION, "rejected plan revision", REFUSED),
        (SIMPLIFY, PERMISSION, "rejected permission", REFUSED),
        ("reject 4", BUDGET, "rejected budget request", replace(MINE, message="Refused.")),
        ("reject 4 --dry-run", BUDGET, "would reject budget request", None),
        ("approve 4 --dry-run", HELD, "would approve restart", None),
    ],
)
async def test_what_waits_is_answered_with_what_the_attempt_then_hears(
    journal: Journal,
    write: Write,
    cli: Cli,
    words: str,
    asked: Record,
    said: str,
    answer: Record | None,
) -> None:
    last = await write(message(7), asked)
    assert await cli.read(*words.split()) == [f"{said} 4 for fix#1"]
    assert await read_new_records(journal, last) == ([answer] if answer else [])


async def test_a_rejected_answer_is_a_refusal_that_the_worker_hears(
    journal: Journal, write: Write
) -> None:
    id = await write(BUDGET)
    held = intervention(Action.GRANT_BUDGET, petition=id, needs_approval=True)
    answer = await write(held)
    assert await midwatch("reject", str(answer), "--comment", "Enough.") == 0
    assert await read_new_records(journal, answer) == [
        delivery(answer, DeliveryState.REJECTED, author="ada", comment="Enough."),
        replace(MINE, message="Enough.", petition=id),
    ]


UNKNOWN = "there is no intervention `77`; "


@pytest.mark.parametrize(
    ("records", "id", "said"),
    [
        *(
            ((HELD, delivery(3, state)), 3, f"restart 3 for fix#1 is already {state}")
            for state in DeliveryState
        ),
        ((PAUSE,), 3, "pause 3 for fix#1 needs no approval: it is being delivered"),
        ((HELD, OVER), 3, "restart 3 for fix#1 comes too late: the attempt is failed"),
        (
            (ASKED, delivery(3), PARKED),
            3,
            'ask_operator 3 for fix#1 cannot be approved: `midwatch tell fix "your answer"` '
            "answers it",
        ),
        (
            (BUDGET, replace(MINE, message="No.", petition=3)),
            3,
            "budget request 3 for fix#1 was already answered: refused: No.",
        ),
        (
            (BUDGET, ended(Ending.SPLIT)),
            3,
            "budget request 3 for fix#1 comes too late: the attempt is split",
        ),
        ((MINE,), 77, f"{UNKNOWN}nothing is waiting for approval"),
        ((HELD,), 77, f"{UNKNOWN}waiting for approval: 3 (restart)"),
        ((BUDGET,), 77, f"{UNKNOWN}waiting for approval: 3 (budget request)"),
        ((BUDGET, replace(MINE, petition=3)), 77, f"{UNKNOWN}nothing is waiting for approval"),
        ((REVISION, OVER), 77, f"{UNKNOWN}nothing is waiting for approval"),
    ],
)
async def test_what_does_not_wait_is_neither_approved_nor_rejected(
    journal: Journal, write: Write, cli: Cli, records: tuple[Record, ...], id: int, said: str
) -> None:
    last = await write(*records)
    for command in ("approve", "reject"):
        assert await cli.refused(command, str(id)) == f"{said}\n"
    assert await read_new_records(journal, last) == []


async def test_a_question_of_an_older_run_is_answered_with_its_run(
    journal: Journal, write: Write, cli: Cli
) -> None:
    await write(ASKED, delivery(3), PARKED)
    await new_task(journal, "fix")
    assert '`midwatch tell fix --run 1 "your answer"`' in await cli.refused("approve", "3")


async def test_the_beginning_of_what_waits_is_enough_while_it_is_unique(
    write: Write, cli: Cli
) -> None:
    await write(*[message(7)] * 9, HELD, REVISION)  # entries 1 and 2 are the first states
    assert await cli.refused("approve", "1") == (
        "`1` could mean several; waiting for approval: 12 (restart), 13 (plan revision)\n"
    )
    assert await midwatch("approve", "12") == 0
    assert await cli.read("approve", "1") == ["approved plan revision 13 for fix#1"]


async def test_what_was_waited_for_is_no_reason_once_it_is_answered(write: Write, cli: Cli) -> None:
    why = "a proposal is waiting for approval"
    await write(HELD, AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason=why))
    assert [each for each in await cli.read("show", "fix") if why in each] == [
        f"status: waits for you: {why}",
        f"attempt 1, fix#1: waits for you: {why}",
    ]
    await midwatch("reject", "3")
    shown = await cli.read("show", "fix")
    assert {"status: resuming…", "attempt 1, fix#1: resuming…"} <= {*shown}
    assert why not in "".join(shown)


async def test_of_two_who_answer_at_the_same_moment_one_hears_what_the_other_said(
    journal: Journal, location: str, write: Write
) -> None:
    id = await write(HELD)

    class SlowJournal(Journal):
        async def answer(self, commit: Commit) -> tuple[Entry, ...] | None:
            assert await midwatch("approve", str(id)) == 0
            return await super().answer(commit)

    async with await SlowJournal.open(location) as slower:
        with pytest.raises(UsageError, match=f"restart {id} for fix#1 is already approved"):
            await settle(slower, id, author="eve", agreed=False)
    assert await read_new_records(journal, id) == [
        delivery(id, DeliveryState.APPROVED, author="ada")
    ]
