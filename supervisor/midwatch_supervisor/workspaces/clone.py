"""This node's own clone of each repository that its attempts work on."""

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import tenacity

from midwatch_monitor.errors import UnreachableError, WorkspaceError
from midwatch_monitor.file_lock import lock_file
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.workspaces.workspace import (
    CLONES,
    WorkspacePlan,
    ask_network,
    fetch_into,
)
from midwatch_tools.git import git, is_repository

_LOOK_SECONDS = 0.05
"""Seconds between two tries for the lock of a clone."""
_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_TRIES, _TRY_SECONDS, _LONGEST_SECONDS = 6, 30.0, 8.0
"""Tries of a network command, the seconds for all of them, and the longest pause."""
_PASSING = re.compile(
    r"timed out|could not resolve|name resolution|connection (refused|reset|closed)|early eof"
    r"|failed to connect|couldn't connect|unreachable|no route to host|hung up|rpc failed"
    r"|unexpected disconnect|returned error: (408|429|5\d\d)",
    re.IGNORECASE,
)
"""Errors of git, curl and ssh about networks and servers that are likely to be temporary."""


async def origin_of(assignment: Assignment, home: Path, *, fleet: bool) -> WorkspacePlan:
    """Return a plan with the source of a task's workspaces on this node, and the start commit.

    The source is its workspace itself; for a git URL, and for every repository in a `fleet`, it is
    an up-to-date clone below `home`. Raises WorkspaceError if the start commit cannot be obtained,
    and UnreachableError if this machine or the network is the reason.
    """
    folder = assignment.workspace
    versioned = folder is not None and is_repository(folder)
    cloned = assignment.origin or (fleet and (assignment.base or versioned))
    if not cloned:
        return WorkspacePlan(source=folder, base=assignment.base)
    clone = clone_of(assignment.source, home)
    async with _lock_clone(clone):
        await _clone_once(clone, assignment.source)
        base = assignment.base or await _origin_head(clone)
        await fetch(clone, base)
    return WorkspacePlan(source=clone, base=base)


def clone_of(source: str, home: Path) -> Path:
    """Return the path of a repository's clone: `clones/shop-1f3a09c2` below `home`."""
    name = source.rstrip("/").removesuffix(".git").rpartition("/")[2].rpartition(":")[2]
    digest = hashlib.blake2b(source.encode(), digest_size=4).hexdigest()
    return home / CLONES / f"{_NAME.sub('-', name) or 'repository'}-{digest}"


async def _clone_once(clone: Path, source: str) -> None:
    """Clone a repository unless that is done already; a killed process leaves no partial clone."""
    if is_repository(clone):
        return
    part = clone.with_name(f"{clone.name}.part")

    async def ask() -> str:
        await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)
        # Outside any repository, whose configuration could redirect the URL.
        command = ("clone", "--quiet", "--no-checkout", source, str(part))
        return await ask_network(Path("/"), *command)

    try:
        await _retry_git(ask)
    except WorkspaceError as error:  # its text names the source, without a password
        raise UnreachableError(str(error)) from error
    part.rename(clone)


async def _origin_head(clone: Path) -> str:
    """Return the commit that is checked out at the origin now."""
    await _fetch_with_retries(clone, "--quiet", "origin", "HEAD")
    return (await git(clone, "rev-parse", "FETCH_HEAD")).strip()


async def fetch(repository: Path, commit: str) -> None:
    """Make sure that a repository has a commit of its origin.

    Asks the origin only if the commit is missing. Raises UnreachableError if the origin does not
    answer, and WorkspaceError if it has no such commit.
    """
    if await has_commit(repository, commit):
        return
    said, answered = "", False
    # A commit that no branch leads to can still be fetched by its hash.
    for wanted in ((), (commit,)):
        try:
            await _fetch_with_retries(repository, "--quiet", "origin", *wanted)
        except WorkspaceError as error:
            said = f": {error}"
        else:
            answered = True
        if await has_commit(repository, commit):
            return
    lacks = f"{repository} has no commit {commit[:12]} and cannot fetch it{said}"
    raise WorkspaceError(lacks) if answered else UnreachableError(lacks)


async def has_commit(repository: Path, commit: str) -> bool:
    """Whether a repository has a commit."""
    try:
        await git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
    except UnreachableError:
        raise
    except WorkspaceError:
        return False
    return True


async def _fetch_with_retries(repository: Path, *wanted: str) -> None:
    """Fetch from the origin; temporary errors are retried."""
    try:
        await _retry_git(lambda: fetch_into(repository, *wanted))
    except WorkspaceError as error:
        raise UnreachableError(str(error)) from error


async def _retry_git(ask: Callable[[], Awaitable[str]]) -> None:
    """Run a git command; retry it after temporary errors, and raise the last one."""
    tries = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(_is_temporary),
        wait=tenacity.wait_random_exponential(multiplier=1, max=_LONGEST_SECONDS),
        stop=tenacity.stop_after_attempt(_TRIES) | tenacity.stop_after_delay(_TRY_SECONDS),
        reraise=True,
    )
    async for each in tries:
        with each:
            await ask()


def _is_temporary(error: BaseException) -> bool:
    """Whether a git error may be temporary; a timeout took minutes already and does not count."""
    return isinstance(error, WorkspaceError) and _PASSING.search(str(error)) is not None


@asynccontextmanager
async def _lock_clone(clone: Path) -> AsyncGenerator[None]:
    """Hold the lock of a clone, so that no other process makes or fetches it meanwhile.

    No thread waits for the lock: cloning may take long, and threads are few.
    """
    clone.parent.mkdir(parents=True, exist_ok=True)
    lock = await lock_file(clone.with_name(f"{clone.name}.lock"), pause=_LOOK_SECONDS)
    assert lock is not None  # because it tries forever
    try:
        yield
    finally:
        os.close(lock)
