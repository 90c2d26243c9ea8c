"""How orders and errors end an attempt, and how much one is sure of a finished task."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai.workspaces import WorkspaceError as ShellError

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import (
    Action,
    Actor,
    Budget,
    Claim,
    ClaimState,
    Completion,
    DeliveryState,
    Ending,
    Grant,
    Intervention,
    Meter,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Terms,
)
from midwatch_stage.factories import acceptance, delivery, intervention, plan
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.attempt_end import (
    Ended,
    end_asked_for,
    end_out_of_minutes,
    reject_impossible_splits,
    result,
)
from midwatch_supervisor.run.completion import PROVISIONAL, FinishedWork, completion

PART = Part(title="a", goal="A.")
SPLIT = intervention(
    Action.SPLIT, Actor.SUPERVISOR, message="too big", terms=Terms(parts=(PART, PART))
)
RESTART = intervention(Action.RESTART)
STOP = intervention(Action.STOP, Actor.OPERATOR)
ADA = replace(STOP, author="ada", message="Enough.")


@pytest.mark.parametrize(
    ("orders", "ending", "reason"),
    [
        ((SPLIT,), Ending.SPLIT, "split by the supervisor: too big"),
        ((SPLIT, RESTART), Ending.RESTARTED, "restarted by the policy"),
        ((STOP, SPLIT), Ending.CANCELED, "stopped by operator"),
        (
            (replace(STOP, author="ada", message="Enough."),),
            Ending.CANCELED,
            "stopped by ada: Enough.",
        ),
        ((intervention(Action.STOP),), Ending.STUCK, "stopped by the policy"),
    ],
)
def test_the_strongest_order_ends_an_attempt_and_all_are_stamped(
    orders: tuple[Intervention, ...], ending: Ending, reason: str
) -> None:
    ended = end_asked_for(list(enumerate(orders, start=7)), 3, divisible=True)
    assert ended is not None
    assert (ended.ending, ended.reason) == (ending, reason)
    assert [stamp.intervention for stamp in ended.stamps] == list(range(7, 7 + len(orders)))


@pytest.mark.parametrize(
    ("terms", "divisible", "comment"),
    [
        (SPLIT.terms, False, "a part of a split cannot be split again"),
        (Terms(parts=(PART,)), True, "it names fewer than two parts"),
    ],
)
def test_a_split_that_cannot_be_is_refused_and_ends_nothing(
    terms: Terms, divisible: bool, comment: str
) -> None:
    due = [(7, intervention(Action.SPLIT, terms=terms))]
    assert end_asked_for(due, 3, divisible=divisible) is None
    rejected = delivery(7, DeliveryState.REJECTED, step=3, comment=comment)
    assert reject_impossible_splits(due, 3, divisible=divisible) == (rejected,)


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ShellError("sh: 1: printf:\nI/O error"), ": WorkspaceError: sh: 1: printf: I/O error"),
        (WorkspaceError("git commit: fatal"), ": WorkspaceError: git commit: fatal"),
        (KeyError("a"), ""),
    ],
)
async def test_an_error_that_explains_itself_is_logged_in_one_line_and_others_with_a_traceback(
    error: Exception, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> Ended:
        raise error

    work = asyncio.create_task(fail())
    await asyncio.wait({work})
    ended = result(work)
    assert (ended.ending, ended.reason) == (Ending.ERROR, f"{type(error).__name__}: {error}")
    (said,) = caplog.records
    assert (said.levelname, said.message) == ("ERROR", f"an attempt failed{logged}")
    assert (said.exc_info is None) is bool(logged)


def test_granted_minutes_count_before_they_are_delivered() -> None:
    budget = Budget(minutes=Meter(used=5, limit=5))
    grant = intervention(Action.GRANT_BUDGET, terms=Terms(grant=Grant(minutes=2)))
    ended = end_out_of_minutes(budget, ())
    assert ended is not None
    assert ended.reason == "out of budget: 5 of 5 minutes"
    assert end_out_of_minutes(budget, [(7, grant)]) is None


TASK = Assignment(
    task=TaskSpec(id="fix", goal="Fix it.", acceptance=("true",)),
    worker="coder",
    spec=WorkerSpec(),
    models={},
    workspace=Path("/w"),
)
GOOD = acceptance(check="true")
RAN = Claim(what="true", state=ClaimState.PASSED, reason="Midwatch ran it")
CHANGED = Claim(what="file a.py", state=ClaimState.PASSED, reason="it was changed")
UNDONE = Claim(what="plan step: b", state=ClaimState.UNPROVEN, reason="it was never completed")


def test_open_plan_steps_are_unproven_and_lower_the_confidence() -> None:
    done = PlanStep(title="a", state=PlanStepState.DONE, flag="look at the rounding")
    work = FinishedWork(plan=Plan(steps=(done, PlanStep(title="b"))), changed=("a.py",), stated=75)
    assert completion(TASK, work, [GOOD], accepted=True) == Completion(
        plan_step=0,
        goal="Fix it.",
        claims=(RAN, CHANGED, UNDONE),
        confidence=65,
        accepted=True,
        flag="still open: b",
        doubts=("a: look at the rounding",),
    )


def test_where_nothing_was_stated_the_checks_say_how_sure_one_is() -> None:
    bad = acceptance(check="false", passed=False, detail="exit code 1\nno")
    work = FinishedWork(plan=plan("all"))
    found = completion(TASK, work, [GOOD, bad], accepted=False, doubts=("no",))
    failed = Claim(what="false", state=ClaimState.FAILED, reason="exit code 1")
    assert (found.confidence, found.claims, found.flag) == (50, (RAN, failed), "")


def test_a_provisional_task_is_done_with_a_flag() -> None:
    part = TASK.model_copy(update={"provisional": True})
    found = completion(part, FinishedWork(plan=Plan(steps=())), [GOOD], accepted=True)
    assert found.flag == PROVISIONAL
