"""`midwatch show` over a real journal, also of plans, errors, budgets and acts with terms."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from itertools import pairwise

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    AlertKey,
    AlertState,
    Analysis,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Cause,
    Change,
    Completion,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Ending,
    Fault,
    Grant,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Resolution,
    Ruling,
    Spending,
    Step,
    StepKind,
    Task,
    Terms,
)
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
from midwatch_stage.factories import alert, escalation, transition
from midwatch_supervisor.present.assignment import Assignment

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
KEY = AlertKey(rule="cycle", subject="a.py")


async def task_of(journal: Journal) -> Task:
    wanted = TaskSpec(id="totals", goal="Round the\ntotals.", acceptance=("pytest",))
    spec = Assignment(task=wanted, worker="w", spec=WorkerSpec(), models={}, workspace=None)
    return await new_task(journal, "totals", title="Totals", spec=spec.model_dump_json())


async def eventful(journal: Journal, attempt: Attempt, at: datetime) -> int:
    """An attempt with everything in it; the intervention's id."""
    circling = alert(
        "cycle",
        state=AlertState.RESOLVED,
        subject="a.py",
        step=9,
        summary="round and round",
        evidence=(3, 5),
        since_step=3,
        resolution=Resolution.CLEARED,
    )
    steps = (PlanStep(title="read", state=PlanStepState.DONE), PlanStep(title="round"))
    await write(journal, attempt, at, Plan(steps=steps), circling)
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(KEY,), reason="it circles", at=at
    )
    decision = Decision(
        escalation=1,
        action=Action.NUDGE,
        diagnosis=Diagnosis.WRONG_APPROACH,
        message="Look up.",
        rationale="The same edit again.",
        by=Actor.SUPERVISOR,
        author="m",
    )
    nudge = Intervention(action=Action.NUDGE, by=Actor.SUPERVISOR, author="m", message="Look\nup.")
    await write(journal, attempt, at, decision, nudge)
    id = await journal.last_id()
    await write(
        journal,
        attempt,
        at,
        Delivery(intervention=id, state=DeliveryState.DELIVERED, step=9),
        OutcomeReport(intervention=id, outcome=Outcome.RECOVERED, step=17, reason="it moved"),
        Fault(part="silence", error="ValueError: x"),
        Acceptance(check="pytest", passed=False, detail="1 failed"),
        Step(number=17, kind=StepKind.TOOL, tool="run", args="pytest", ok=False, exit_code=1),
        AttemptTransition(lifecycle=Lifecycle.FAILED, reason="no", ending=Ending.UNACCEPTED),
    )
    return id


async def test_what_a_later_attempt_shows_as_used_is_said_to_be_the_tasks(
    journal: Journal, capsys: Capture
) -> None:
    task = await task_of(journal)
    for number in (1, 2):
        await new_attempt(journal, task, number)
    used = [line for line in await read(capsys, "show", "totals") if line.startswith("  used")]
    assert [line.partition(":")[0] for line in used] == ["  used", "  used of the task's budget"]


async def test_of_an_attempt_without_a_folder_none_is_named(
    journal: Journal, capsys: Capture
) -> None:
    await new_attempt(journal, await task_of(journal), workspace="")
    assert "  coder with m on here" in await read(capsys, "show", "totals")


