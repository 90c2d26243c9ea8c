"""How an attempt begins: its plan, its budget, what is true of it at first."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midwatch_agents.prompt import PastAttempt, attempt_lines, first_prompt
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import FileCheck, TaskSpec
from midwatch_monitor.errors import MidwatchError, ProviderRefusedError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Attempt,
    Budget,
    Change,
    Fault,
    Lifecycle,
    Meter,
    Plan,
    PlanStep,
    Record,
    Task,
)
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.workspaces.changes import list_files
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.instructions import outline
from midwatch_tools.plan_change import share_requests
from midwatch_tools.tools.board import Board

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlined:
    """A plan, and what else belongs into the journal with it."""

    plan: Plan
    records: tuple[Record, ...] = ()


def own_plan(task: TaskSpec) -> Plan:
    """The plan that the task's owner wrote; without one, the task itself is its plan step."""
    written = [
        PlanStep(
            title=step.title,
            files=step.files,
            acceptance=step.acceptance,
            confidence=step.confidence,
        )
        for step in task.plan
        if not isinstance(step, str)
    ]
    return Plan(steps=tuple(written) or (PlanStep(title=task.label),))


def budget_of(task: TaskSpec, last: Budget | None) -> Budget:
    """The task's limits; after a first attempt what that left, with what it was granted."""
    if last is not None:
        return last
    limits = task.budget
    return Budget(
        requests=Meter(limit=limits.requests),
        tokens=Meter(limit=limits.tokens),
        cost_usd=Meter(limit=limits.cost_usd),
        minutes=Meter(limit=limits.minutes),
    )


def circumstances(plan: Plan, budget: Budget, settings: Settings) -> tuple[Plan, Change]:
    """The plan with its shares of the requests, and all that is true when work begins."""
    plan = share_requests(plan, budget.requests, least=settings.plan.min_requests)
    in_hand = plan.in_hand
    return plan, Change(
        reflect=True,
        reflect_every=settings.reflect.remind_every,
        plan_step=plan.current,
        plan_steps=len(plan.steps),
        plan_step_requests=in_hand.requests if in_hand else None,
        revision=plan.revision,
        lifecycle=Lifecycle.WORKING,
        budget=budget,
    )


async def outline_plan(
    model: "Model | None",
    assignment: Assignment,
    *,
    past: Sequence[PastAttempt],
    precedents: str,
    listing: str,
    settings: Settings,
) -> Outlined:
    """The planner's plan. Where it has none, the task itself is the plan step, and a fault says so.

    The planner sees how similar tasks went, and how the attempts before this one did.
    """
    from midwatch_agents.planner import draft_plan

    task = assignment.task
    if model is None:
        return _without_plan(task, "there is no model for the planner")
    try:
        draft = await draft_plan(
            model,
            goal=task.goal,
            acceptance=check_words(task),
            precedents="\n".join([precedents, *(attempt_lines(each) for each in past)]).strip(),
            listing=listing,
            settings=settings,
        )
    except MidwatchError as error:
        # Why stands in the journal: a refused plan may quote what the planner was shown.
        cause = error.__cause__
        why = f": {cause.reason} ({cause.url})" if isinstance(cause, ProviderRefusedError) else ""
        log.warning("task %s begins without a plan: the planner failed%s", task.id, why)
        return _without_plan(task, str(error))
    return Outlined(plan=Plan(steps=draft.steps), records=(draft.spending,))


def _without_plan(task: TaskSpec, error: str) -> Outlined:
    return Outlined(plan=own_plan(task), records=(Fault(part="planner", error=error),))


def check_words(task: TaskSpec) -> tuple[str, ...]:
    """The acceptance checks in words."""
    return tuple(
        f"the file {check.file} is there and not empty" if isinstance(check, FileCheck) else check
        for check in task.acceptance
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Introduces one attempt to its work."""

    resources: RunResources
    task: Task
    assignment: Assignment
    agents: TaskAgents
    attempt: Attempt
    workspace: Workspace
    past: tuple[PastAttempt, ...] = ()

    async def prompt(self, recorder: Recorder, board: Board) -> str:
        """The first prompt; what is in it of lessons and facts is in the journal by then.

        Has the planner write the plan first, unless there is one; it reads what was learned too.
        """
        blocks = DataBlocks.with_new_code()
        learned = await self._learned_text(recorder, blocks)
        await self._plan(recorder, learned)
        # A planner has read how similar tasks went; its plan says what follows from it.
        before = not self.assignment.planned
        return first_prompt(
            self.assignment.task,
            outline(recorder.plan),
            number=self.attempt.number,
            past=self.past,
            blocks=blocks,
            learned=learned,
            board=await board.beside(blocks),
            precedents=await self.resources.learning.precedents(self.task) if before else "",
            provisional=self.assignment.provisional,
        )

    async def _learned_text(self, recorder: Recorder, blocks: DataBlocks) -> str:
        text, records = await self.resources.learning.recall(
            self.task, self.assignment, self.attempt, recorder.plan, blocks
        )
        if records:
            await recorder.record(*records)
        return text

    async def _plan(self, recorder: Recorder, learned: str) -> None:
        if recorder.plan.steps:
            return
        went = await self.resources.learning.precedents(self.task)
        outlined = await outline_plan(
            self.agents.planner,
            self.assignment,
            past=self.past,
            precedents="\n\n".join(filter(None, (went, learned))),
            listing=await list_files(self.workspace),
            settings=self.resources.settings,
        )
        begun = circumstances(outlined.plan, recorder.budget, self.resources.settings)
        await recorder.record(*outlined.records, *begun)
