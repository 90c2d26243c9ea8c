"""How often a plan may be checked and revised, and who says so."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.config.settings import Approver, PlanSettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Plan,
    PlanCheck,
    Record,
    Ruling,
)
from midwatch_tools.plan_change import revisions
from midwatch_tools.tools.check_plan import answered, ruled

CHECK = PlanCheck(plan_step=2, assumption="a", reality="r", impact="i")
PROPOSAL = PlanCheck(plan_step=2, assumption="a", reality="r", impact="i", proposed=("b", "c"))


def entries(*records: Record, attempt: int = 1, after: int = 0) -> list[Entry]:
    at = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
    return [
        Entry(id=id, record=record, at=at, task=1, attempt=attempt)
        for id, record in enumerate(records, start=after + 1)
    ]


def ruling(state: Ruling, plan_step: int = 2) -> PlanCheck:
    return PlanCheck(plan_step=plan_step, assumption="a", reality="r", impact="i", ruling=state)


def answer(action: Action) -> Intervention:
    return Intervention(action=action, by=Actor.SUPERVISOR, petition=1)


@pytest.mark.parametrize(
    ("records", "is_in"),
    [
        ((), False),
        ((CHECK,), True),
        ((ruling(Ruling.GRANTED, plan_step=1),), False),
        ((ruling(Ruling.PENDING),), True),
        ((ruling(Ruling.REFUSED),), False),
        ((ruling(Ruling.REFUSED), CHECK), True),
        ((ruling(Ruling.PENDING), answer(Action.NUDGE)), False),
        ((ruling(Ruling.PENDING), answer(Action.REPLAN)), True),
    ],
)
def test_a_plan_step_is_checked_once_unless_the_answer_was_no(
    records: tuple[Record, ...], is_in: bool
) -> None:
    assert answered(entries(*records), 2) is is_in


@pytest.mark.parametrize(
    ("check", "made", "approval", "ruling", "reason"),
    [
        (CHECK, 9, Approver.SUPERVISOR, Ruling.GRANTED, ""),
        (PROPOSAL, 1, Approver.POLICY, Ruling.GRANTED, "within the caps"),
        (PROPOSAL, 1, Approver.SUPERVISOR, Ruling.PENDING, ""),
        (PROPOSAL, 2, Approver.POLICY, Ruling.REFUSED, "2 of 2 revisions of this task's plan"),
        (PROPOSAL, 2, Approver.SUPERVISOR, Ruling.REFUSED, "2 of 2 revisions of this task's plan"),
    ],
)
def test_a_proposal_is_ruled_by_the_cap_and_by_who_approves(
    check: PlanCheck, made: int, approval: Approver, ruling: Ruling, reason: str
) -> None:
    found = ruled(check, made=made, settings=PlanSettings(max_revisions=2, approval=approval))
    assert (found.ruling, found.reason[: len(reason)]) == (ruling, reason)


def plan(revision: int) -> Plan:
    return Plan(steps=(), revision=revision)


def ordered(petition: int | None = None) -> Intervention:
    return Intervention(action=Action.REPLAN, by=Actor.SUPERVISOR, petition=petition)


ARRIVED = Delivery(intervention=2, state=DeliveryState.DELIVERED)


@pytest.mark.parametrize(
    ("records", "made"),
    [
        ((plan(0),), 0),
        ((plan(0), plan(0), plan(1), plan(2)), 2),
        ((plan(0), ordered(), ARRIVED, plan(1), plan(2)), 1),
        ((plan(0), ordered(petition=1), ARRIVED, plan(1)), 1),
        ((plan(3),), 0),
    ],
    ids=["the first plan", "its own", "an order", "an approval", "taken over"],
)
def test_only_a_workers_revisions_count(records: tuple[Record, ...], made: int) -> None:
    assert revisions(entries(*records)) == made


def test_revisions_count_over_all_attempts() -> None:
    first, second = entries(plan(0), plan(1)), entries(plan(0), plan(1), attempt=2, after=2)
    assert revisions([*first, *second]) == 2
