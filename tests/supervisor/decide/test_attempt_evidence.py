"""What the next attempt and the supervisor read of an attempt and of its whole task."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_agents.prompt import PastAttempt
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import BudgetSpec, ModelSpec, TaskSpec, WorkerSpec
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    AlertKey,
    Analysis,
    AnalysisAuthor,
    Attempt,
    Budget,
    Completion,
    Delivery,
    DeliveryState,
    Ending,
    EscalationState,
    Grant,
    Intervention,
    Meter,
    Outcome,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Step,
    Terms,
)
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.history import AttemptEvidence, History
from midwatch_supervisor.decide.prompt import render
from midwatch_supervisor.decide.reading import AttemptReading, means_of
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tests import factories as make
from midwatch_tools.data_blocks import DataBlocks

Write = Callable[..., Awaitable[int]]

TASK = TaskSpec(id="fix", goal="Fix it.", acceptance=("true",))
KEYS = (AlertKey(rule="cycle"),)
PLAN = make.plan("one", "two", done=1)


def make_analysis(number: int, by: AnalysisAuthor = AnalysisAuthor.WORKER) -> Analysis:
    return make.analysis(0, what=f"it failed {number}", by=by)


def checkpoint_step(number: int, progress: int = 50) -> Step:
    return make.reflecting(number, progress, 60, notes="half done")


class Scene:
    """An attempt, and what is written and read of it."""

    def __init__(self, journal: Journal, attempt: Attempt, write: Write) -> None:
        self.journal, self.attempt, self.write = journal, attempt, write

    async def context(self, *keys: AlertKey, settings: Settings | None = None) -> DecisionContext:
        of = (self.journal, self.attempt, TASK, settings or Settings())
        return (await AttemptReading.read(*of)).context(keys)

    async def evidence(self, **attempt: str) -> AttemptEvidence:
        return await AttemptEvidence.read(self.journal, replace(self.attempt, **attempt))

    async def deliver(self, issued: Intervention) -> int:
        id = await self.write(issued)
        await self.write(make.delivery(id))
        return id


@pytest.fixture
def scene(journal: Journal, attempt: Attempt, write: Write) -> Scene:
    return Scene(journal, attempt, write)


async def test_the_next_attempt_learns_what_was_found_tried_and_kept(scene: Scene) -> None:
    await scene.write(
        checkpoint_step(1), *map(make_analysis, range(7)), make_analysis(9, AnalysisAuthor.WATCH)
    )
    await scene.deliver(make.intervention(Action.GRANT_BUDGET, petition=1))
    id = await scene.deliver(make.intervention(message="Look.", answers=KEYS))
    await scene.write(make.outcome(id, Outcome.NO_EFFECT, reason="still fires"))
    terms = Terms(keep=("src/*.py",))
    await scene.deliver(make.intervention(Action.RESTART, message="Read first.", terms=terms))
    await scene.write(make.ended(Ending.RESTARTED, reason="went round"))
    assert (await scene.evidence()).past == PastAttempt(
        number=1,
        reason="went round",
        advice="Read first.",
        last_notes="half done",
        analyses=tuple(f"it failed {number}: a typo → mend it" for number in range(2, 7)),
        tried=("nudge: no effect: still fires",),
        kept=("src/*.py",),
    )


async def test_a_decision_rests_on_what_the_worker_wrote_down(scene: Scene) -> None:
    check = PlanCheck(plan_step=2, assumption="a", reality="b", impact="c")
    claimed = Completion(plan_step=1, goal="one", confidence=60, accepted=True, flag="untested")
    await scene.write(PLAN, checkpoint_step(1, 0), make_analysis(1), check, claimed)
    context = await scene.context()
    assert [each.step for each in context.analyses] == [1]
    assert (context.plan_check, context.completions) == (check, (claimed,))


async def test_requirement_22_it_is_told_whether_the_budget_is_enough(scene: Scene) -> None:
    used = make.change(budget=Budget(requests=Meter(used=45, limit=60)))
    await scene.write(PLAN, checkpoint_step(1, 0), used)
    assert (
        "45 of 60 requests, 0 tokens, 0 min. "
        "about 50 % done; at this rate the requests are not enough"
    ) in render(await scene.context(), 5000, DataBlocks.with_new_code())


async def test_a_forecast_counts_from_where_the_attempt_began(scene: Scene) -> None:
    for used, number in ((20, 1), (24, 2)):
        budget = Budget(requests=Meter(used=used, limit=100))
        await scene.write(make.change(budget=budget), make.step(number))
    settings = Settings(monitor=MonitorSettings(outcome_after=4))
    assert (await scene.context(settings=settings)).then_used == 0.40


async def test_what_was_left_alone_on_purpose_is_known(scene: Scene) -> None:
    closed = make.escalation(3, state=EscalationState.CLOSED)
    await scene.write(make.escalation(3), make.decision(Action.OBSERVE, 3), closed)
    assert (await scene.context(*KEYS)).observed == frozenset(KEYS)


async def test_a_report_of_one_plan_step_tells_nothing_of_the_next(scene: Scene) -> None:
    await scene.write(PLAN, checkpoint_step(1, 80))
    assert (await scene.context()).done == 50
    await scene.write(make.reflecting(2, 40, 60, plan_step=2))
    assert (await scene.context()).done == 70


async def test_why_git_cannot_read_a_workspace_is_said(scene: Scene, tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "home" / "work" / "r1" / "fix-1"
    folder.mkdir(parents=True)
    (source / ".git").mkdir(parents=True)
    evidence = await scene.evidence(workspace=str(folder))
    wanted = Assignment(task=TASK, worker="w", spec=WorkerSpec(), models={}, workspace=source)
    evidence.task = replace(evidence.task, spec=wanted.model_dump_json())
    with pytest.raises(WorkspaceError, match=f"^{folder} is not a worktree of {source}$"):
        await evidence.diff()


async def test_it_is_said_where_a_moved_attempts_files_are(scene: Scene, tmp_path: Path) -> None:
    await scene.write(make.change(node="node-b"))
    with pytest.raises(WorkspaceError, match="its files are on node-b"):
        await (await scene.evidence(workspace=str(tmp_path))).diff()


NONE = Grant()


def history(*records: tuple[int, Record]) -> History:
    """Of pairs of an attempt and a record, with the ids 1, 2, 3 …"""
    found = History()
    for id, (attempt, record) in enumerate(records, start=1):
        found.take(make.entry(id, record, task=4, attempt=attempt))
    return found


def make_intervention(
    action: Action, *, petition: int | None = None, grant: Grant = NONE, model: str = ""
) -> Intervention:
    return make.intervention(action, terms=Terms(grant=grant, model=model), petition=petition)


def make_delivery(intervention: int, state: DeliveryState = DeliveryState.DELIVERED) -> Delivery:
    return make.delivery(intervention, state, author="ann", comment="no")


def test_a_restart_that_is_judged_on_the_next_attempt_belongs_to_the_one_before() -> None:
    found = history(
        (1, make_intervention(Action.RESTART)),
        (1, make_delivery(1)),
        (2, make.outcome(1, Outcome.NO_EFFECT)),
    )
    (earlier,) = found.earlier(before=2)
    assert (earlier.action, earlier.outcome) == (Action.RESTART, Outcome.NO_EFFECT)
    assert earlier.reason == "it moves"
    assert found.earlier(attempt=2) == ()


def test_the_check_that_an_attempt_failed_is_known_to_the_next_that_runs_none() -> None:
    found = history(
        (1, Acceptance(check="pytest", passed=False)),
        (2, Acceptance(check="ruff", passed=False)),
        (2, Acceptance(check="pytest", passed=False)),
        (2, Acceptance(check="ruff", passed=True)),
        (4, Acceptance(check="pytest", passed=True)),
    )
    assert [found.failed_check(before=each) for each in range(1, 6)] == [
        *("", "pytest", "pytest", "pytest", "")
    ]


def test_what_did_not_arrive_and_what_only_answers_a_worker_was_not_tried() -> None:
    expired = (make_intervention(Action.NUDGE), make_delivery(2, DeliveryState.EXPIRED))
    granted = (make_intervention(Action.GRANT_BUDGET, petition=9), make_delivery(4))
    acts = (
        make_intervention(Action.NUDGE),
        *expired,
        *granted,
        make_intervention(Action.PAUSE),
        make_delivery(6),
    )
    assert history(*((1, each) for each in acts)).earlier() == ()


def test_what_is_granted_or_under_way_counts_but_not_what_was_lost() -> None:
    five = Grant(requests=5)
    found = history(
        (1, make_intervention(Action.GRANT_BUDGET, grant=five)),
        (2, make_intervention(Action.GRANT_BUDGET, grant=five, petition=8)),
        (2, make_intervention(Action.GRANT_BUDGET, grant=five)),
        (2, make_delivery(3, DeliveryState.REJECTED)),
    )
    assert (len(found.grants), found.granted) == (2, Grant(requests=10))


def test_an_answer_that_was_rejected_is_none_and_its_reason_is_known() -> None:
    asked = make_intervention(Action.GRANT_BUDGET, petition=8)
    rejected = history((1, asked), (1, make_delivery(1, DeliveryState.REJECTED)))
    assert (rejected.answered(8), rejected.turned_down(8)) == (False, "ann: no")
    assert (history((1, asked)).answered(8), history().answered(8)) == (True, False)


def test_revisions_that_workers_made_are_counted_over_the_whole_task() -> None:
    granted = PlanCheck(plan_step=2, assumption="", reality="", impact="", proposed=("a",))
    pending = replace(granted, ruling=Ruling.PENDING)
    approved = make_intervention(Action.REPLAN, petition=2)
    assert history((1, granted), (1, pending), (2, approved)).approved == 2


def test_requirement_17_what_the_supervisor_used_is_counted_by_attempt() -> None:
    used = Spending(role="supervisor", model="m", requests=3)
    other = Spending(role="planner", model="m", requests=9)
    found = history((1, used), (1, used), (2, used), (1, other))
    assert [found.requests_spent(1), found.requests_spent(2), found.requests_spent(3)] == [6, 3, 0]


def attempt(number: int, worker: str) -> Attempt:
    return make.attempt(number, task=4, number=number, worker=worker)


WITH_OTHERS = TaskSpec(
    id="fix",
    goal="Fix it.",
    acceptance=("true",),
    worker="one",
    other_workers=("two", "three"),
    max_attempts=3,
    budget=BudgetSpec(requests=60),
)
MODELS = (ModelSpec(name="big"), ModelSpec(name="bigger"))
ASSIGNED = Assignment(
    task=WITH_OTHERS, worker="one", spec=WorkerSpec(other_models=MODELS), models={}, workspace=None
)


def means(
    *before: tuple[int, Record], attempts: int = 1, of: Assignment | None = ASSIGNED
) -> Means:
    """Of the task's newest attempt, whose workers were `one` and then `two`."""
    workers = [attempt(1, "one"), attempt(2, "two")][:attempts]
    policy = PolicySettings()
    return means_of(WITH_OTHERS, of, workers, history(*before), model="m", policy=policy)


