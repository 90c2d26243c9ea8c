"""`midwatch diff`, `merge` and `clean`: show, merge or delete what tasks have changed."""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import MidwatchError, UsageError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Feedback, Lifecycle, Origin, SupervisedBy, Task
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_diff, write_error, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.present.file_changes import FileChange, change_lines, changes_text
from midwatch_supervisor.present.known_text import verdict_line
from midwatch_supervisor.present.lookup import (
    chosen_runs,
    find,
    run_of,
    run_option,
    task_state,
    task_states,
)
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.workspaces.changes import (
    MAX_PATCH,
    Diff,
    file_changes,
    notes_at,
    notes_below,
)
from midwatch_supervisor.workspaces.folder_diff import names_below
from midwatch_supervisor.workspaces.merge import (
    Merge,
    merge_branch,
    plan_cloned,
    plan_fetched,
    plan_merge,
    record_merge,
    remove_lent_refs,
    try_merge,
)
from midwatch_supervisor.workspaces.task_workspace import (
    TaskWorkspace,
    diff_between,
    remove_workspace,
    repository_here,
    result_of,
    uncommitted,
    unmerged_changes,
    workspace_in,
)
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_supervisor.workspaces.workspace_files import copy_file

if TYPE_CHECKING:
    from midwatch_monitor.journal import Journal


