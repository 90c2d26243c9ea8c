"""The first work of a new plan step waits for the look at the rest of the plan."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.config.settings import ErrorSettings, PlanSettings
from midwatch_monitor.records import Change, Entry, PlanCheck, Record, Step, StepKind
from midwatch_tools.gate.gate import ALLOWED, Gate, Said, Verdict

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
NOTHING = Said()
WORK = Step(number=4, kind=StepKind.TOOL, request=4, tool="read_file", args="{}", ok=True)


def planned(*records: Record | tuple[Record, ...], plan: PlanSettings | None = None) -> Gate:
    made = Gate(ErrorSettings(), plan or PlanSettings(), attempt=1)
    flat = [each for one in records for each in (one if isinstance(one, tuple) else (one,))]
    for id, record in enumerate(flat, start=1):
        made.observe(Entry(id=id, record=record, at=AT, task=1, attempt=1))
    return made


def refused(verdict: Verdict, words: str) -> bool:
    return words in verdict.refusal


BEGUN = Change(plan_step=1, plan_steps=3, revision=0)
CHECK = PlanCheck(plan_step=2, assumption="a", reality="r", impact="i")


def finished(request: int, plan_step: int = 2, *, revision: int = 0) -> tuple[Record, ...]:
    step = Step(number=request, kind=StepKind.TOOL, request=request, tool="complete_step", ok=True)
    return (step, Change(plan_step=plan_step, plan_steps=3, revision=revision))


def test_the_first_work_of_a_plan_step_waits_for_its_check() -> None:
    state = planned(BEGUN, finished(1))
    assert refused(state.may(WORK, NOTHING), "plan step 2 begins. Call `check_plan` first")
    assert state.may(WORK, Said(checked=True)) == ALLOWED


def test_work_behind_the_completion_in_its_turn_is_of_the_new_plan_step() -> None:
    state = planned(BEGUN, finished(4))
    assert refused(state.may(WORK, NOTHING), "plan step 2 begins")
    assert state.may(WORK, Said(checked=True)) == ALLOWED


@pytest.mark.parametrize(
    "records",
    [
        (BEGUN,),
        (BEGUN, *finished(1), CHECK),
        (BEGUN, Change(plan_step=1, plan_steps=2, revision=1)),
        (BEGUN, *finished(1, revision=1)),
        (BEGUN, *finished(1, 4)),
        (Change(plan_step=1, plan_steps=1, revision=0), Change(plan_step=2, plan_steps=1)),
        (Change(plan_step=2, plan_steps=3, revision=0),),
    ],
    ids=[
        "the first plan step",
        "the check is in",
        "a revision",
        "a revision that goes on",
        "the plan is done",
        "a plan of one step",
        "an attempt that begins later",
    ],
)
def test_no_check_is_asked_for(records: tuple[Record, ...]) -> None:
    assert planned(*records).may(WORK, NOTHING) == ALLOWED


def test_every_transition_has_its_own_check() -> None:
    state = planned(BEGUN, finished(1), CHECK, finished(2, 3))
    assert refused(state.may(WORK, NOTHING), "plan step 3 begins")


def test_without_the_protocol_of_plans_no_check_is_asked_for() -> None:
    plan = PlanSettings(require_check=False)
    assert planned(BEGUN, finished(1), plan=plan).may(WORK, NOTHING) == ALLOWED
