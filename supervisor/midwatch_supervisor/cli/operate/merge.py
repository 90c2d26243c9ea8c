"""`midwatch merge`: a completed task's branch into the branch that its owner works on."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Lifecycle
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.present.file_changes import change_lines, changes_text
from midwatch_supervisor.present.lookup import find, task_state, task_states
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.workspaces.merge import (
    Merge,
    give_back,
    merge_branch,
    plan_cloned,
    plan_fetched,
    plan_merge,
    rehearse,
)
from midwatch_supervisor.workspaces.removal import remove_workspace, uncommitted
from midwatch_supervisor.workspaces.task_workspace import TaskWorkspace, result_of
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.git import git, is_repository

if TYPE_CHECKING:
    from midwatch_monitor.journal import Journal


async def merge(
    task: Annotated[
        str, Parameter(name="TASK", help="A completed task's id, or the unique beginning of one.")
    ],
    *,
    run: RunOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Merge a completed task's branch into the branch that is checked out in its repository.

    Prints the files first. Afterwards the branch and its worktree are removed.
    """
    async with await journal_to_read(journal) as opened:
        found = await find(opened, task, run=run)
        state = await task_state(opened, found.task)
        result = _accepted(state)
        if not await result.there() and await result.merged():
            write_line(f"{branch_of(result.folder)} was merged before, and removed")
            return
        plan = await plan_of(opened, result)
        others = await task_states(opened, found.task.run)
    try:
        await _carry_out(plan, dry_run=dry_run)
    finally:
        if dry_run:
            await give_back(plan)
    if not dry_run:
        await _clean_up(plan, result, run_over=all(each.over for each in others))


async def _carry_out(plan: Merge, *, dry_run: bool) -> None:
    if not plan.commits:
        write_line(f"{plan.branch} is in {plan.into} already")
        return
    for text in change_lines(plan.files):
        write_line(text)
    if plan.left_out:
        write_line(
            f"left out: {brief(', '.join(plan.left_out))} (build rubbish, or ignored by git here)"
        )
    await (rehearse if dry_run else merge_branch)(plan)
    commits = counted(plan.commits, "commit") + (" as one" if plan.left_out else "")
    done = "would merge" if dry_run else "merged"
    write_line(
        f"{done} {plan.branch} into {plan.into} ({changes_text(plan.files)}; {commits}) "
        f"in {plan.home}"
    )


async def _clean_up(plan: Merge, result: TaskWorkspace, *, run_over: bool) -> None:
    """Remove what the merge has made needless, unless something may still need it."""
    await give_back(plan)
    if not (result.made_by_run and await result.there()):
        return
    workspace = await result.open()
    if not run_over:
        write_line(f"kept {workspace.branch}: its run is not over; `midwatch clean` removes it")
    elif await uncommitted(workspace):
        write_line(f"kept {workspace.folder}: it holds files that are not committed")
    else:
        await remove_workspace(workspace)
        write_line(f"removed the branch and its worktree {workspace.folder}")


async def plan_of(journal: "Journal", result: TaskWorkspace) -> Merge:
    """The merge of a task's result, wherever that was made."""
    assignment = result.assignment
    bundles = Bundles(journal)
    if assignment is not None and assignment.base and await bundles.snapshots(result.attempt.id):
        home = await _repository(assignment.workspace, assignment.source)
        return await plan_fetched(bundles, result.attempt, branch_of(result.folder), home)
    workspace = await _with_branch(result)
    if assignment is not None and assignment.origin:
        return await plan_cloned(workspace, await _repository(None, assignment.origin))
    return await plan_merge(workspace, result.source)


async def _repository(source: Path | None, name: str) -> Path:
    """Where the owner works: the task's workspace, or the repository around this folder."""
    if source is not None and await asyncio.to_thread(is_repository, source):
        return source
    here = await asyncio.to_thread(Path.cwd)
    try:
        return Path((await git(here, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    except WorkspaceError as error:
        raise UsageError(f"{here} is in no git repository: call it in a clone of {name}") from error


async def _with_branch(result: TaskWorkspace) -> Workspace:
    """Where the branch that completed the task is checked out."""
    workspace = await result.open()
    if workspace.worktree is None:
        raise UsageError(
            f"{result.name} has no branch: it did not work in git; its result is in {result.folder}"
        )
    return workspace


def _accepted(state: TaskState) -> TaskWorkspace:
    """Where the result is of a task that was completed."""
    name, status = state.task.name, state.lifecycle
    if status is not Lifecycle.COMPLETED:
        raise UsageError(f"{name} is {status}; only a completed task can be merged")
    result = result_of(state)
    if result is None:
        raise UsageError(f"no attempt of {name} was accepted")
    return result
