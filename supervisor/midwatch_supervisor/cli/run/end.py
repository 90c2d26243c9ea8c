"""What is said before a run of what its workers will not see, and at its end of what came of it."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.present.lookup import say_turns
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.run_text import TaskResult, run_end
from midwatch_supervisor.workspaces.changes import file_changes
from midwatch_supervisor.workspaces.removal import uncommitted_names
from midwatch_supervisor.workspaces.task_workspace import TaskWorkspace, result_of
from midwatch_tools.git import is_repository

_COUNTED = 100
"""Tasks whose changed lines are counted at the end of a run; git takes a while over each."""
_AT_ONCE = 4
_NAMED = 3
"""Uncommitted files that are named."""
EXIT_CODES = {
    0: "all tasks completed",
    1: "some tasks failed",
    2: "wrong usage or configuration, or a provider that refuses the first request",
    3: "waiting for a person: answer what is asked above, then go on with `midwatch resume`",
    4: "ended as stuck or out of budget",
    130: "interrupted",
}
"""What `midwatch run`, `demo` and `resume` end with."""


async def uncommitted_warnings(wanted: Sequence[Assignment], *, besides: Path) -> list[str]:
    """What workers will not see, a sentence for each repository: a worktree has what is committed.

    `besides` is the task file, which they do not need.
    """
    sources = dict.fromkeys(each.workspace for each in wanted if each.workspace is not None)
    told: list[str] = []
    besides = await asyncio.to_thread(besides.absolute)
    for source in sources:
        if not await asyncio.to_thread(is_repository, source):
            continue
        try:
            found = await uncommitted_names(source)
        except MidwatchError:
            continue  # its first attempt will say what is wrong
        names = [name for name in found if source / name != besides]
        if names:
            more = ", …" if len(names) > _NAMED else ""
            told.append(
                f"{count_noun(len(names), 'uncommitted file')} in {source}: workers begin with the "
                f"last commit and do not see {'it' if len(names) == 1 else 'them'} "
                f"({', '.join(names[:_NAMED])}{more})"
            )
    return told


async def print_end(tasks: Sequence[TaskState], code: int, *, options: str) -> None:
    """Print what came of each task, and the exit code in words."""
    say_turns(tasks, None)
    looking = asyncio.Semaphore(_AT_ONCE)

    async def result(at: int, task: TaskState) -> TaskResult:
        async with looking:
            return await _result(task, count=at < _COUNTED)

    results = await asyncio.gather(*(result(at, task) for at, task in enumerate(tasks)))
    width = shutil.get_terminal_size().columns
    for text in run_end(results, width=width, options=options):
        write_line(text)
    write_line(f"exit code {code}: {EXIT_CODES.get(code, 'ended')}")


async def _result(task: TaskState, *, count: bool) -> TaskResult:
    at = result_of(task)
    if at is None or at.assignment is None:
        return TaskResult(state=task)
    branch, files = await _read_changes(at, count=count)
    return TaskResult(
        state=task,
        branch=branch,
        folder=_from_here(at.folder),
        files=files,
        wanted=len(at.assignment.task.acceptance),
    )


async def _read_changes(
    at: TaskWorkspace, *, count: bool
) -> tuple[str, tuple[FileChange, ...] | None]:
    """The branch and the files of a task, as far as they can be read."""
    try:
        workspace = await at.open()
        files = await file_changes(workspace, at.source) if count else None
    except (MidwatchError, OSError):
        return "", None
    return workspace.branch, files


def _from_here(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
