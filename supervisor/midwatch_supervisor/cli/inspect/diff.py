"""`midwatch diff`: what a task has changed, against what it began from."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.operate.merge import plan_of
from midwatch_supervisor.cli.output import write_diff, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.present.lookup import find, task_state
from midwatch_supervisor.workspaces.merge import give_back
from midwatch_supervisor.workspaces.task_workspace import (
    TaskWorkspace,
    diff_between,
    result_of,
    workspace_in,
)

if TYPE_CHECKING:
    from midwatch_monitor.journal import Journal


async def diff(
    id: TaskOrAttempt,
    *,
    run: RunOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print what a task or an attempt has changed, committed or not.

    Against the commit that it began from; without git against its source folder as it is now.
    With --json one object a file, with its counts of lines.
    """
    async with await journal_to_read(journal) as opened:
        found = await find(opened, id, run=run)
        state = await task_state(opened, found.task)
        chosen = (
            workspace_in(state, state.attempts[found.attempt.id])
            if found.attempt
            else result_of(state)
        )
        if chosen is None:
            raise UsageError(f"{found.task.name} has not begun, so it has changed nothing")
        text, files = await _changed(opened, chosen)
    if json:
        for each in files:
            write_json({"type": "file", "task": chosen.name, **asdict(each)})
    elif text:
        write_diff(opened.masker.text(text))
    else:
        write_line(f"{chosen.name} has changed nothing")


async def _changed(journal: "Journal", chosen: TaskWorkspace) -> tuple[str, tuple[FileChange, ...]]:
    """The diff, and the files in it."""
    found = await chosen.diff()
    if found is not None:
        return found
    plan = await plan_of(journal, chosen)
    try:
        return await diff_between(plan.home, plan.begun or "HEAD", plan.tip)
    finally:
        await give_back(plan)
