"""Lists the files and changes of a workspace, with notes on links and very large files.

Applies changes to the next attempt's workspace, too.
"""

import asyncio
import posixpath
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Record, Step, Writer
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.present.numbers import megabytes
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.workspaces.folder_diff import changed_in, names_below
from midwatch_supervisor.workspaces.staging import (
    committed_rubbish,
    new_names,
    pathspecs_without,
    readable_sizes,
    rubbish_in,
    tracking,
)
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work
from midwatch_supervisor.workspaces.workspace_files import copy_file
from midwatch_tools.git import Worktree, git

MAX_NAMES = 300


async def list_files(workspace: Workspace) -> str:
    """Return the files of a workspace, one per line, at most the first `MAX_NAMES` in order.

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
"""Characters of a diff that are shown; nobody reads more at once."""
MAX_PATCH = 50_000_000
"""Characters of new files after which a diff to be applied leaves out the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Changes in git's format."""

    text: str
    left_out: tuple[str, ...] = ()
    """Changed files that it lacks: too large, too many, or unreadable."""

    @property
    def shown(self) -> str:
        """The part shown to a person or a model; `git apply` may refuse it."""
        if len(self.text) >= MAX_CHARS:
            return f"{self.text[:MAX_CHARS]}\n… the rest is cut"
        names = brief(", ".join(self.left_out))
        return self.text + (f"… and not shown: {names}\n" if names else "")


async def changes(workspace: Workspace) -> str | None:
    """Return the shown diff of the work in a workspace, committed or not; `None` without git.

    Raises WorkspaceError with what git said.
    """
    return (await diff_from(workspace, None)).shown if workspace.worktree else None


async def diff_from(workspace: Workspace, source: Path | None, room: int = MAX_CHARS) -> Diff:
    """Return the work in a workspace, committed or not, as a diff that `git apply` takes.

    Without git it is the diff against the source folder as it is now. New files are left out after
    about `room` characters. Takes no lock and leaves the index alone, because a worker may use git
    at the same moment. Raises WorkspaceError with what git said.
    """
    worktree = workspace.worktree
    if worktree is None:
        return await asyncio.to_thread(_folder_diff, source, workspace.folder, room)
    base, *paths = await _comparison_base(worktree)
    names = await new_names(worktree)
    sizes = await asyncio.to_thread(readable_sizes, worktree.folder, names)
    chosen = [*_fitting_names(sizes, room)]
    async with tracking(worktree, chosen) as whole:
        text = await git(whole, "diff", base, "--", *paths)
    taken = set(chosen)
    return Diff(text=text, left_out=tuple(each for each in names if each not in taken))


def _fitting_names(sizes: Mapping[str, int], room: int) -> Iterator[str]:
    """Yield the first names until their files fill the room."""
    for name, size in sizes.items():
        if room <= 0:
            return
        room -= size
        yield name


def _folder_diff(source: Path | None, folder: Path, room: int) -> Diff:
    parts, left_out = list[str](), list[str]()
    for each in changed_in(source, folder):
        if room <= 0:
            left_out.append(each.name)
            continue
        parts.append(each.text)
        room -= len(parts[-1])
    return Diff(text="".join(parts), left_out=tuple(left_out))


async def file_changes(workspace: Workspace, source: Path | None) -> tuple[FileChange, ...]:
    """Return the files that differ from the workspace's beginning, as `diff_from` shows them."""
    worktree = workspace.worktree
    if worktree is None:
        return await asyncio.to_thread(
            lambda: tuple(each.change for each in changed_in(source, workspace.folder))
        )
    base, *paths = await _comparison_base(worktree)
    names = await new_names(worktree)
    sizes = await asyncio.to_thread(readable_sizes, worktree.folder, names)
    async with tracking(worktree, [*sizes]) as whole:
        found = numstat(await git(whole, "diff", *NUMSTAT, base, "--", *paths))
    others = [FileChange(name=name, binary=True) for name in names if name not in sizes]
    return tuple(sorted([*found, *others], key=lambda each: each.name))


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


async def _comparison_base(worktree: Worktree) -> tuple[str, ...]:
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
    return await start_commit(worktree) or "HEAD"


async def start_commit(worktree: Worktree) -> str:
    """Return the commit that a worktree's attempt began with; empty if unknown."""
    try:
        known = await git(worktree, "reflog", "show", "--format=%H %gs", "HEAD")
    except WorkspaceError:
        return ""  # the worker is on a branch without a commit
    return begin_commit(known.splitlines())


async def changed_names(worktree: Worktree) -> tuple[str, ...]:
    """Return the files that differ from a worktree's beginning, committed or not."""
    base, *paths = await _comparison_base(worktree)
    tracked = await git(worktree, "diff", "--no-renames", "--name-only", "-z", base, "--", *paths)
    new = await new_names(worktree)
    return tuple(sorted({*filter(None, tracked.split("\0")), *new}))


