"""What the next attempt, and the supervisor, read of an attempt in the journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_agents.prompt import PastAttempt
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Activity,
    AlertKey,
    Analysis,
    AnalysisAuthor,
    Attempt,
    Budget,
    Completion,
    Ending,
    EscalationState,
    Intervention,
    Meter,
    Outcome,
    PlanCheck,
    Record,
    Step,
    Terms,
)
from midwatch_stage.factories import (
    analysis,
    change,
    decision,
    delivery,
    ended,
    escalation,
    intervention,
    outcome,
    plan,
    reflecting,
    step,
)
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.decide.prompt import render
from midwatch_supervisor.decide.reading import AttemptReading
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tools.data_blocks import DataBlocks

Write = Callable[[Record], Awaitable[int]]

TASK = TaskSpec(id="fix", goal="Fix it.", acceptance=("true",))
KEYS = (AlertKey(rule="cycle"),)
PLAN = plan("one", "two", done=1)


def analysed(number: int, by: AnalysisAuthor = AnalysisAuthor.WORKER) -> Analysis:
    return analysis(0, what=f"it failed {number}", by=by)


def reports(number: int, progress: int = 50) -> Step:
    return reflecting(number, progress, 60, notes="half done")


async def context_of(
    journal: Journal, attempt: Attempt, *keys: AlertKey, settings: Settings | None = None
) -> DecisionContext:
    reading = await AttemptReading.read(journal, attempt, TASK, settings or Settings())
    return reading.context(keys)


async def deliver(write: Write, issued: Intervention) -> int:
    id = await write(issued)
    await write(delivery(id))
    return id


async def test_the_next_attempt_learns_what_was_found_tried_and_kept(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    await write(reports(1))
    for number in range(7):
        await write(analysed(number))
    await write(analysed(9, AnalysisAuthor.WATCH))
    id = await deliver(write, intervention(message="Look.", answers=KEYS))
    await write(outcome(id, Outcome.NO_EFFECT, reason="still fires"))
    terms = Terms(keep=("src/*.py",))
    await deliver(write, intervention(Action.RESTART, message="Read first.", terms=terms))
    await write(ended(Ending.RESTARTED, reason="went round"))
    assert (await AttemptEvidence.read(journal, attempt)).past == PastAttempt(
        number=1,
        reason="went round",
        advice="Read first.",
        last_notes="half done",
        analyses=tuple(f"it failed {number}: a typo → mend it" for number in range(2, 7)),
        tried=("nudge: no effect: still fires",),
        kept=("src/*.py",),
    )


async def test_an_answer_to_the_worker_is_no_intervention_that_was_tried(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    await deliver(write, intervention(Action.GRANT_BUDGET, petition=1))
    assert (await AttemptEvidence.read(journal, attempt)).delivered == ()


async def test_a_decision_rests_on_what_the_worker_wrote_down(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    check = PlanCheck(plan_step=2, assumption="a", reality="b", impact="c")
    claimed = Completion(plan_step=1, goal="one", confidence=60, accepted=True, flag="untested")
    for record in (PLAN, reports(1, 0), analysed(1), check, claimed):
        await write(record)
    context = await context_of(journal, attempt)
    assert [each.step for each in context.analyses] == [1]
    assert (context.plan_check, context.completions) == (check, (claimed,))


async def test_requirement_22_the_supervisor_reads_whether_the_budget_is_enough(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    for record in (PLAN, reports(1, 0), change(budget=Budget(requests=Meter(used=45, limit=60)))):
        await write(record)
    assert (
        "45 of 60 requests, 0 tokens, 0 min. "
        "about 50 % done; at this rate the requests are not enough"
    ) in render(await context_of(journal, attempt), 5000, DataBlocks.with_new_code())


async def test_a_forecast_counts_from_where_the_attempt_began(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    for used, number in ((20, 1), (24, 2)):
        await write(change(budget=Budget(requests=Meter(used=used, limit=100))))
        await write(step(number))
    settings = Settings(monitor=MonitorSettings(outcome_after=4))
    assert (await context_of(journal, attempt, settings=settings)).then_used == 0.40


async def test_what_was_left_alone_on_purpose_is_known(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    await write(escalation(3))
    await write(decision(Action.OBSERVE, 3))
    await write(escalation(3, state=EscalationState.CLOSED))
    assert (await context_of(journal, attempt, *KEYS)).observed == frozenset(KEYS)


async def test_the_model_and_the_activity_in_force_are_the_last_that_were_said(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    before = await AttemptEvidence.read(journal, attempt)
    await write(change(model="big", activity=Activity.RATE_LIMITED))
    after = await AttemptEvidence.read(journal, attempt)
    assert (before.state.model, before.state.activity) == ("m", Activity.IDLE)
    assert (after.state.model, after.state.activity) == ("big", Activity.RATE_LIMITED)


async def test_what_was_reported_of_a_plan_step_before_tells_nothing_of_the_next(
    journal: Journal, attempt: Attempt, write: Write
) -> None:
    await write(PLAN)
    await write(reports(1, 80))
    assert (await context_of(journal, attempt)).done == 50
    await write(reflecting(2, 40, 60, plan_step=2))
    assert (await context_of(journal, attempt)).done == 70


async def test_why_git_cannot_read_a_workspace_is_said(
    journal: Journal, attempt: Attempt, tmp_path: Path
) -> None:
    source, folder = tmp_path / "source", tmp_path / "home" / "work" / "r1" / "fix-1"
    folder.mkdir(parents=True)
    (source / ".git").mkdir(parents=True)
    evidence = await AttemptEvidence.read(journal, replace(attempt, workspace=str(folder)))
    wanted = Assignment(task=TASK, worker="w", spec=WorkerSpec(), models={}, workspace=source)
    evidence.task = replace(evidence.task, spec=wanted.model_dump_json())
    with pytest.raises(WorkspaceError, match=f"^{folder} is not a worktree of {source}$"):
        await evidence.diff()


async def test_it_is_said_where_the_files_of_a_moved_attempt_are(
    journal: Journal, attempt: Attempt, write: Write, tmp_path: Path
) -> None:
    await write(change(node="node-b"))
    stale = replace(attempt, workspace=str(tmp_path))
    with pytest.raises(WorkspaceError, match="its files are on node-b"):
        await (await AttemptEvidence.read(journal, stale)).diff()