def test_the_means_are_what_had_no_turn_yet_and_what_is_left_of_the_grants() -> None:
    assert means((1, make_intervention(Action.SWITCH_MODEL, model="big"))) == Means(
        attempts=2,
        models=("bigger",),
        workers=("two", "three"),
        grant=Grant(requests=15),
        may_split=True,
    )
    second = means(
        (1, make_intervention(Action.GRANT_BUDGET, grant=Grant(requests=20))), attempts=2
    )
    assert (second.attempts, second.workers) == (1, ("three",))
    assert second.grant == Grant(requests=10)


def test_requirement_12_what_came_of_a_split_is_not_split_again() -> None:
    part = ASSIGNED.model_copy(update={"parent": "whole"})
    assert [means(of=each).may_split for each in (ASSIGNED, part, None)] == [True, False, False]


def test_what_a_person_issued_in_other_words_was_not_turned_down() -> None:
    proposed = replace(make_intervention(Action.NUDGE), escalation=3, needs_approval=True)
    reworded = replace(proposed, by=Actor.OPERATOR, needs_approval=False)
    turned_down = [(1, proposed), (1, make_delivery(1, DeliveryState.REJECTED))]
    assert history(*turned_down).rejected_actions(1) == {Action.NUDGE}
    assert history(*turned_down, (1, reworded)).rejected_actions(1) == frozenset()
