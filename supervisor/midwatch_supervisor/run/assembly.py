"""The whole of a split task: put together from its finished parts, and checked."""

from collections.abc import Sequence

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Commit, Draft, Ending, Plan
from midwatch_supervisor.present.assignment import whole_of
from midwatch_supervisor.run.attempt_end import Ended
from midwatch_supervisor.run.completion import Work, finish
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.workspaces.changes import changed_names
from midwatch_supervisor.workspaces.placement import WorkspacePlan, make_workspace


async def assemble(
    resources: RunResources, job: Job, children: Sequence[Job], plan: WorkspacePlan
) -> Ended:
    """Put the parts together beside the attempt that was split, and check the whole there.

    `plan` has their branches, or without git the folder of the last of them. A part that failed,
    or a conflict between parts, is the reason why the whole fails.
    """
    failed = next((child for child in children if not child.completed), None)
    if failed is not None:
        reason = f"its part {failed.name} {failed.state.lifecycle}: {failed.state.reason}"
        return Ended(ending=failed.ending or Ending.ERROR, reason=reason)
    assert job.workspace is not None
    try:
        workspace = await make_workspace(plan, whole_of(job.workspace))
    except WorkspaceError as error:
        return Ended(ending=Ending.ERROR, reason=str(error))
    job.branch, job.workspace = workspace.branch, workspace.folder
    changed = [name for child in children for name in await _changed(resources, plan, child)]
    work = Work(plan=Plan(steps=()), changed=sorted(set(changed)))
    return await finish(resources, job.assignment, workspace, work, job.agents.reviewer)


async def _changed(resources: RunResources, plan: WorkspacePlan, child: Job) -> tuple[str, ...]:
    if child.workspace is None or not plan.versioned:
        return ()
    last = (await resources.journal.attempts(child.task.id))[-1]
    workspace = await resources.placement.find(plan, last)
    return () if workspace.worktree is None else await changed_names(workspace.worktree)


def whole_records(resources: RunResources, job: Job, ended: Ended) -> Commit:
    """What was found of a whole, as one commit; it belongs to no attempt."""
    at = resources.clock()
    return Commit(
        drafts=tuple(Draft(record=each, at=at, task=job.task.id) for each in ended.records)
    )
