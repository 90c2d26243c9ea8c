"""Merges a finished attempt's branch into the branch that its owner works on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from midwatch_monitor.cancellation import finish_before_cancel
from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt
from midwatch_supervisor.present.assignment import BRANCHES
from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.workspaces.changes import NUMSTAT, base_commit, numstat
from midwatch_supervisor.workspaces.snapshot import (
    SAVED,
    commit_at,
    fetch_snapshot,
    final_snapshot,
    mark_of,
    tip_of,
)
from midwatch_supervisor.workspaces.staging import committed_rubbish, pathspecs_without
from midwatch_supervisor.workspaces.workspace import TRACES, Workspace, lock_worktrees
from midwatch_tools.git import AT_CHECKOUT, IN_ANY_WAY, Worktree, chunk, filtered_files, git

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A branch, and where it is to be merged."""

    home: Path
    """Worktree that takes the branch."""
    branch: str
    into: str
    """Branch that is checked out there."""
    commits: int = 0
    """Number of commits that `into` lacks; 0 if everything is merged already."""
    tip: str = ""
    """Commit that is merged: the branch's last, or a squashed one without `left_out`."""
    files: tuple[FileChange, ...] = ()
    """Files that the merge changes."""
    left_out: tuple[str, ...] = ()
    """Committed files that are not part of the work: caches, and what git ignores here."""
    begun: str = ""
    """Commit that the branch began with; empty if unknown."""
    lent: tuple[str, ...] = ()
    """Refs put into the repository only for this plan."""


async def plan_merge(workspace: Workspace, source: Path | None) -> Merge:
    """Plan to merge a worktree's branch into what is checked out where it came from.

    That is `source`, else the repository's main worktree. Changes nothing. Raises UsageError if the
    worktree has uncommitted changes, or if no branch is checked out at the target.
    """
    try:
        listed = await git(workspace.at, "worktree", "list", "--porcelain")
    except WorkspaceError as error:
        raise UsageError(f"{workspace.branch} cannot be merged: {error}") from error
    there = source is not None and await asyncio.to_thread(source.is_dir)
    home = source if source and there else Path(listed.splitlines()[0].removeprefix("worktree "))
    into = await _current_branch(home)
    await _require_clean(workspace.at)
    begun = (await base_commit(workspace.at)).removeprefix("HEAD")
    return await _with_files(Merge(home=home, branch=workspace.branch, into=into, begun=begun))


async def plan_fetched(bundles: Bundles, attempt: Attempt, branch: str, home: Path) -> Merge:
    """Fetch a branch that another node finished into `home`, and plan its merge.

    Raises UsageError if it cannot be fetched, or if `home` has another branch with that name.
    """
    into = await _current_branch(home)
    place, ref = branch.removeprefix(BRANCHES), f"refs/heads/{branch}"
    lent = [each for each in (ref, SAVED + place) if not await commit_at(home, each)]
    try:
        wanted = await final_snapshot(bundles, attempt)
        snapshot = await fetch_snapshot(bundles, home, attempt, wanted, place=place)
        begun = (await mark_of(home, snapshot.commit)).begun
        tip = await tip_of(home, snapshot.commit)
    except WorkspaceError as error:
        raise UsageError(f"{branch} cannot be fetched into {home}: {error}") from error
    await _set_branch(home, ref, tip, instead_of=snapshot.commit)
    return await _with_files(
        Merge(home=home, branch=branch, into=into, begun=begun, lent=tuple(lent))
    )


async def plan_cloned(workspace: Workspace, home: Path) -> Merge:
    """Fetch the branch of a worktree of our own clone into `home`, and plan its merge.

    Raises UsageError as `plan_fetched` does.
    """
    worktree, branch, into = workspace.at, workspace.branch, await _current_branch(home)
    await _require_clean(worktree)
    ref = f"refs/heads/{branch}"
    lent = () if await commit_at(home, ref) else (ref,)
    tip = await commit_at(worktree, "HEAD")
    try:
        await git(home, "fetch", "--quiet", "--no-tags", str(worktree.common_dir), tip)
    except WorkspaceError as error:
        raise UsageError(f"{branch} cannot be fetched into {home}: {error}") from error
    await _set_branch(home, ref, tip, instead_of=tip)
    begun = (await base_commit(worktree)).removeprefix("HEAD")
    return await _with_files(Merge(home=home, branch=branch, into=into, begun=begun, lent=lent))


async def remove_lent_refs(merge: Merge) -> None:
    """Remove the refs that were put into the repository only for the plan."""
    for ref in merge.lent:
        await git(merge.home, "update-ref", "-d", ref)


