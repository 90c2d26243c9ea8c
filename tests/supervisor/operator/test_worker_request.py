"""What a worker asks for, and the acts by which a person answers."""

import pytest

from midwatch_monitor.records import BudgetRequest, Grant, PlanCheck, Record, Ruling, Spending
from midwatch_monitor.state.intervention import WorkerRequest, worker_request
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


@pytest.mark.parametrize(
    ("petition", "name", "words"),
    [
        (BUDGET, "budget request", "asks for budget: 20 requests (two files left)"),
        (REVISION, "plan revision", "asks to revise its plan: write it; use it (write it)"),
    ],
)
def test_a_petition_is_told_in_words(petition: WorkerRequest, name: str, words: str) -> None:
    assert (request_name(petition), request_text(petition)) == (name, words)
