"""`midwatch approve` and `reject` of what a worker asked for, over a real journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    PlanCheck,
    Record,
    Ruling,
    Terms,
)
from midwatch_stage.command import midwatch, read, refused

Capture = pytest.CaptureFixture[str]
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
HELD = Intervention(action=Action.RESTART, by=Actor.POLICY, needs_approval=True)
MINE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada")
OVER = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT)


pytestmark = pytest.mark.usefixtures("by_ada")


async def written(journal: Journal, after: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(after)]


ANSWER = replace(MINE, message="Approved.")


@pytest.mark.parametrize(
    ("asked", "name", "answer"),
    [
        (
            BUDGET,
            "budget request",
            replace(
                MINE,
                action=Action.GRANT_BUDGET,
                message="Granted.",
                terms=Terms(grant=BUDGET.wanted),
            ),
        ),
        (REVISION, "plan revision", replace(ANSWER, action=Action.REPLAN, plan=("x", "y"))),
        (PERMISSION, "permission", replace(ANSWER, action=Action.RESUME)),
    ],
)
async def test_an_approval_gives_the_worker_what_it_asked_for(
    journal: Journal, write: Write, capsys: Capture, asked: Record, name: str, answer: Intervention
) -> None:
    id = await write(asked)
    assert await read(capsys, "approve", str(id)) == [f"approved {name} {id} for fix#1"]
    assert await written(journal, id) == [replace(answer, petition=id)]


async def test_an_attempt_that_waits_for_a_permission_is_not_resumed_without_it(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    id = await write(PERMISSION)
    last = await write(AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED))
    assert await refused(capsys, "tell", "fix", "--resume") == (
        f"fix#1: it waits for permission to run `make`: `midwatch approve {id}` or "
        f"`midwatch reject {id}`\n"
    )
    assert await written(journal, last) == []


@pytest.mark.parametrize(
    ("asked", "comment", "heard"),
    [
        *((each, "Simplify.", "Simplify.") for each in (BUDGET, REVISION, PERMISSION)),
        (BUDGET, "", "Refused."),
    ],
)
async def test_a_refusal_is_a_nudge_with_the_reason(
    journal: Journal, write: Write, asked: Record, comment: str, heard: str
) -> None:
    id = await write(asked)
    assert await midwatch("reject", str(id), "--comment", comment) == 0
    assert await written(journal, id) == [replace(MINE, message=heard, petition=id)]


@pytest.mark.parametrize(
    ("command", "asked", "said"),
    [
        ("reject", BUDGET, "would reject budget request 3 for fix#1"),
        ("approve", HELD, "would approve restart 3 for fix#1"),
    ],
)
async def test_a_dry_run_answers_nothing(
    journal: Journal, write: Write, capsys: Capture, command: str, asked: Record, said: str
) -> None:
    last = await write(asked)
    assert await read(capsys, command, "3", "--dry-run") == [said]
    assert await written(journal, last) == []


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (replace(MINE, message="No.", petition=3), "was already answered: refused: No."),
        (OVER, "comes too late: the attempt is split"),
    ],
)
async def test_what_nobody_waits_for_any_more_is_not_answered(
    journal: Journal, write: Write, capsys: Capture, later: Record, why: str
) -> None:
    last = await write(BUDGET, later)
    assert await refused(capsys, "approve", "3") == f"budget request 3 for fix#1 {why}\n"
    assert await written(journal, last) == []


async def test_a_rejected_answer_is_a_refusal_that_the_worker_hears(
    journal: Journal, write: Write
) -> None:
    id = await write(BUDGET)
    held = Intervention(
        action=Action.GRANT_BUDGET, by=Actor.POLICY, petition=id, needs_approval=True
    )
    answer = await write(held)
    assert await midwatch("reject", str(answer), "--comment", "Enough.") == 0
    assert await written(journal, answer) == [
        Delivery(
            intervention=answer, state=DeliveryState.REJECTED, author="ada", comment="Enough."
        ),
        replace(MINE, message="Enough.", petition=id),
    ]


async def test_the_beginning_of_a_petition_that_waits_is_enough(
    write: Write, capsys: Capture
) -> None:
    filler = [MINE] * 8
    await write(*filler, REVISION)  # entries 1 and 2 are the first states
    assert await read(capsys, "approve", "11") == ["approved plan revision 11 for fix#1"]


@pytest.mark.parametrize(
    ("records", "waits"),
    [
        ((MINE,), "nothing is waiting for approval"),
        ((HELD,), "waiting for approval: 3 (restart)"),
        ((BUDGET,), "waiting for approval: 3 (budget request)"),
        ((BUDGET, replace(MINE, petition=3)), "nothing is waiting for approval"),
        ((REVISION, OVER), "nothing is waiting for approval"),
    ],
)
async def test_an_unknown_number_is_answered_with_what_waits(
    write: Write, capsys: Capture, records: tuple[Record, ...], waits: str
) -> None:
    await write(*records)
    assert await refused(capsys, "approve", "77") == f"there is no intervention `77`; {waits}\n"
