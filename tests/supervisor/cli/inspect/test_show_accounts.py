"""What `midwatch show` says of plans, errors, finished work, budgets and acts with terms."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from itertools import pairwise

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Analysis,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Cause,
    Change,
    Completion,
    Decision,
    Diagnosis,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    Plan,
    PlanCheck,
    PlanStep,
    Ruling,
    Spending,
    Terms,
)
from midwatch_stage.command import read

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]
REVISION = PlanCheck(
    plan_step=2,
    assumption="a module",
    reality="none",
    impact="",
    proposed=("x",),
    ruling=Ruling.PENDING,
)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")


async def test_the_accounts_of_a_worker_are_shown_with_what_was_answered(
    at: datetime, write: Write, capsys: Capture
) -> None:
    plan = Plan(steps=(PlanStep(title="read", confidence=40, requests=12, flag="by eye"),))
    revision = await write(plan, REVISION)
    asked = await write(BUDGET)
    answer = Intervention(
        action=Action.GRANT_BUDGET,
        by=Actor.POLICY,
        terms=Terms(grant=Grant(requests=5)),
        petition=asked,
    )
    await write(
        answer,
        Completion(plan_step=1, goal="it reads", confidence=75, accepted=True, flag="by eye"),
        Analysis(what="", cause=Cause.PERMANENT, root="no ES6", remedy="require()", about=7),
        Spending(role="planner", model="m", requests=1, tokens=900),
    )
    lines = await read(capsys, "show", "fix")
    assert {
        "used apart from the workers:": "  planner (m): 1 request, 900 tokens",
        "  plan:": "    [ ] 1. read (confidence 40 %; 12 requests; flag: by eye)",
        "  plan checks:": f"    {revision} plan step 2, pending: a module → none; proposes: x",
        "  completions:": "    accepted with a flag, plan step 1 at 75 %: it reads; flag: by eye",
        "  analyses:": "    (permanent, step 7): no ES6 → require()",
        "  budget requests:": f"    {asked} 20 requests (granted 5 requests): two files left",
        "  interventions:": f"    {asked + 1} grant_budget (5 requests) by policy: issued",
    }.items() <= dict(pairwise(lines)).items()


async def test_a_task_without_a_plan_of_its_own_shows_none(write: Write, capsys: Capture) -> None:
    await write(Plan(steps=(PlanStep(title="fix it"),)))
    assert "  plan:" not in await read(capsys, "show", "fix")


async def test_decisions_name_their_steps_their_terms_and_why_they_were_refused(
    journal: Journal, attempt: Attempt, at: datetime, write: Write, capsys: Capture
) -> None:
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(AlertKey(rule="cycle"),), reason="", at=at
    )
    decision = Decision(
        escalation=1,
        action=Action.SWITCH_MODEL,
        diagnosis=Diagnosis.PROVIDER,
        message="",
        rationale="It times out.",
        terms=Terms(model="big"),
        steps=(3, 5),
        by=Actor.SUPERVISOR,
        refused="no such model",
    )
    await write(decision)
    refused = "      REFUSED: switch_model (model big) by supervisor: no such model"
    assert refused in await read(capsys, "show", "fix")


async def test_the_model_in_force_is_shown_with_the_one_before(
    attempt: Attempt, write: Write, capsys: Capture
) -> None:
    await write(Change(model="big"))
    (line,) = [line for line in await read(capsys, "show", "fix") if " with big" in line]
    assert line.strip().startswith(
        f"{attempt.worker} with big (before: {attempt.model}) on {attempt.node}"
    )


async def test_a_split_attempt_is_not_shown_as_failed(
    attempt: Attempt, write: Write, capsys: Capture
) -> None:
    split = AttemptTransition(lifecycle=Lifecycle.FAILED, reason="in two", ending=Ending.SPLIT)
    await write(split)
    lines = await read(capsys, "show", "fix")
    assert "waits for: the tasks that it was split into" in lines
    assert f"attempt {attempt.id}, fix#1: split: in two" in lines
    assert "  health ok, last step 0" in lines
