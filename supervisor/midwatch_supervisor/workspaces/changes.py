"""What is in a workspace, and what its attempt has changed. Reads only."""

import asyncio
import posixpath
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Record, Step, Writer
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.workspaces.rubbish import (
    committed_rubbish,
    is_rubbish,
    pathspecs_without,
    rubbish_in,
)
from midwatch_supervisor.workspaces.staging import new_names
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work
from midwatch_supervisor.workspaces.workspace_files import copy_file, entries_below, open_file
from midwatch_tools.git import Worktree, git
from midwatch_tools.tree import IGNORED

MAX_NAMES = 300


async def list_files(workspace: Workspace) -> str:
    """Return the files of a workspace, one a line, at most the first `MAX_NAMES` in order.

    In git these are the tracked files and the new ones that it does not ignore. Raises
    WorkspaceError with what git said.
    """
    if workspace.worktree is not None:
        known = (await git(workspace.worktree, "ls-files", "-z")).split("\0")
        names = sorted({*filter(None, known), *await new_names(workspace.worktree)})
    else:
        names = await asyncio.to_thread(lambda: sorted(names_below(workspace.folder)))
    left = len(names) - MAX_NAMES
    return "\n".join([*names[:MAX_NAMES], *([f"… and {left} more"] if left > 0 else [])])


MAX_CHARS = 200_000
"""Characters of a diff that are kept; nobody reads more at once."""
_MAX_NEW = 100
"""New files that are shown with their content."""


async def changes(workspace: Workspace) -> str | None:
    """Return the work in a workspace as a diff, committed or not; `None` without git.

    Takes no lock and leaves the index alone, because a worker may use git at the same moment.
    Raises WorkspaceError with what git said.
    """
    if workspace.worktree is None:
        return None
    base, *paths = await _since(workspace.worktree)
    tracked = await git(workspace.worktree, "diff", base, "--", *paths)
    if len(tracked) >= MAX_CHARS:
        return f"{tracked[:MAX_CHARS]}\n… the rest is cut"
    found = await new_names(workspace.worktree)
    room = MAX_CHARS - len(tracked)
    return tracked + await asyncio.to_thread(_new_files, workspace.folder, found, room)


async def diff_from(workspace: Workspace, source: Path | None) -> str:
    """Return `changes`, or without git the diff against the source folder as it is now."""
    found = await changes(workspace)
    if found is not None:
        return found
    return await asyncio.to_thread(_folder_diff, source, workspace.folder)


def _folder_diff(source: Path | None, folder: Path) -> str:
    text = ""
    for each in changed_in(source, folder):
        text += each.text
        if len(text) >= MAX_CHARS:
            return f"{text[:MAX_CHARS]}\n… the rest is cut"
    return text


async def file_changes(workspace: Workspace, source: Path | None) -> tuple[FileChange, ...]:
    """Return the files that differ from the workspace's beginning, as `diff_from` shows them."""
    worktree = workspace.worktree
    if worktree is None:
        return await asyncio.to_thread(
            lambda: tuple(each.change for each in changed_in(source, workspace.folder))
        )
    base, *paths = await _since(worktree)
    tracked = numstat(await git(worktree, "diff", *NUMSTAT, base, "--", *paths))
    names = await new_names(worktree)
    new = await asyncio.to_thread(lambda: [new_file(workspace.folder, name) for name in names])
    return tuple(sorted([*tracked, *new], key=lambda each: each.name))


_MAX_BYTES = 1_000_000
"""Size in bytes above which, without git, a file is not compared line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs from the folder it was copied from.

    Its lines are `None` if they cannot be shown.
    """

    name: str
    old: list[str] | None
    new: list[str] | None

    @property
    def change(self) -> FileChange:
        """Numbers of added and removed lines."""
        if self.old is None or self.new is None:
            return FileChange(name=self.name, binary=True)
        lines = [*unified_diff(self.old, self.new, n=0)][2:]
        return FileChange(
            name=self.name,
            added=sum(line.startswith("+") for line in lines),
            removed=sum(line.startswith("-") for line in lines),
        )

    @property
    def text(self) -> str:
        """The diff in git's format."""
        head = f"diff --git a/{self.name} b/{self.name}\n"
        if self.old is None or self.new is None:
            return f"{head}(binary, or too large to be shown)\n"
        old, new = (f"a/{self.name}", f"b/{self.name}")
        return head + "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in unified_diff(self.old, self.new, old, new)
        )