async def _set_branch(home: Path, ref: str, tip: str, *, instead_of: str) -> None:
    """Set a branch to a commit; raise UsageError if it has somebody else's work."""
    there = await commit_at(home, ref)
    if there and there not in {tip, instead_of}:
        name = ref.removeprefix("refs/heads/")
        raise UsageError(f"{home} has another branch {name}; rename or delete it first")
    await git(home, "update-ref", ref, tip)


async def _require_clean(at: Path | Worktree) -> None:
    # Untracked files do not matter; if one is in the way, the merge says so.
    if await git(at, "status", "--porcelain", "--untracked-files=no"):
        raise _unclean_error(at if isinstance(at, Path) else at.folder)


async def _require_unchanged(home: Path) -> None:
    """Raise UsageError if the owner's files have uncommitted changes.

    Only the filter could tell whether a file that it rewrites has changed. Such files are left to
    git, which does not overwrite those that the merge would change.
    """
    which = ("--porcelain", "-z", "--no-renames", "--untracked-files=no")
    said = await git(home, "status", *which)
    found = [each for each in said.split("\0") if each]
    unstaged = [each[3:] for each in found if each.startswith(" M")]
    if len(await filtered_files(home, unstaged, IN_ANY_WAY)) < len(found):
        raise _unclean_error(home)


def _unclean_error(folder: Path) -> UsageError:
    return UsageError(f"{folder} has uncommitted changes; commit or stash them first")


async def _require_room(merge: Merge, name: str) -> None:
    """Raise UsageError if the merge would destroy uncommitted work of the owner, or needs filters.

    git replaces a folder by a file if everything in it is ignored. `name` is what the owner can
    merge by hand instead.
    """
    await _require_unchanged(merge.home)
    await _require_no_filter(merge, name)
    for names in chunk([each.name for each in merge.files]):
        literal = (f":(literal){name}" for name in names)
        found = await git(merge.home, "ls-files", "--others", "-z", "--", *literal)
        if lost := [each for each in found.split("\0") if each]:
            raise UsageError(
                f"{merge.branch} would overwrite files in {merge.home} that git does not track: "
                f"{brief(', '.join(lost))}; move them away first. Nothing was merged"
            )


async def _require_no_filter(merge: Merge, name: str) -> None:
    """Raise UsageError if a filter that the owner has configured rewrites files of the merge.

    Midwatch runs no filter, so the merge would leave such files as git stores them. The attributes
    of both sides count, because git uses those that the merge brings.
    """
    names = [each.name for each in merge.files]
    found = await filtered_files(merge.home, names, AT_CHECKOUT)
    async with _separate_index(merge.home, merge.tip) as apart:
        found += await filtered_files(apart, names, AT_CHECKOUT, staged=True)
    if found:
        raise UsageError(
            f"{merge.branch} changes {brief(', '.join(dict.fromkeys(found)))}, and a git filter "
            "rewrites such files, but Midwatch runs no filters: look at the diff, then run "
            f"`git merge {name}` in {merge.home}. Nothing was merged"
        )


async def _with_files(merge: Merge) -> Merge:
    """Return the merge with the files that it changes and those it leaves out."""
    home = merge.home
    tip = await commit_at(home, f"refs/heads/{merge.branch}")
    commits = int(await git(home, "rev-list", "--count", f"HEAD..{tip}"))
    if not commits:
        return replace(merge, tip=tip)
    shared = (await git(home, "merge-base", "HEAD", tip)).strip()
    left_out = await committed_rubbish(home, shared, tip)
    said = await git(home, "diff", *NUMSTAT, shared, tip, "--", *pathspecs_without(left_out))
    if await has_content(home, tip, [each.name for each in numstat(said)]):
        return replace(merge, tip=tip)
    if left_out:
        tip = await _as_one(home, shared, tip, left_out)
    return replace(merge, commits=commits, tip=tip, files=numstat(said), left_out=left_out)


async def has_content(home: Path, tip: str, names: Sequence[str]) -> bool:
    """Whether these files are the same in the checked out commit as in another one.

    How they got there, rebased or squashed, does not matter.
    """
    for some in chunk(names):
        literal = (f":(literal){name}" for name in some)
        if await git(home, "diff", "--name-only", "HEAD", tip, "--", *literal):
            return False
    return True


async def _as_one(home: Path, shared: str, tip: str, left_out: Sequence[str]) -> str:
    """Squash everything between two commits into one, without some paths even in its history."""
    async with _separate_index(home, tip) as apart:
        for paths in chunk(left_out):
            literal = (f":(literal){path}" for path in paths)
            await git(apart, "rm", "-r", "-f", "--cached", "--quiet", "--", *literal)
        tree = (await git(apart, "write-tree")).strip()
    message = await git(home, "show", "--no-patch", "--format=%B", tip)
    return (await git(home, "commit-tree", tree, "-p", shared, "-m", message.strip())).strip()