async def test_a_task_is_shown_with_all_that_happened(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await task_of(journal)
    id = await eventful(journal, await new_attempt(journal, task), at)
    assert await read(capsys, "show", "totals") == [
        "task totals (run 1): Totals",
        "status: submitted",
        "goal:",
        "  Round the",
        "  totals.",
        "",
        "attempt 1, totals#1: failed (unaccepted): no",
        "  health ok, last step 17",
        "  coder with m on here, in /w",
        "  used: 0 requests, 0 tokens, 0 min",
        "  plan:",
        "    [x] 1. read",
        "    [ ] 2. round",
        "  acceptance:",
        "    FAILED pytest: 1 failed",
        "  alerts:",
        "    resolved warning cycle (a.py): round and round (steps 3, 5)",
        "  decisions:",
        "    escalation 1 open: cycle: it circles",
        "      nudge by m: wrong approach: The same edit again.",
        "  interventions:",
        f"    {id} nudge by m (supervisor): delivered, recovered: it moved",
        "      Look",
        "      up.",
        "  faults of the watch:",
        "    the rule silence failed and is off: ValueError: x",
        "  last steps:",
        "    step 17, run: FAILED (exit code 1): pytest",
    ]


async def test_as_json_it_is_the_lines_of_the_run(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await task_of(journal)
    await eventful(journal, await new_attempt(journal, task), at)
    lines = await ask(capsys, "show", "totals")
    assert [line["type"] for line in lines] == [
        *("task", "attempt", "alert", "escalation", "decision"),
        *("intervention", "intervention", "intervention", "fault", "step", "attempt"),
    ]
    assert {line["task"] for line in lines} == {"totals"}


@pytest.mark.parametrize("id", ["totals#2", "2", "tot#2"])
async def test_an_attempt_is_named_by_its_id_or_its_number(
    journal: Journal, at: datetime, capsys: Capture, id: str
) -> None:
    task = await task_of(journal)
    for number in (1, 2):
        await new_attempt(journal, task, number)
    lines = await ask(capsys, "show", id)
    assert [(line["attempt"], line["number"]) for line in lines] == [(2, 2)]
    shown = await read(capsys, "show", id)
    assert [line for line in shown if line.startswith("attempt")] == [
        "attempt 2, totals#2: submitted"
    ]


async def test_the_outcome_of_a_restart_stands_with_the_restart(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await task_of(journal)
    first, second = [await new_attempt(journal, task, number) for number in (1, 2)]
    await write(journal, first, at, Intervention(action=Action.RESTART, by=Actor.POLICY))
    id = await journal.last_id()
    report = OutcomeReport(intervention=id, outcome=Outcome.NO_EFFECT, step=8, reason="")
    await write(journal, second, at, report)
    assert await midwatch("show", "totals#1") == 0
    assert f"    {id} restart by policy: issued, no effect\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "author", "comment", "said"),
    [
        (
            *(DeliveryState.REJECTED, "Ann", "Keep the first approach"),
            "rejected by Ann: Keep the first approach",
        ),
        (
            *(DeliveryState.APPROVED, "policy", "nobody answered within 5 minutes"),
            "approved by policy: nobody answered within 5 minutes; delivered",
        ),
    ],
)
async def test_who_approved_or_rejected_an_intervention_and_why_stands_with_it(
    journal: Journal,
    at: datetime,
    capsys: Capture,
    state: DeliveryState,
    author: str,
    comment: str,
    said: str,
) -> None:
    attempt = await new_attempt(journal, await task_of(journal))
    held = Intervention(action=Action.RESTART, by=Actor.POLICY, needs_approval=True)
    await write(journal, attempt, at, held)
    id = await journal.last_id()
    stamp = Delivery(intervention=id, state=state, author=author, comment=comment)
    arrived = Delivery(intervention=id, state=DeliveryState.DELIVERED)
    await write(journal, attempt, at, stamp, *([arrived] if "delivered" in said else []))
    assert f"    {id} restart by policy: {said}" in await read(capsys, "show", "totals")
    *_, shown = [line for line in await ask(capsys, "show", "totals") if "outcome" in line]
    assert (shown["settled_by"], shown["comment"]) == (author, comment)


async def test_an_intervention_and_an_escalation_show_the_attempt_that_they_are_about(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await task_of(journal)
    await write(journal, await new_attempt(journal, task), at, transition())
    second = await new_attempt(journal, task, 2)
    nudge = Intervention(action=Action.NUDGE, by=Actor.POLICY)
    first = await write(journal, second, at, *[nudge] * 9)
    asked = escalation(70, "cycle", attempt=second.id)
    await write(journal, second, at, asked)
    for id in (first, asked.id):
        shown = await read(capsys, "show", str(id))
        assert [line for line in shown if line.startswith("attempt ")] == [
            "attempt 2, totals#2: submitted"
        ]
    assert "there is no task or attempt `71`" in await refused(capsys, "show", "71")


@pytest.mark.parametrize(("id", "run"), [("tot", 2), ("labels", 1), ("totals", 2)])
async def test_the_latest_run_that_has_it_counts(
    journal: Journal, at: datetime, capsys: Capture, id: str, run: int
) -> None:
    earlier = await task_of(journal)
    await new_task(journal, "labels", run=earlier.run)
    await task_of(journal)
    assert f"(run {run})" in await printed(capsys, "show", id)


async def test_an_exact_name_wins_over_a_prefix_and_over_an_attempt(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    task = await task_of(journal)
    await new_attempt(journal, task)
    for name in ("1", "tot", "total"):
        await new_task(journal, name, run=task.run)
    for name in ("1", "tot"):
        assert (await printed(capsys, "show", name)).startswith(f"task {name} (run 1)\n")


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("x", "there is no task or attempt `x`; the tasks are: totals, total\n"),
        ("9", "there is no task or attempt `9`; the tasks are: totals, total\n"),
        ("tot", "`tot` could mean any of totals, total\n"),
        ("totals#7", "there is no attempt totals#7; known: totals#1\n"),
        ("total#1", "there is no attempt total#1; known: none yet\n"),
    ],
)
async def test_what_is_not_there_is_bad_usage(
    journal: Journal, at: datetime, capsys: Capture, id: str, said: str
) -> None:
    task = await task_of(journal)
    await new_attempt(journal, task)
    await new_task(journal, "total", run=task.run)
    assert await midwatch("show", id) == 2
    assert capsys.readouterr() == ("", said)


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
