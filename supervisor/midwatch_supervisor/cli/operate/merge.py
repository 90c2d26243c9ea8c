"""`midwatch merge`: a completed task's branch into the branch that its owner works on."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Ending, Lifecycle
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.present.assignment import Assignment, branch_of, whole_of
from midwatch_supervisor.present.lookup import account_of, assignment_of, find
from midwatch_supervisor.workspaces.merge import (
    Merge,
    give_back,
    merge_branch,
    plan_cloned,
    plan_fetched,
    plan_merge,
    rehearse,
)
from midwatch_supervisor.workspaces.placement import workspace_of
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
    """Merge a completed task's branch into the branch that is checked out in its repository."""
    async with await journal_to_read(journal) as opened:
        found = await find(opened, task, run=run)
        account = await account_of(opened, found.task)
        plan = await _plan(opened, account)
    try:
        if not plan.commits:
            write_line(f"{plan.branch} is in {plan.into} already")
        elif dry_run:
            await rehearse(plan)
            write_line(f"would merge {_named(plan)}")
        else:
            await merge_branch(plan)
            write_line(f"merged {_named(plan)}")
    finally:
        if dry_run:
            await give_back(plan)


async def _plan(journal: "Journal", account: TaskState) -> Merge:
    """The merge of what completed the task, wherever that was done."""
    attempt, folder = _accepted(account)
    assignment = assignment_of(account.task)
    source = assignment.workspace if assignment else None
    bundles = Bundles(journal)
    if assignment is not None and assignment.base and await bundles.snapshots(attempt.id):
        home = await _repository(source, assignment.source)
        return await plan_fetched(bundles, attempt, branch_of(folder), home)
    workspace = await _workspace(account, assignment, folder)
    if assignment is not None and assignment.origin:
        return await plan_cloned(workspace, await _repository(None, assignment.origin))
    return await plan_merge(workspace, source)


async def _repository(source: Path | None, name: str) -> Path:
    """Where the owner works: the task's workspace, or the repository around this folder."""
    if source is not None and await asyncio.to_thread(is_repository, source):
        return source
    here = await asyncio.to_thread(Path.cwd)
    try:
        return Path((await git(here, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    except WorkspaceError as error:
        raise UsageError(f"{here} is in no git repository: call it in a clone of {name}") from error


async def _workspace(account: TaskState, assignment: Assignment | None, folder: Path) -> Workspace:
    """Where the branch that completed the task is checked out."""
    name = account.task.name
    if not await asyncio.to_thread(folder.is_dir):
        raise UsageError(f"the workspace of {name} is gone: there is no folder {folder}")
    try:
        workspace = await workspace_of(assignment, folder)
    except WorkspaceError as error:
        raise UsageError(f"{name} cannot be merged: {error}") from error
    if workspace.worktree is None:
        raise UsageError(f"{name} has no branch: it did not work in git; its result is in {folder}")
    return workspace


def _accepted(account: TaskState) -> tuple[Attempt, Path]:
    """What completed the task: the attempt, and the workspace of its result."""
    name, status = account.task.name, account.lifecycle
    if status is not Lifecycle.COMPLETED:
        raise UsageError(f"{name} is {status}; only a completed task can be merged")
    for each in reversed(account.attempts.values()):
        workspace = Path(each.attempt.workspace)
        if each.lifecycle is Lifecycle.COMPLETED:
            return each.attempt, workspace
        if each.transition.ending is Ending.SPLIT:
            return each.attempt, whole_of(workspace)
    raise UsageError(f"no attempt of {name} was accepted")


def _named(plan: Merge) -> str:
    commits = "1 commit" if plan.commits == 1 else f"{plan.commits} commits"
    return f"{plan.branch} into {plan.into} ({commits}) in {plan.home}"
