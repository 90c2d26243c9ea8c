"""What a worker asks for, and the acts by which a person answers."""

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    BudgetRequest,
    Grant,
    Intervention,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Terms,
)
from midwatch_monitor.state.intervention import WorkerRequest, worker_request
from midwatch_supervisor.operator.actions import grant_request, refuse_request
from midwatch_supervisor.present.intervention_text import request_name, request_text

REVISION = PlanCheck(
    plan_step=3,
    assumption="a module",
    reality="none",
    impact="",
    choice="write it",
    proposed=("write it", "use it"),
    ruling=Ruling.PENDING,
)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")


@pytest.mark.parametrize("petition", [REVISION, BUDGET])
def test_what_waits_for_an_answer_is_a_petition(petition: WorkerRequest) -> None:
    assert worker_request(petition) == petition


@pytest.mark.parametrize(
    "record",
    [
        PlanCheck(plan_step=1, assumption="", reality="", impact=""),
        PlanCheck(plan_step=1, assumption="", reality="", impact="", ruling=Ruling.REFUSED),
        Spending(role="planner", model="m"),
    ],
)
def test_what_was_ruled_or_asks_for_nothing_is_none(record: Record) -> None:
    assert worker_request(record) is None


def test_a_granted_revision_is_a_replan_with_what_was_proposed() -> None:
    assert grant_request(7, REVISION, author="ada") == Intervention(
        action=Action.REPLAN,
        by=Actor.OPERATOR,
        author="ada",
        message="Approved.",
        plan=("write it", "use it"),
        petition=7,
    )


def test_a_granted_request_is_a_grant_of_what_was_wanted() -> None:
    assert grant_request(7, BUDGET, author="ada") == Intervention(
        action=Action.GRANT_BUDGET,
        by=Actor.OPERATOR,
        author="ada",
        message="Granted.",
        terms=Terms(grant=Grant(requests=20)),
        petition=7,
    )


@pytest.mark.parametrize(("message", "heard"), [("", "Refused."), ("Simplify.", "Simplify.")])
def test_a_refusal_is_a_nudge_with_the_reason(message: str, heard: str) -> None:
    assert refuse_request(7, author="ada", message=message) == Intervention(
        action=Action.NUDGE, by=Actor.OPERATOR, author="ada", message=heard, petition=7
    )


@pytest.mark.parametrize(
    ("petition", "name", "words"),
    [
        (BUDGET, "budget request", "asks for budget: 20 requests (two files left)"),
        (REVISION, "plan revision", "asks to revise its plan: write it; use it (write it)"),
    ],
)
def test_a_petition_is_told_in_words(petition: WorkerRequest, name: str, words: str) -> None:
    assert (request_name(petition), request_text(petition)) == (name, words)
