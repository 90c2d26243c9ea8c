"""`midwatch merge`: a completed task's branch into the branch that its owner works on."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.words import Ending, Lifecycle
from midwatch_supervisor.account import TaskAccount
from midwatch_supervisor.assignment import whole_of
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.lookup import account_of, assignment_of, find
from midwatch_supervisor.merging import Merge, merge_branch, plan_merge, rehearse
from midwatch_supervisor.workspace import is_repository


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
    assignment = assignment_of(found.task)
    source = assignment.workspace if assignment else None
    plan = await plan_merge(await asyncio.to_thread(_worktree, account), source)
    if not plan.commits:
        write_line(f"{plan.branch} is in {plan.into} already")
    elif dry_run:
        await rehearse(plan)
        write_line(f"would merge {_named(plan)}")
    else:
        await merge_branch(plan)
        write_line(f"merged {_named(plan)}")


def _worktree(account: TaskAccount) -> Path:
    """Where the branch that completed the task is checked out."""
    name = account.task.name
    folder = _accepted(account)
    if not folder.is_dir():
        raise UsageError(f"the workspace of {name} is gone: there is no folder {folder}")
    if not is_repository(folder):
        raise UsageError(f"{name} has no branch: it did not work in git; its result is in {folder}")
    return folder


def _accepted(account: TaskAccount) -> Path:
    name, status = account.task.name, account.state.lifecycle
    if status is not Lifecycle.COMPLETED:
        raise UsageError(f"{name} is {status}; only a completed task can be merged")
    for attempt in reversed(account.attempts.values()):
        if attempt.lifecycle is Lifecycle.COMPLETED:
            return Path(attempt.attempt.workspace)
        if attempt.state.ending is Ending.SPLIT:
            return whole_of(Path(attempt.attempt.workspace))
    raise UsageError(f"no attempt of {name} was accepted")


def _named(plan: Merge) -> str:
    commits = "1 commit" if plan.commits == 1 else f"{plan.commits} commits"
    return f"{plan.branch} into {plan.into} ({commits}) in {plan.home}"
