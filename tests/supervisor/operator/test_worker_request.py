"""What a worker asks for, and the acts by which a person answers."""

from dataclasses import replace

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
from midwatch_stage.factories import intervention
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.operator.actions import OperatorActions
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
    ("asked", "agreed", "comment", "answer"),
    [
        (
            REVISION,
            True,
            "",
            Intervention(
                action=Action.REPLAN,
                by=Actor.OPERATOR,
                message="Approved.",
                plan=("write it", "use it"),
            ),
        ),
        (
            BUDGET,
            True,
            "",
            Intervention(
                action=Action.GRANT_BUDGET,
                by=Actor.OPERATOR,
                message="Granted.",
                terms=Terms(grant=Grant(requests=20)),
            ),
        ),
        (BUDGET, False, "", intervention(by=Actor.OPERATOR, message="Refused.")),
        (BUDGET, False, "Simplify.", intervention(by=Actor.OPERATOR, message="Simplify.")),
    ],
    ids=["a granted revision is a replan", "granted budget", "a refusal is a nudge", "reason"],
)
async def test_an_answer_says_what_was_granted_or_why_not(
    past: PastAttempts, asked: WorkerRequest, agreed: bool, comment: str, answer: Intervention
) -> None:
    attempt = await past.attempt()
    id = await past.say(attempt, asked)
    operator = OperatorActions(past.journal, author="ada")
    await operator.settle(attempt, id, asked, agreed=agreed, comment=comment, step=1)
    assert await past.told(Intervention) == [replace(answer, author="ada", petition=id)]


@pytest.mark.parametrize(
    ("petition", "name", "words"),
    [
        (BUDGET, "budget request", "asks for budget: 20 requests (two files left)"),
        (REVISION, "plan revision", "asks to revise its plan: write it; use it (write it)"),
    ],
)
def test_a_petition_is_told_in_words(petition: WorkerRequest, name: str, words: str) -> None:
    assert (request_name(petition), request_text(petition)) == (name, words)
