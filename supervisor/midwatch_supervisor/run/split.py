"""A task that is split: its parts as tasks of their own, and the whole put together again."""

import math
from collections.abc import Collection
from dataclasses import replace

from midwatch_monitor.config.tasks import BudgetSpec, TaskSpec
from midwatch_monitor.records import Budget, Meter, Part, Plan, PlanStepState, Terms
from midwatch_supervisor.present.assignment import Assignment

_LONGEST = 70
"""Characters of the parent's name in the names of its parts, which may have 80."""


def parts(
    parent: Assignment, terms: Terms, budget: Budget, *, taken: Collection[str]
) -> tuple[Assignment, ...]:
    """The tasks that a split makes, each after the one before; none if too little is left. Pure.

    They share evenly what is left of the parent's budget, and what one does not use goes to the
    next (`carried`). A part without checks of its own cannot
    be held to those of the whole, which must not pass before the last part is done: the last one
    is, and an earlier one is provisional: it has to change something, is done with a flag, and is
    proven or refuted when the whole is checked. `taken` are the names that other tasks have.
    """
    count = len(terms.parts)
    share = shared_out(budget, count)
    if share is None:
        return ()
    made: list[Assignment] = []
    for number, part in enumerate(terms.parts, start=1):
        before = (made[-1].task.id,) if made else ()
        own = part.acceptance or parent.task.acceptance
        task = TaskSpec(
            id=_name(parent.task.id, number, taken),
            title=part.title,
            goal=_goal(parent, part, number, count),
            worker=parent.task.worker,
            workspace=parent.task.workspace,
            acceptance=own,
            budget=share,
            depends_on=(*parent.task.depends_on, *before),
            max_attempts=parent.task.max_attempts,
            other_workers=parent.task.other_workers,
        )
        made.append(
            parent.model_copy(
                update={
                    "task": task,
                    "parent": parent.task.id,
                    "part": number,
                    "provisional": not part.acceptance and number < count,
                }
            )
        )
    return tuple(made)


def keeps_work(terms: Terms, plan: Plan) -> bool:
    """Whether the parts go on with the work of the attempt that was split.

    They do where its terms keep anything, and where plan steps are done already: the parts are
    what is left of the plan, and would lack them.
    """
    return bool(terms.keep) or any(step.state is PlanStepState.DONE for step in plan.steps)


def _goal(parent: Assignment, part: Part, number: int, count: int) -> str:
    return (
        f"{part.goal.strip()}\n\nThis is part {number} of {count} of a larger task, "
        f"{parent.task.label}; do this part only. The larger task:\n\n{parent.task.goal.strip()}"
    )


def _name(parent: str, number: int, taken: Collection[str]) -> str:
    stem = parent[:_LONGEST]
    names = (f"{stem}.{number}", f"{stem}.part{number}", f"{stem}.part{number}.of")
    return next((name for name in names if name not in taken), names[-1])


def shared_out(budget: Budget, count: int) -> BudgetSpec | None:
    """An even share of what is left, for `count` tasks; `None` if that is nothing somewhere."""
    requests = _share(budget.requests, count)
    tokens = _share(budget.tokens, count)
    cost_usd = _share(budget.cost_usd, count)
    minutes = _share(budget.minutes, count)
    if min(requests, tokens) < 1 or min(cost_usd, minutes) <= 0:
        return None
    return BudgetSpec(
        requests=None if math.isinf(requests) else math.floor(requests),
        tokens=None if math.isinf(tokens) else math.floor(tokens),
        cost_usd=None if math.isinf(cost_usd) else cost_usd,
        minutes=None if math.isinf(minutes) else minutes,
    )


def carried(share: Budget, left: Budget) -> Budget:
    """A part's share with what the part before it did not use. Pure."""
    return Budget(
        requests=_add(share.requests, left.requests),
        tokens=_add(share.tokens, left.tokens),
        cost_usd=_add(share.cost_usd, left.cost_usd),
        minutes=_add(share.minutes, left.minutes),
    )


def _add(share: Meter, left: Meter) -> Meter:
    if share.limit is None or left.limit is None:
        return share
    return replace(share, limit=share.limit + max(0.0, left.limit - left.used))


def _share(meter: Meter, count: int) -> float:
    return math.inf if meter.limit is None else (meter.limit - meter.used) / count
