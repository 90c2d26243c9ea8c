"""`midwatch clean`: removes the workspaces that nobody needs any more."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import MidwatchError, UsageError
from midwatch_monitor.records import Keeper
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_error, write_line
from midwatch_supervisor.present.file_changes import changes_text
from midwatch_supervisor.present.lookup import chosen_runs, find, task_states
from midwatch_supervisor.workspaces.removal import remove_workspace, unmerged
from midwatch_supervisor.workspaces.task_workspace import TaskWorkspace, result_of, workspace_in

if TYPE_CHECKING:
    from midwatch_monitor.journal import Journal


async def clean(
    *tasks: Annotated[
        str, Parameter(name="TASK", help="Tasks whose work is thrown away, merged or not.")
    ],
    run: Annotated[
        int | None,
        Parameter(help="Only this run. Default: every run; of a task that is named, the latest."),
    ] = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Remove the worktrees, branches and folders of tasks that are over and were merged.

    So are those that hold no changes. What holds unmerged work stays, unless its task is named.
    """
    async with await journal_to_read(journal) as opened:
        over = [each async for each in _over(opened, tasks, run)]
        found = [Leftover(task=task, at=at) for task in over for at in _places(task)]
        left = [each for each in found if await each.at.there()]
        gone = [await _clean(each, named=bool(tasks), dry_run=dry_run) for each in left]
    if not left:
        write_line("there is nothing to clean")
    elif not all(gone):
        write_line("`midwatch merge TASK` takes such work, `midwatch clean TASK` throws it away")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """The workspace of one attempt at a task that is over."""

    task: TaskState
    at: TaskWorkspace

    @property
    def name(self) -> str:
        """What people call it: `fix#2 of run 3`."""
        return f"{self.at.name}#{self.at.attempt.number} of run {self.task.task.run}"


async def _over(
    journal: "Journal", names: Sequence[str], run: int | None
) -> AsyncIterator[TaskState]:
    """The tasks that are named, else all; of runs of which no task may still build on another."""
    wanted = [(await find(journal, name, run=run)).task for name in names]
    for each in await chosen_runs(journal, run):
        mine = {task.id for task in wanted if task.run == each.id}
        if each.keeper is not Keeper.PROCESS or (wanted and not mine):
            continue
        tasks = await task_states(journal, each.id)
        unfinished = next((task for task in tasks if not task.over), None)
        if unfinished is None:
            for task in tasks:
                if not wanted or task.task.id in mine:
                    yield task
        elif mine:
            state = f"{unfinished.task.name} is {unfinished.status}"
            raise UsageError(f"run {each.id} is not over: {state}")


def _places(task: TaskState) -> list[TaskWorkspace]:
    """The workspaces of all attempts, and that of the result where it is another."""
    places = [workspace_in(task, each) for each in task.attempts.values()]
    result = result_of(task)
    found = {each.folder: each for each in (*places, *([result] if result else []))}
    return [each for each in found.values() if each.made_by_run]


async def _clean(left: Leftover, *, named: bool, dry_run: bool) -> bool:
    """Remove it, or say why not; whether it goes."""
    try:
        workspace = await left.at.open()
        lost = await unmerged(workspace, left.at.source)
        if lost and not named:
            write_line(f"kept {left.name}: {changes_text(lost)} not merged")
            return False
        if not dry_run:
            await remove_workspace(workspace)
    except MidwatchError as error:
        write_error(f"kept {left.name}: {error}")
        return False
    done = "would remove" if dry_run else "removed"
    branch = f"the branch {workspace.branch} and " if workspace.branch else ""
    why = f"{changes_text(lost)} thrown away" if lost else "nothing in it is unmerged"
    write_line(f"{done} {left.name}: {branch}{left.at.folder} ({why})")
    return True
