"""Splits a task into parts that are tasks of their own, and puts the whole together again."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from midwatch_monitor.config.tasks import BudgetSpec, TaskSpec
from midwatch_monitor.errors import MachineError, WorkspaceError
from midwatch_monitor.records import (
    Budget,
    Ending,
    Meter,
    Part,
    Plan,
    PlanStepState,
    Terms,
)
from midwatch_supervisor.decide.policy import COUNTED, RESOURCES, meter
from midwatch_supervisor.present.assignment import Assignment, whole_of
from midwatch_supervisor.run.attempt_end import Ended
from midwatch_supervisor.run.completion import FinishedWork, finish
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.workspaces.changes import changed_names
from midwatch_supervisor.workspaces.workspace import WorkspacePlan

_LONGEST = 70
"""Characters of the parent's name that its parts' names keep; a name may have 80."""


def parts(
    parent: Assignment, terms: Terms, budget: Budget, *, taken: Collection[str]
) -> tuple[Assignment, ...]:
    """Return the tasks that a split makes, in order; none if too little budget is left. Pure.

    Each part depends on the one before. They share the rest of the parent's budget evenly, and
    what one does not use goes to the next (`carry_budget`). A part without checks of its own gets
    those of the whole, which need not pass before the last part is done. So only the last part must
    pass them; an earlier one is provisional: it has to change something, completes with a flag, and
    is proven or refuted when the whole is checked. `taken` are the names of other tasks.
    """
    count = len(terms.parts)
    share = even_share(budget, count)
    if share is None:
        return ()
    made: list[Assignment] = []
    for number, part in enumerate(terms.parts, start=1):
        before = (made[-1].task.id,) if made else ()
        own = part.acceptance or parent.task.acceptance
        task = TaskSpec(
            id=_part_name(parent.task.id, number, taken),
            title=part.title,
            goal=_part_goal(parent, part, number, count),
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
    """Whether the parts continue the work of the attempt that was split.

    They do if its terms keep files, or if plan steps are already done: the parts are then only the
    rest of the plan, and need that work.
    """
    return bool(terms.keep) or any(step.state is PlanStepState.DONE for step in plan.steps)


def _part_goal(parent: Assignment, part: Part, number: int, count: int) -> str:
    return (
        f"{part.goal.strip()}\n\nThis is part {number} of {count} of a larger task, "
        f"{parent.task.label}; do this part only. The larger task:\n\n{parent.task.goal.strip()}"
    )


def _part_name(parent: str, number: int, taken: Collection[str]) -> str:
    stem = parent[:_LONGEST]
    names = (f"{stem}.{number}", f"{stem}.part{number}", f"{stem}.part{number}.of")
    return next((name for name in names if name not in taken), names[-1])


def even_share(budget: Budget, count: int) -> BudgetSpec | None:
    """Return an even share of what is left for `count` tasks; `None` if a limit is used up."""
    shares: dict[str, float | None] = dict.fromkeys(RESOURCES)
    for name in RESOURCES:
        whole = meter(budget, name)
        if whole.limit is not None:
            share = (whole.limit - whole.used) / count
            shares[name] = share = math.floor(share) if name in COUNTED else share
            if share <= 0:
                return None
    return BudgetSpec.model_validate(shares)


def carry_budget(share: Budget, left: Budget) -> Budget:
    """Return a part's share plus the unused budget of the part before it. Pure."""
    each = {name: _carry_over(meter(share, name), meter(left, name)) for name in RESOURCES}
    return Budget(**each)


def _carry_over(share: Meter, left: Meter) -> Meter:
    if share.limit is None or left.limit is None:
        return share
    return replace(share, limit=share.limit + max(0.0, left.limit - left.used))


async def assemble(
    resources: RunResources, job: Job, children: Sequence[Job], plan: WorkspacePlan
) -> Ended:
    """Put the parts together in a folder next to the split attempt's, and check the whole there.

    `plan` has their branches, or without git the folder of the last one. If a part failed, or parts
    conflict, the whole fails for that reason. Raises MachineError in a fleet.
    """
    failed = next((child for child in children if not child.completed), None)
    if failed is not None:
        reason = f"its part {failed.name} {failed.state.lifecycle}: {failed.state.reason}"
        return Ended(ending=failed.failure, reason=reason)
    assert job.workspace is not None
    try:
        workspace = await resources.placement.make(plan, whole_of(job.workspace))
    except WorkspaceError as error:
        if resources.snapshot_store is not None and isinstance(error, MachineError):
            raise  # another node may make it
        return Ended(ending=Ending.ERROR, reason=str(error))
    job.branch, job.workspace = workspace.branch, workspace.folder
    changed = [name for child in children for name in await _changed_files(resources, plan, child)]
    work = FinishedWork(plan=Plan(steps=()), changed=sorted(set(changed)))
    return await finish(resources, job.assignment, workspace, work, job.agents.reviewer)


async def _changed_files(
    resources: RunResources, plan: WorkspacePlan, child: Job
) -> tuple[str, ...]:
    if child.workspace is None or not plan.versioned:
        return ()
    last = (await resources.journal.attempts(child.task.id))[-1]
    workspace = await resources.placement.find(plan, last)
    return () if workspace.worktree is None else await changed_names(workspace.worktree)