async def left_by_merge(workspace: Workspace, names: Iterable[str]) -> tuple[str, ...]:
    """Return the files among these that exist but that no merge takes.

    They are new, and ignored by git or rubbish. Without git there are none.
    """
    worktree = workspace.worktree
    inside = [each for each in map(posixpath.normpath, names) if not each.startswith(("/", ".."))]
    there = [each for each in inside if await asyncio.to_thread((workspace.folder / each).is_file)]
    if worktree is None or not there:
        return ()
    known = await _begun_with(worktree)
    return tuple(await rubbish_in(worktree, (each for each in there if each not in known)))


async def changed_tests(workspace: Workspace, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the changed or deleted tests that existed at the start; without git, none is known."""
    tests = [each for each in changed if is_test(each)]
    if workspace.worktree is None or not tests:
        return ()
    known = await _begun_with(workspace.worktree)
    return tuple(sorted(each for each in tests if each in known))


_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
_TEST_FILE = re.compile(
    r"conftest\.py|test[_-].*|.*[._-](?:test|tests|spec)\.\w+|.*Tests?\.(?:java|kt|cs|scala|swift|php)"
)


def is_test(name: str) -> bool:
    """Return whether a file belongs to the tests by its name, as test runners find them. Pure."""
    *folders, last = name.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_FILE.fullmatch(last) is not None


async def _begun_with(worktree: Worktree) -> frozenset[str]:
    """Return the files of the commit that the attempt began with."""
    base = await base_commit(worktree)
    return frozenset((await git(worktree, "ls-tree", "-r", "--name-only", "-z", base)).split("\0"))


def begin_commit(reflog: Iterable[str]) -> str:
    """Return the commit that an attempt began with: its branch's start after the initial merges.

    Takes git's reflog as lines `<commit> <what>`, newest first; empty if there is none.
    """
    base = ""
    for entry in reversed(list(reflog)):
        commit, _, what = entry.partition(" ")
        if base and not what.startswith(("merge ", "reset: moving to HEAD")):
            break
        base = commit
    return base


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
    return tuple(name for name in names if any(_glob_matches(glob, name) for glob in globs))


def _glob_matches(glob: str, name: str) -> bool:
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
    """Apply the changes of attempt `number` to these files in the next workspace.

    With git, each file's change is applied as a patch, so that other changes in the new workspace
    stay. A file whose patch does not fit is left out; the old branch still has it. Returns the
    files applied.
    """
    if old.worktree is None or new.worktree is None:
        for name in names:
            await asyncio.to_thread(copy_file, old.folder, new.folder, name)
        return tuple(names)
    await commit_work(old, f"Left by attempt {number}.")
    base = await base_commit(old.worktree)
    with TemporaryDirectory(prefix="midwatch-") as folder:
        patch = Path(folder) / "patch"
        taken = [name for name in names if await _apply_patch(old.at, new.at, name, base, patch)]
    await commit_work(new, f"Kept from attempt {number}.")
    return tuple(taken)


async def _apply_patch(old: Worktree, new: Worktree, name: str, base: str, patch: Path) -> bool:
    await git(
        *(old, "diff", "--binary", "--no-renames"),
        *(f"--output={patch}", base, "HEAD", "--", f":(literal){name}"),
    )
    try:
        # git also refuses an empty patch, of a file that ended as it began.
        await git(new, "apply", "--3way", str(patch))
    except WorkspaceError:
        with suppress(WorkspaceError):  # the new workspace may never have had it
            await git(
                *(new, "restore", "--source=HEAD", "--staged", "--worktree"),
                *("--", f":(literal){name}"),
            )
        return False
    return True


_LARGE = 10_000_000
"""Size in bytes above which a file is called large."""
_LINK = "120000"
"""Git's mode of a link."""
_LONGEST = 4_096
"""Longest target of a link, in bytes, that the kernel allows."""
_TARGETS = 200
"""Number of links in a commit whose targets are read."""


async def notes_at(home: Path, commit: str, names: Iterable[str]) -> dict[str, str]:
    """Return what to know about files of a commit, by name."""
    # All files, because git would not find a name that is not UTF-8.
    said = await git(home, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    wanted, notes, read = set(names), dict[str, str](), 0
    for row in filter(None, said.split("\0")):
        about, _, name = row.partition("\t")
        mode, _, blob, size = about.split()
        if name not in wanted or not size.isdigit():
            continue
        if mode == _LINK:
            short = read < _TARGETS and int(size) <= _LONGEST
            read += short
            notes[name] = _link_note(await git(home, "cat-file", "blob", blob) if short else "")
        elif int(size) > _LARGE:
            notes[name] = megabytes(int(size))
    return notes


def notes_below(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return what to know about files below a folder, by name."""
    notes: dict[str, str] = {}
    for name in names:
        path = folder / name
        with suppress(OSError):  # it may be gone
            if path.is_symlink():
                notes[name] = _link_note(str(path.readlink()))
            elif (size := path.lstat().st_size) > _LARGE:
                notes[name] = megabytes(size)
    return notes


def _link_note(target: str) -> str:
    return f"a link to {target}" if target else "a link"