def changed_in(source: Path | None, folder: Path) -> Iterator[ChangedFile]:
    """Yield the files that differ between both, by name; without a source all files."""
    names = set(names_below(folder)) | set(names_below(source) if source else ())
    for name in sorted(names):
        old = _content(source, name) if source else b""
        new = _content(folder, name)
        if old != new or (old is None and not _same_size(source, folder, name)):
            yield ChangedFile(name=name, old=_lines(old), new=_lines(new))


def new_file(folder: Path, name: str) -> FileChange:
    """Return the change that a new file is."""
    return ChangedFile(name=name, old=[], new=_lines(_content(folder, name))).change


def names_below(folder: Path) -> Iterator[str]:
    """Yield the names of the files below a folder, without rubbish."""
    for entry in entries_below(folder, hidden=IGNORED):
        name = Path(entry.path).relative_to(folder).as_posix()
        if not entry.is_dir(follow_symlinks=False) and not is_rubbish(name):
            yield name


def _content(folder: Path, name: str) -> bytes | None:
    """Return the content of a file: empty if there is none, `None` if it is too large."""
    path = folder / name
    if path.is_symlink():
        return bytes(path.readlink())
    try:
        with open_file(folder, name) as opened:
            content = opened.read(_MAX_BYTES + 1)
    except OSError:
        return b""
    return content if len(content) <= _MAX_BYTES else None


def _same_size(source: Path | None, folder: Path, name: str) -> bool:
    sizes = {(each / name).lstat().st_size for each in (source, folder) if each is not None}
    return len(sizes) == 1 and source is not None


def _lines(content: bytes | None) -> list[str] | None:
    if content is None or b"\0" in content:
        return None
    return content.decode(errors="replace").splitlines(keepends=True)


NUMSTAT = ("--numstat", "--no-renames", "-z")


def numstat(said: str) -> tuple[FileChange, ...]:
    """Parse the output of `git diff` with the `NUMSTAT` options."""
    rows = (row.split("\t", 2) for row in said.split("\0") if row)
    return tuple(
        FileChange(name=name, binary=True)
        if added == "-"
        else FileChange(name=name, added=int(added), removed=int(removed))
        for added, removed, name in rows
    )


async def _since(worktree: Worktree) -> tuple[str, ...]:
    """Return the commit from which an attempt's work counts, and pathspecs for the comparison.

    The pathspecs leave out rubbish that its worker has committed.
    """
    base = await base_commit(worktree)
    left_out = await committed_rubbish(worktree, base)
    return (base, *pathspecs_without(left_out))


async def base_commit(worktree: Worktree) -> str:
    """Return the commit that a worktree's attempt began with.

    Raises WorkspaceError, also if the worktree is no longer the one that was made.
    """
    worktree.require_branch()
    known = await git(worktree, "reflog", "show", "--format=%H %gs", "HEAD")
    return begin_commit(known.splitlines()) or "HEAD"


async def changed_names(worktree: Worktree) -> tuple[str, ...]:
    """Return the files that differ from a worktree's beginning, committed or not."""
    base, *paths = await _since(worktree)
    tracked = await git(worktree, "diff", "--no-renames", "--name-only", "-z", base, "--", *paths)
    new = await new_names(worktree)
    return tuple(sorted({*filter(None, tracked.split("\0")), *new}))