@asynccontextmanager
async def _separate_index(home: Path, commit: str) -> AsyncGenerator[Worktree]:
    """Yield the worktree with a commit in an index of its own.

    A merge in the owner's files would overwrite those that git ignores.
    """
    git_dir = Path((await git(home, "rev-parse", "--absolute-git-dir")).strip())
    with TemporaryDirectory(prefix="midwatch-") as scratch:
        environ = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        apart = Worktree(folder=home, git_dir=git_dir, environ=environ)
        await git(apart, "read-tree", commit)
        yield apart


async def merge_branch(merge: Merge) -> None:
    """Merge. Raises UsageError, with nothing changed, if something prevents it."""
    await _require_room(merge, merge.branch)
    await _merge_in(merge.home, merge, merge.branch)
    await record_merge(merge)


async def record_merge(merge: Merge) -> None:
    """Record that the branch is merged, so that `merged_before` finds it once it is gone."""
    try:
        await _leave_trace(merge)
    except WorkspaceError as error:
        log.warning("the merge of %s cannot be tracked: %s", merge.branch, error)


async def _leave_trace(merge: Merge) -> None:
    """Record where the branch began and ended, and when it was merged into which branch.

    The record is a commit on no branch; its parents are the beginning and the end.
    """
    if not merge.begun or not merge.branch.startswith(BRANCHES):
        return
    made = await git(
        *(merge.home, "commit-tree", f"{merge.tip}^{{tree}}", "-p", merge.begun, "-p", merge.tip),
        *("-m", f"{merge.branch} into {merge.into}"),
    )
    trace = TRACES + merge.branch.removeprefix(BRANCHES)
    await git(merge.home, "update-ref", trace, made.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMerge:
    """The record of a merged branch, which may be gone."""

    home: Path
    """Repository that took it."""
    into: str
    begun: str
    """Commit that it began with."""
    tip: str


async def merged_before(home: Path, branch: str) -> PastMerge | None:
    """Return the record of a branch's merge here, or `None` if it was not merged."""
    trace = TRACES + branch.removeprefix(BRANCHES)
    begun, tip = await commit_at(home, f"{trace}^1"), await commit_at(home, f"{trace}^2")
    if not tip:
        return None
    told = await git(home, "show", "--no-patch", "--format=%s", trace, "--")
    into = told.strip().removeprefix(f"{branch} into ")
    return PastMerge(home=home, into=into, begun=begun, tip=tip)


async def is_merged(home: Path, branch: str, base: str) -> bool:
    """Whether the commit checked out in a repository has a branch of a node that began at `base`.

    It does if Midwatch merged it here, or a merge commit names it.
    """
    if await merged_before(home, branch) is not None:
        return True
    named = ("--fixed-strings", f"--grep=Merge branch '{branch}'")
    return bool(await git(home, "log", "-1", "--format=%H", *named, f"{base}..HEAD", "--"))


async def try_merge(merge: Merge) -> None:
    """Try the merge in a temporary worktree. Raises UsageError if something prevents it."""
    # A branch that is only lent is gone afterwards; git keeps its commits for weeks.
    lent = f"refs/heads/{merge.branch}" in merge.lent
    name = merge.tip if lent else merge.branch
    await _require_room(merge, name)
    with TemporaryDirectory(prefix="midwatch-") as folder:
        trial = Path(folder) / "trial"
        add = ("worktree", "add", "--quiet", "--detach", str(trial), "HEAD")
        try:
            async with lock_worktrees(merge.home):
                await finish_before_cancel(git(merge.home, *add))
            await _merge_in(trial, merge, name)
        finally:
            with suppress(WorkspaceError):  # the worktree may not have been added
                await finish_before_cancel(
                    git(merge.home, "worktree", "remove", "--force", str(trial))
                )


async def _merge_in(folder: Path, merge: Merge, name: str) -> None:
    """Merge in `folder`. Raises UsageError; `name` is the one of `_require_room`."""
    try:
        named = f"Merge branch '{merge.branch}'"  # git's own message would name the commit
        await git(folder, "merge", "--quiet", "-m", named, merge.tip)
    except WorkspaceError as error:
        names = await git(folder, "diff", "--name-only", "--diff-filter=U", "-z")
        if not names:
            raise UsageError(f"{merge.branch} does not merge into {merge.into}: {error}") from error
        await git(folder, "merge", "--abort")
        files = ", ".join(name for name in names.split("\0") if name)
        raise UsageError(
            f"{merge.branch} conflicts with {merge.into} in {files}; nothing was merged. "
            f"To resolve that by hand, run `git merge {name}` in {merge.home}"
        ) from error


async def _current_branch(folder: Path) -> str:
    try:
        return (await git(folder, "symbolic-ref", "--short", "HEAD")).strip()
    except WorkspaceError as error:
        raise UsageError(f"no branch is checked out in {folder}: {error}") from error