async def diff(
    id: TaskOrAttempt,
    /,
    *,
    run: RunOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print what a task or an attempt has changed, committed or not.

    Compares with the commit it began from; outside git, with its source folder as it is now. With
    --json, prints an object for each file with its line counts.
    """
    async with await journal_to_read(journal) as opened:
        found = await find(opened, id, run=run)
        _require_files_known(found.task)
        state = await task_state(opened, found.task)
        chosen = (
            workspace_in(found.task, state.attempts[found.attempt.id])
            if found.attempt
            else result_of(state)
        )
        if chosen is None:
            raise UsageError(f"{found.task.name} has not begun, so it has changed nothing")
        changed, files = await _read_changes(opened, chosen)
    if (source := await chosen.lost_source()) and files:
        write_error(_lost_text(source, chosen.name))
    if json:
        write_json(*({"type": "file", "task": chosen.name, **asdict(each)} for each in files))
    elif files:
        _write_diff(changed, files, masked=opened.masker.text)
    else:
        write_line(f"{chosen.name} has changed nothing")


def _require_files_known(task: Task) -> None:
    if task.embedded:
        raise UsageError(f"Midwatch did not start {task.name}, so it does not know its files")


def _lost_text(source: Path, name: str) -> str:
    return f"{source} is not on this machine, so every file of {name} is shown as new"


def _write_diff(diff: Diff, files: Sequence[FileChange], *, masked: Callable[[str], str]) -> None:
    """Print a diff, and on stderr what keeps it from being a complete patch."""
    text = masked(diff.text)
    if text:
        exact = write_diff(text) and text == diff.text and _NOT_UTF8 not in text
        if not exact:
            write_error(
                "secrets, control characters and what is not UTF-8 are not printed as they are in "
                "the files: `git apply` would write such lines as shown here"
            )
    left_out = set(diff.left_out)
    if left_out:
        write_error(
            f"left out (too large, too many or unreadable): {brief(', '.join(diff.left_out))}"
        )
    if binary := [each.name for each in files if each.binary and each.name not in left_out]:
        write_error(
            f"only named (binary or too large): {brief(', '.join(binary))}; "
            "`git apply` needs an --exclude for each of them"
        )


_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}"


async def _read_changes(
    journal: "Journal", chosen: TaskWorkspace
) -> tuple[Diff, tuple[FileChange, ...]]:
    """Return the diff, and the files in it."""
    found = await chosen.diff(journal, MAX_PATCH)
    if found is not None:
        return found
    plan = await plan_of(journal, chosen)
    try:
        return await diff_between(plan.home, plan.begun or "HEAD", plan.tip)
    finally:
        await remove_lent_refs(plan)


async def merge(
    task: Annotated[
        str, Parameter(name="TASK", help="A completed task's id, or a unique prefix of it.")
    ],
    /,
    *,
    into: Annotated[
        Path | None,
        Parameter(help="A new folder for the files of a task that did not work in git."),
    ] = None,
    run: RunOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Merge a completed task's branch into the branch checked out in its repository.

    Prints the changed files first, and removes the task's branch and worktree afterwards. If the
    task did not work in git, writes all its files into a new folder, from any machine of a fleet.
    """
    async with await journal_to_read(journal) as opened:
        found = await find(opened, task, run=run)
        _require_files_known(found.task)
        state = await task_state(opened, found.task)
        result = _completed_workspace(state)
        if not await result.there() and await result.find_merge():
            write_line(f"{branch_of(result.folder)} was already merged and removed")
            return
        await result.require_kept()
        _require_accepted(state)
        if await _write_files(opened, result, into, dry_run=dry_run):
            return
        plan = await plan_of(opened, result)
        others = await task_states(opened, found.task.run)
    try:
        await _carry_out(plan, dry_run=dry_run)
    finally:
        if dry_run:
            await remove_lent_refs(plan)
    if not dry_run:
        run_over = all(each.over for each in others)
        await _clean_up(plan, result, found.task.run, run_over=run_over)


async def _write_files(
    journal: "Journal", result: TaskWorkspace, into: Path | None, *, dry_run: bool
) -> bool:
    """Write a result into a new folder if it is not in git, and return whether it is not."""
    of = await run_option(journal, await run_of(journal, result.attempt.id))
    async with result.open_anywhere(journal) as workspace:
        in_git = result.of_fleet if workspace is None else workspace.worktree is not None
        if in_git and into is not None:
            take = command(f"merge {shlex.quote(result.name)}{of}")
            raise UsageError(f"{result.name} worked in git: `{take}` merges its branch")
        if in_git or workspace is None:
            return False
        if into is None:
            take = command(f"merge {shlex.quote(result.name)}{of} --into FOLDER")
            raise UsageError(
                f"{result.name} has no branch: it did not work in git; "
                f"`{take}` writes its files into a new folder"
            )
        files = await file_changes(workspace, result.source)
        notes = await asyncio.to_thread(
            notes_below, workspace.folder, [each.name for each in files]
        )
        written = len(await asyncio.to_thread(lambda: [*names_below(workspace.folder)]))
        await asyncio.to_thread(_copy_files, workspace.folder, into, dry_run=dry_run)
        if not dry_run:
            await result.mark_taken()
    if (source := await result.lost_source()) and files:
        write_error(_lost_text(source, result.name))
    write_line(*change_lines(files, notes))
    done = "would write" if dry_run else "wrote"
    changed = changes_text(files) if files else "nothing"
    write_line(f"{done} {count_noun(written, 'file')} into {into}; {result.name} changed {changed}")
    return True


def _copy_files(folder: Path, into: Path, *, dry_run: bool) -> None:
    """Copy a workspace without git into a folder that is new or empty. Raises UsageError."""
    try:
        if into.exists() and any(into.iterdir()):
            raise UsageError(f"{into} is not empty: name a new folder")
        if dry_run:
            return
        into.mkdir(exist_ok=True)
        for name in names_below(folder):
            copy_file(folder, into, name)
    except OSError as error:
        raise UsageError(f"{into} cannot be written: {error.strerror}") from error


async def _carry_out(plan: Merge, *, dry_run: bool) -> None:
    if not plan.commits:
        write_line(f"{plan.branch} is already in {plan.into}")
        if not dry_run:
            await record_merge(plan)
        return
    notes = await notes_at(plan.home, plan.tip, [each.name for each in plan.files])
    write_line(*change_lines(plan.files, notes))
    if plan.left_out:
        write_line(
            f"left out: {brief(', '.join(plan.left_out))} (build artifacts, or ignored by git here)"
        )
    await (try_merge if dry_run else merge_branch)(plan)
    commits = count_noun(plan.commits, "commit") + (" as one" if plan.left_out else "")
    done = "would merge" if dry_run else "merged"
    write_line(
        f"{done} {plan.branch} into {plan.into} ({changes_text(plan.files)}; {commits}) "
        f"in {plan.home}"
    )


async def _clean_up(plan: Merge, result: TaskWorkspace, run: int, *, run_over: bool) -> None:
    """Remove the branch and worktree after a merge, unless something in them is still needed."""
    await remove_lent_refs(plan)
    if not (result.made_by_run and await result.there()):
        return
    workspace = await result.open()
    if not run_over:
        write_line(
            f"kept {workspace.branch}: once its run is over, `{command('clean')}` removes it"
        )
    elif await uncommitted(workspace):
        write_line(f"kept {workspace.folder}: it holds uncommitted files")
    elif names := await result.only_here(workspace):
        write_line(
            f"kept {workspace.folder}: {_ignored_text(names)}; copy it from there, then "
            f"`{command(f'clean {shlex.quote(result.name)} --run {run}')}` removes the rest"
        )
    else:
        await remove_workspace(workspace)
        write_line(f"removed the branch and its worktree {workspace.folder}")


def _ignored_text(names: Sequence[str]) -> str:
    return f"a merge leaves out {brief(', '.join(names))}, which git ignores"


async def plan_of(journal: "Journal", result: TaskWorkspace) -> Merge:
    """Return the merge of a task's result, whichever machine made it."""
    assignment = result.assignment
    bundles = Bundles(journal)
    if assignment is not None and assignment.base and await bundles.snapshots(result.attempt.id):
        home = await _owner_repository(assignment.workspace, assignment.source)
        return await plan_fetched(bundles, result.attempt, branch_of(result.folder), home)
    workspace = await result.open()
    if workspace.worktree is None:
        raise UsageError(f"{result.name} did not work in git: its result is in {result.folder}")
    if assignment is not None and assignment.origin:
        return await plan_cloned(workspace, await _owner_repository(None, assignment.origin))
    return await plan_merge(workspace, result.source)


async def _owner_repository(source: Path | None, name: str) -> Path:
    """Return the owner's repository. Raises UsageError if it is not here."""
    home = await repository_here(source)
    if home is None:
        here = await asyncio.to_thread(Path.cwd)
        raise UsageError(f"{here} is not in a git repository: use a clone of {name}")
    return home


def _completed_workspace(state: TaskState) -> TaskWorkspace:
    """Return the workspace that holds the result of a task that is completed.

    A failed one counts as completed once a person has accepted its result.
    """
    name, status = state.task.name, state.lifecycle
    verdict = _verdict_of_person(state)
    if status is Lifecycle.FAILED and not (verdict and verdict.accepted):
        accept = command(f"feedback {shlex.quote(name)} accept --run {state.task.run}")
        raise UsageError(f"{name} has failed: it can be merged after `{accept}`")
    if status not in {Lifecycle.COMPLETED, Lifecycle.FAILED}:
        raise UsageError(f"{name} is {status}; only a completed task can be merged")
    result = result_of(state)
    if result is None:
        raise UsageError(f"no attempt of {name} was accepted")
    return result


def _verdict_of_person(state: TaskState) -> Feedback | None:
    """Return a person's verdict on the result; `None` if there is none."""
    verdict = state.verdict
    return verdict if verdict and verdict.origin is Origin.EXPLICIT else None


def _require_accepted(state: TaskState) -> None:
    """Raise UsageError for a result that a person rejected."""
    name = state.task.name
    if rejected := _rejection_text(state):
        accept = command(f"feedback {shlex.quote(name)} accept --run {state.task.run}")
        raise UsageError(f"{name} can be merged after `{accept}`: its result was {rejected}")


def _rejection_text(state: TaskState) -> str:
    """Return how a person rejected the result, as `rejected by ada`; empty if nobody did."""
    verdict = _verdict_of_person(state)
    return verdict_line(verdict) if verdict and not verdict.accepted else ""


async def clean(
    *tasks: Annotated[
        str, Parameter(name="TASK", help="Tasks whose work is deleted, merged or not.")
    ],
    run: Annotated[
        int | None,
        Parameter(help="Only this run. Default: all runs; for a named task, the latest."),
    ] = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Remove the worktrees, branches and folders of finished tasks that were merged or taken.

    Those without changes are removed, too. Unmerged work is kept, unless its task is named.
    """
    async with await journal_to_read(journal) as opened:
        over, open_runs = await _tasks_over(opened, tasks, run)
        found = [Leftover(task=task, at=at) for task in over for at in _find_workspaces(task)]
        left = [each for each in found if await each.at.there()]
        gone = [await _clean_workspace(each, named=bool(tasks), dry_run=dry_run) for each in left]
    for why in open_runs:
        write_line(f"{why}; its workspaces are kept")
    if not left and not open_runs:
        write_line("there is nothing to clean")
    elif not all(gone):
        write_line(f"`{command('clean TASK --run N')}` deletes such work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """The workspace of one attempt of a task that is over."""

    task: TaskState
    at: TaskWorkspace

    @property
    def name(self) -> str:
        """Return its name for people, such as `fix#2 of run 3`."""
        return f"{self.at.name}#{self.at.attempt.number} of run {self.task.task.run}"

    @property
    def is_result(self) -> bool:
        """Whether it holds the result of its task."""
        result = result_of(self.task) if self.task.lifecycle is Lifecycle.COMPLETED else None
        return result is not None and result.folder == self.at.folder

    def what_to_do(self, workspace: Workspace) -> str:
        """Return which command takes or removes it; empty if it is not the result of its task."""
        if not self.is_result:
            return ""
        which = f"{shlex.quote(self.at.name)} --run {self.task.task.run}"
        if rejected := _rejection_text(self.task):
            return f": its result was {rejected} (`{command(f'clean {which}')}` removes it)"
        take = f"merge {which}" if workspace.branch else f"merge {which} --into FOLDER"
        return f" (`{command(take)}` takes it)"


async def _tasks_over(
    journal: "Journal", names: Sequence[str], run: int | None
) -> tuple[list[TaskState], list[str]]:
    """Return the named tasks, or all, in runs that are over; and for each other run why it stays.

    A run is not over while one of its tasks may still build on another's workspace.
    """
    over: list[TaskState] = []
    kept: list[str] = []
    wanted = [(await find(journal, name, run=run)).task for name in names]
    for each in await chosen_runs(journal, run):
        mine = {task.id for task in wanted if task.run == each.id}
        if each.supervised_by is not SupervisedBy.PROCESS or (wanted and not mine):
            continue
        tasks = await task_states(journal, each.id)
        unfinished = next((task for task in tasks if not task.over), None)
        if unfinished is None:
            over += [task for task in tasks if not wanted or task.task.id in mine]
            continue
        why = f"run {each.id} is not over: {unfinished.task.name} ({unfinished.status})"
        if mine:
            raise UsageError(why)
        if any([await at.there() for task in tasks for at in _find_workspaces(task)]):
            kept.append(why)
    return over, kept


def _find_workspaces(task: TaskState) -> list[TaskWorkspace]:
    """Return the workspaces of all attempts, and the result's if it has another one."""
    places = [workspace_in(task.task, each) for each in task.attempts.values()]
    result = result_of(task)
    found = {each.folder: each for each in (*places, *([result] if result else []))}
    return [each for each in found.values() if each.made_by_run]


async def _clean_workspace(left: Leftover, *, named: bool, dry_run: bool) -> bool:
    """Remove a workspace or say why it stays, and return whether it was removed."""
    try:
        workspace = await left.at.open()
        lost = await unmerged_changes(workspace, left.at.source)
        if lost and not named:
            more = left.what_to_do(workspace)
            write_line(f"kept {left.name}: {changes_text(lost)} not merged{more}")
            return False
        ignored = await left.at.only_here(workspace)
        if ignored and not named:
            write_line(f"kept {left.name}: {_ignored_text(ignored)}; copy it from {left.at.folder}")
            return False
        if not dry_run:
            await remove_workspace(workspace)
    except MidwatchError as error:
        write_error(f"kept {left.name}: {error}")
        return False
    done = "would remove" if dry_run else "removed"
    branch = f"the branch {workspace.branch} and " if workspace.branch else ""
    gone = ", ".join([*([changes_text(lost)] if lost else []), *ignored])
    why = f"{gone} discarded" if gone else "nothing in it is unmerged"
    write_line(f"{done} {left.name}: {branch}{left.at.folder} ({why})")
    return True
