"""Where an attempt works: a worktree with its own branch, a copy, or an empty folder."""

import asyncio
import fcntl
import os
import re
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from midwatch_monitor.errors import UnreachableError, WorkspaceError
from midwatch_monitor.shelter import sheltered

CLONES = "clones"
"""The folder below a home that holds its clones of repositories."""
EMAIL = "midwatch@localhost"
"""Who wrote Midwatch's own commits, and by that no person."""
_IDENTITY = ("-c", "user.name=Midwatch", "-c", f"user.email={EMAIL}")
_QUIET = (
    *("-c", "commit.gpgsign=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),  # it may name a program, in a file that a worker can write
)
_ASKS_NOBODY = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
NETWORK_SECONDS = 600.0
"""How long git may take with another machine."""
_HALF_WRITTEN = "bad object worktrees/"
"""What git says where somebody adds a worktree at this moment, or was killed over it."""
_LAST_SECONDS = 5.0
"""How long a killed process is waited for."""
_SECRET = re.compile(r"(?<=://)[^/@\s]+@")
"""Who logs in, and with what, in a URL that git repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """One attempt's own copy of what it works on."""

    folder: Path
    branch: str = ""
    """The worktree's branch; empty where there is no git."""
    base: str = ""
    """The commit that every clone of the repository has; empty where nobody asks."""


async def prepare(
    folder: Path, source: Path | None, *, branch: str, merges: Sequence[str], base: str = ""
) -> Ground:
    """Make the ground of an attempt in `folder`, which must not exist yet.

    `merges` are the branches of finished tasks that this one builds on; `base` is the commit that
    it starts from, by default the one that is checked out in `source`. Raises WorkspaceError with
    the reason, a conflict between those branches among them.
    """
    if await asyncio.to_thread(_without_git, folder, source):
        return Ground(folder=folder)
    assert source is not None
    # Twice: it takes the place of an entry for a folder that is gone, if that is locked too.
    forced = ("worktree", "add", "--quiet", "--force", "--force")
    command = (*forced, "-b", branch, str(folder), base or "HEAD")
    async with alone(source):
        # Until git ends nobody else may have the list.
        await sheltered(git(source, *command))
    for other in merges:
        await _merge(folder, other)
    return Ground(folder=folder, branch=branch, base=base)


def _without_git(folder: Path, source: Path | None) -> bool:
    """Make the ground if it needs no git; else only the folder that will hold the worktree."""
    if folder.exists():
        raise WorkspaceError(f"{folder} exists already")
    if source is None:
        folder.mkdir(parents=True)
        return True
    if not source.is_dir():
        raise WorkspaceError(f"the workspace {source} is no folder")
    if not is_repository(source):
        _copy(source, folder)
        return True
    folder.parent.mkdir(parents=True, exist_ok=True)
    return False


async def clear(folder: Path, source: Path | None, *, branch: str) -> None:
    """Remove the ground that a killed process left half made; nothing to remove is no error."""
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if source is None or not is_repository(source):
        return
    async with alone(source):
        with suppress(WorkspaceError):  # only of one that was killed in the middle: git locks it
            await git(source, "worktree", "unlock", str(folder))
        await git(source, "worktree", "prune")
        if await git(source, "branch", "--list", branch):
            await git(source, "branch", "--quiet", "-D", branch)


@asynccontextmanager
async def alone(repository: Path) -> AsyncGenerator[None]:
    """Keep all others, in other processes too, from a repository's list of worktrees.

    git reads that list while it adds to it, and fails over an entry that is half written: adding,
    pruning and fetching alike. What a killed process left half written goes.
    """
    # In one go: whoever has the lock must not need a thread, for all may wait for the lock.
    waiting = asyncio.create_task(asyncio.to_thread(_lock, repository / ".git"))
    try:
        lock = await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # The thread gets the lock all the same, and somebody must give it back.
        waiting.add_done_callback(lambda done: os.close(done.result()))
        raise
    try:
        yield
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    """Wait for the lock, and remove what somebody left half written who had it."""
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _sweep(path / "worktrees")
    return lock


def _sweep(worktrees: Path) -> None:
    """Remove entries that lead to no commit: `git worktree add` was killed before it wrote one."""
    for head in worktrees.glob("*/HEAD"):
        with suppress(OSError):
            if not head.read_text("utf-8").strip().strip("0"):
                shutil.rmtree(head.parent, ignore_errors=True)


def is_repository(folder: Path) -> bool:
    """Whether the folder is the top of a git repository or of a worktree."""
    return (folder / ".git").exists()


def is_bare(folder: Path) -> bool:
    """Whether the folder is the inside of a git repository: nobody works in it, it is cloned."""
    parts = (folder / "objects").is_dir(), (folder / "refs").is_dir()
    return all(parts) and (folder / "HEAD").is_file() and not is_repository(folder)


def _copy(source: Path, folder: Path) -> None:
    ignored = shutil.ignore_patterns(".midwatch", "__pycache__", ".venv", "node_modules")
    shutil.copytree(source, folder, ignore=ignored, symlinks=True)


async def _merge(folder: Path, branch: str) -> None:
    try:
        await git(folder, "merge", "--quiet", "--no-edit", branch)
    except WorkspaceError as error:
        raise WorkspaceError(f"{branch} does not merge: {error}") from error


async def keep(ground: Ground, message: str) -> None:
    """Commit what the attempt has done on its branch; nothing to commit is no error.

    It is brought to its end: whoever came next would find git's lock, and could not commit.
    """
    if ground.branch:
        await sheltered(_keep(ground.folder, message))


async def _keep(folder: Path, message: str) -> None:
    await git(folder, "add", "--all")
    if await git(folder, "status", "--porcelain"):
        await git(folder, "commit", "--quiet", "--message", message)


async def git(folder: Path, *command: str, environ: Mapping[str, str] | None = None) -> str:
    """Run git in a folder and answer its output; raises WorkspaceError with what it said.

    `environ` are git's own variables; those of this process are never handed on.
    """
    process = await _started(command, cwd=folder, environ=environ or {})
    stdout, stderr = await process.communicate()
    _require_success(command, process, stdout, stderr)
    return stdout.decode(errors="replace")


async def ask_git(folder: Path, *command: str, seconds: float) -> str:
    """Ask git about a folder by its full path, and answer its output, which may be long.

    Only for what may end in the middle: git and all that it started are ended after so many
    seconds, or when the caller is cancelled. It asks nobody for a password. Raises WorkspaceError
    with what it said, or TimeoutError.
    """
    # With a `cwd` that does not answer, a dead mount, this process would wait, and not git alone.
    asked = ("-C", str(folder), *command)
    process = await _started(asked, cwd=Path("/"), silent=True)
    try:
        async with _ended_with_us(process), asyncio.timeout(seconds):
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise TimeoutError(f"git {command[0]}: no answer within {seconds:g} s") from error
    _require_success(command, process, stdout, stderr)
    return await asyncio.to_thread(stdout.decode, errors="replace")


async def head_of(source: str, *, url: bool = False, seconds: float = NETWORK_SECONDS) -> str:
    """The commit that is checked out in a repository on this machine, or in one with a URL.

    Empty for another folder, or none. A URL has so many seconds to answer. Raises WorkspaceError
    where there is no commit.
    """
    if url:
        try:
            # Not in a folder: its configuration has no say in where the URL leads.
            said = await ask_git(Path("/"), "ls-remote", source, "HEAD", seconds=seconds)
        except TimeoutError as error:
            raise WorkspaceError(str(error)) from error
        if not said.strip():
            raise WorkspaceError(f"{source} has no commit yet")
        return said.split()[0]
    if not source or not is_repository(Path(source)):
        return ""
    return (await git(Path(source), "rev-parse", "--verify", "HEAD^{commit}")).strip()


async def fetch_into(repository: Path, *wanted: str, seconds: float) -> str:
    """`git fetch` in a repository, beside others who add worktrees to it. Raises as `ask_git`."""
    try:
        return await ask_git(repository, "fetch", *wanted, seconds=seconds)
    except WorkspaceError as error:
        if _HALF_WRITTEN not in str(error) or not is_repository(repository):
            raise
    async with alone(repository):
        return await ask_git(repository, "fetch", *wanted, seconds=seconds)


async def _started(
    command: Sequence[str],
    *,
    cwd: Path,
    silent: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Process:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    variables |= {**(_ASKS_NOBODY if silent else {}), **(environ or {})}
    try:
        return await asyncio.create_subprocess_exec(
            "git",
            *_IDENTITY,
            *_QUIET,
            *command,
            cwd=cwd,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=silent,  # no terminal to ask at, and one group to end
        )
    except FileNotFoundError as error:
        raise UnreachableError("git is not installed") from error


def _require_success(
    command: Sequence[str], process: Process, stdout: bytes, stderr: bytes
) -> None:
    if process.returncode != 0:
        said = (stderr or stdout).decode(errors="replace").strip()
        raise WorkspaceError(f"git {command[0]}: {_SECRET.sub('', said)}")


@asynccontextmanager
async def _ended_with_us(process: Process) -> AsyncGenerator[None]:
    """Kill a process that leads a group, and its group, where this is left before its end."""
    try:
        yield
    except BaseException:
        with suppress(ProcessLookupError, PermissionError):  # the last of them ended just now
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):  # what waits for a device cannot be killed
            async with asyncio.timeout(_LAST_SECONDS):
                await process.wait()
        raise


async def free_label(run: int, home: Path, sources: Sequence[Path | None]) -> str:
    """A name for a run's folders and branches that nothing has yet, in clones below `home` either.

    Run numbers begin anew with a new journal, while the folders and branches of an old one stay.
    """
    clones = await asyncio.to_thread(_clones, home)
    for number in count(1):
        label = f"r{run}" if number == 1 else f"r{run}.{number}"
        taken = await asyncio.to_thread((home / "work" / label).exists)
        if not taken and not await _has_branches(label, [*sources, *clones]):
            return label
    raise AssertionError("count() ended")


def _clones(home: Path) -> list[Path]:
    return [each for each in (home / CLONES).glob("*") if each.suffix not in {".part", ".lock"}]


async def _has_branches(label: str, sources: Sequence[Path | None]) -> bool:
    repositories = {source for source in sources if source is not None and is_repository(source)}
    for source in repositories:
        if await git(source, "branch", "--list", f"midwatch/{label}/*"):
            return True
    return False