async def left_by_merge(workspace: Workspace, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of these files that exist but that no merge takes.

    They are new, and ignored by git or rubbish. Without git there are none.
    """
    worktree = workspace.worktree
    inside = [each for each in map(posixpath.normpath, names) if not each.startswith(("/", ".."))]
    there = [each for each in inside if await asyncio.to_thread((workspace.folder / each).is_file)]
    if worktree is None or not there:
        return ()
    base = await base_commit(worktree)
    known = (await git(worktree, "ls-tree", "-r", "--name-only", "-z", base, "--", *there)).split(
        "\0"
    )
    return tuple(await rubbish_in(worktree, (each for each in there if each not in known)))


def begin_commit(reflog: Iterable[str]) -> str:
    """Return the commit that an attempt began with: its branch's start, with what was merged first.

    Takes git's reflog as lines `<commit> <what>`, newest first; empty if there is none.
    """
    base = ""
    for entry in reversed(list(reflog)):
        commit, _, what = entry.partition(" ")
        if base and not what.startswith(("merge ", "reset: moving to HEAD")):
            break
        base = commit
    return base


def _new_files(folder: Path, names: list[str], room: int) -> str:
    parts: list[str] = []
    for name in names[:_MAX_NEW]:
        part = _new_file(folder, name, room)
        room -= len(part)
        parts.append(part)
        if room <= 0:
            break
    left = len(names) - len(parts)
    return "".join(parts) + (f"… and {left} more new files\n" if left else "")


def _new_file(folder: Path, name: str, room: int) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}\n"
    try:
        with open_file(folder, name) as opened:
            content = opened.read(max(1, room))
    except OSError as error:
        return f"{head}(not shown: {error.strerror})\n"
    if b"\0" in content:
        return f"{head}(binary)\n"
    text = content.decode(errors="replace")
    return head + "".join(f"+{line}\n" for line in text.splitlines())


async def changed_files(
    journal: Journal, attempt: Attempt, workspace: Workspace, *, bare: bool
) -> list[str]:
    """Return the files that an attempt changed or deleted.

    With git, git says which. In a copy they are the recorded edits of the worker, and in a
    workspace that began empty (`bare`) all files there are.
    """
    if workspace.worktree is not None:
        return list(await changed_names(workspace.worktree))
    if bare:
        return await asyncio.to_thread(lambda: sorted(names_below(workspace.folder)))
    found: set[str] = set()
    async for record in records(journal, attempt, (Step,)):
        if isinstance(record, Step):
            found.update(edit.path for edit in record.edits if edit.writer is Writer.WORKER)
    return sorted(found)


async def records(
    journal: Journal, attempt: Attempt, kinds: Sequence[type[Record]]
) -> AsyncIterator[Record]:
    """Yield the journal's records of an attempt of these kinds, in order."""
    async for entry in journal.all_entries(attempt=attempt.id, kinds=kinds):
        yield entry.record


def match_names(names: Iterable[str], globs: Sequence[str]) -> tuple[str, ...]:
    """Return the names that paths or globs match; a folder matches all in it, `**` everything."""
    return tuple(name for name in names if any(_means(glob, name) for glob in globs))


def _means(glob: str, name: str) -> bool:
    path = glob.removeprefix("./").removesuffix("/")
    # `*` matches slashes too: keeping too much loses nothing.
    return (
        name == path
        or name.startswith(f"{path}/")
        or fnmatchcase(name, path)
        or fnmatchcase(name, path.removeprefix("**/"))
    )


async def take_over_files(
    old: Workspace, new: Workspace, names: Sequence[str], *, number: int
) -> tuple[str, ...]:
    """Apply what attempt `number` did to these files to the next workspace; return those applied.

    With git each file's change is applied as a patch, so that what the new workspace has from
    elsewhere stays. A file whose patch does not fit is left out; the old branch still has it.
    """
    if old.worktree is None or new.worktree is None:
        for name in names:
            await asyncio.to_thread(copy_file, old.folder, new.folder, name)
        return tuple(names)
    await commit_work(old, f"Left by attempt {number}.")
    base = await base_commit(old.worktree)
    with TemporaryDirectory(prefix="midwatch-") as folder:
        patch = Path(folder) / "patch"
        taken = [name for name in names if await _apply(old.at, new.at, name, base, patch)]
    await commit_work(new, f"Kept from attempt {number}.")
    return tuple(taken)


async def _apply(old: Worktree, new: Worktree, name: str, base: str, patch: Path) -> bool:
    await git(
        *(old, "diff", "--binary", "--no-renames"),
        *(f"--output={patch}", base, "HEAD", "--", f":(literal){name}"),
    )
    try:
        # git refuses an empty patch too, of a file that ended as it began.
        await git(new, "apply", "--3way", str(patch))
    except WorkspaceError:
        with suppress(WorkspaceError):  # the new workspace may never have had it
            await git(
                *(new, "restore", "--source=HEAD", "--staged", "--worktree"),
                *("--", f":(literal){name}"),
            )
        return False
    return True
