"""How an attempt begins: its plan, its budget, its initial state, and the messages so far."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from midwatch_agents.prompt import PastAttempt, attempt_lines
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import FileCheck, TaskSpec
from midwatch_monitor.errors import (
    JournalCorruptError,
    MidwatchError,
    ProviderRefusedError,
    WorkerError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Budget,
    Change,
    Fault,
    Lifecycle,
    Meter,
    Plan,
    PlanStep,
    Record,
)
from midwatch_supervisor.decide.policy import RESOURCES
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.numbers import count_noun
from midwatch_tools.plan_change import share_requests

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)


def own_plan(task: TaskSpec) -> Plan:
    """Return the plan of the task file; without one, the task itself is the only plan step."""
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
    """Return `last`, the budget so far, or the task's own limits for a first attempt."""
    if last is not None:
        return last
    return Budget(**{name: Meter(limit=getattr(task.budget, name)) for name in RESOURCES})


def circumstances(plan: Plan, budget: Budget, settings: Settings) -> tuple[Plan, Change]:
    """Return the plan with its shares of the requests, and the state in which work begins."""
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
) -> tuple[Plan, tuple[Record, ...]]:
    """Have the planner write the plan; return it with the records of its cost and its fault.

    The planner sees how similar tasks and the earlier attempts went. If it fails, the plan is
    `own_plan`.
    """
    from midwatch_agents.consultation import spent_before
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
        # The log leaves out the full error: a refused plan may quote what the planner was shown.
        cause = error.__cause__
        why = f": {cause.reason} ({cause.url})" if isinstance(cause, ProviderRefusedError) else ""
        log.warning("task %s begins without a plan: the planner failed%s", task.id, why)
        return _without_plan(task, str(error), *spent_before(error))
    return draft.answer, (draft.spending,)


def _without_plan(task: TaskSpec, error: str, *spent: Record) -> tuple[Plan, tuple[Record, ...]]:
    return own_plan(task), (*spent, Fault(part="planner", error=error))


def check_words(task: TaskSpec) -> tuple[str, ...]:
    """Return the acceptance checks in words."""
    return tuple(
        f"the file {check.file} is there and not empty" if isinstance(check, FileCheck) else check
        for check in task.acceptance
    )


async def saved_history(journal: Journal, attempt: int) -> list[ModelMessage]:
    """Return the messages so far. Raise WorkerError if the attempt cannot resume from them."""
    try:
        saved = await journal.messages(attempt)
        await journal.results(attempt)  # raises if corrupt; the watch reads them again
        return [
            message
            for each in saved
            for message in ModelMessagesTypeAdapter.validate_json(each.body)
        ]
    except JournalCorruptError as error:
        raise WorkerError(f"the attempt cannot be resumed: {error}") from error
    except ValidationError as error:  # not chained: it quotes the history
        broken = f"its history is not valid ({count_noun(error.error_count(), 'error')})"
        raise WorkerError(f"the attempt cannot be resumed: {broken}") from None
