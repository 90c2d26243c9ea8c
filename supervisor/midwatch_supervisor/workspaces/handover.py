"""What one attempt leaves to the next: the files that it changed, taken over by choice."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Edit, Record, Step, Writer
from midwatch_supervisor.workspaces.changes import base_commit, changed_names
from midwatch_supervisor.workspaces.workspace import Workspace, keep
from midwatch_supervisor.workspaces.workspace_files import copy_file, entries_below
from midwatch_tools.git import Worktree, git

EVERYTHING = ("**",)


async def changed_files(
    journal: Journal, attempt: Attempt, workspace: Workspace, *, bare: bool
) -> list[str]:
    """The files that an attempt changed or deleted, by name.

    git says it where there is git. In a copy it is what was seen of the worker's edits, and in
    a workspace that began empty (`bare`) every file there is.
    """
    if workspace.worktree is not None:
        return list(await changed_names(workspace.worktree))
    if bare:
        return await asyncio.to_thread(_files, workspace.folder)
    found = {edit.path async for edit in edits(journal, attempt) if edit.writer is Writer.WORKER}
    return sorted(found)


async def edits(journal: Journal, attempt: Attempt) -> AsyncIterator[Edit]:
    """All edits that were seen in an attempt, in order."""
    async for record in records(journal, attempt, (Step,)):
        if isinstance(record, Step):
            for edit in record.edits:
                yield edit


async def records(
    journal: Journal, attempt: Attempt, kinds: Sequence[type[Record]]
) -> AsyncIterator[Record]:
    """All that the journal holds of an attempt in these kinds, in order."""
    after = 0
    while page := await journal.entries(after, attempt=attempt.id, kinds=kinds):
        for entry in page:
            yield entry.record
        after = page[-1].id


def matching(names: Iterable[str], globs: Sequence[str]) -> tuple[str, ...]:
    """The names that paths or globs mean; a folder means all that is in it, `**` everything."""
    return tuple(name for name in names if any(_means(glob, name) for glob in globs))


def _means(glob: str, name: str) -> bool:
    path = glob.removeprefix("./").removesuffix("/")
    # Here `*` reaches over slashes too: whoever names too much keeps too much, and loses nothing.
    return (
        name == path
        or name.startswith(f"{path}/")
        or fnmatchcase(name, path)
        or fnmatchcase(name, path.removeprefix("**/"))
    )


async def take_over_files(
    old: Workspace, new: Workspace, names: Sequence[str], *, number: int
) -> tuple[str, ...]:
    """Bring what attempt `number` did to these files into the workspace of the next; which were.

    In git each file's change is applied, so that what the new workspace has from elsewhere stays. A
    file whose change does not fit there any more is left out; the old branch still holds it.
    """
    if old.worktree is None or new.worktree is None:
        for name in names:
            await asyncio.to_thread(copy_file, old.folder, new.folder, name)
        return tuple(names)
    await keep(old, f"Left by attempt {number}.")
    base = await base_commit(old.worktree)
    with TemporaryDirectory(prefix="midwatch-") as folder:
        patch = Path(folder) / "patch"
        taken = [name for name in names if await _apply(old.at, new.at, name, base, patch)]
    await keep(new, f"Kept from attempt {number}.")
    return tuple(taken)


async def _apply(old: Worktree, new: Worktree, name: str, base: str, patch: Path) -> bool:
    await git(
        *(old, "diff", "--binary", "--no-renames"),
        *(f"--output={patch}", base, "HEAD", "--", f":(literal){name}"),
    )
    try:
        # An empty patch, of a file that ended as it began, is refused too.
        await git(new, "apply", "--3way", str(patch))
    except WorkspaceError:
        with suppress(WorkspaceError):  # what the new workspace never had needs no mending
            await git(
                *(new, "restore", "--source=HEAD", "--staged", "--worktree"),
                *("--", f":(literal){name}"),
            )
        return False
    return True


def _files(folder: Path) -> list[str]:
    return sorted(
        Path(entry.path).relative_to(folder).as_posix()
        for entry in entries_below(folder)
        if entry.is_symlink() or entry.is_file()
    )
