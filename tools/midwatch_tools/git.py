"""Every call of git that Midwatch makes.

What a worker wrote is data for git here, never configuration and never a program. Git runs with an
environment without secrets and without the user's own configuration, and whatever a repository's
configuration would have it run (hooks, filters, merge drivers, text conversion, a file system
monitor) is off. Of a worktree, git is told where its git directory is: a `.git` that stands in the
worktree has no say. See docs/security.md.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from midwatch_monitor.errors import UnreachableError, WorkspaceError

EMAIL = "midwatch@localhost"
"""Who wrote Midwatch's own commits, and by that no person."""
_SETTINGS = (
    *("user.name=Midwatch", f"user.email={EMAIL}"),
    *(f"core.hooksPath={os.devnull}", "core.fsmonitor=false", "core.alternateRefsCommand=true"),
    *("commit.gpgSign=false", "tag.gpgSign=false"),
    *("merge.verifySignatures=false", "log.showSignature=false"),
    *("submodule.recurse=false", "protocol.ext.allow=never"),
    # Of a larger file git would hold every line in memory, and a worker makes them of any size.
    "core.bigFileThreshold=8m",
    *("gc.auto=0", "maintenance.auto=false"),
)
_FLAGS = {
    # Not by configuration: a `.gitmodules` in the worktree overrules that.
    "diff": ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"),
    "status": ("--ignore-submodules=all",),
    "show": ("--no-ext-diff", "--no-textconv", "--no-color"),
}
_WITHOUT_FILES = frozenset(
    {
        *("branch", "bundle", "cat-file", "check-ignore", "clone", "config", "fetch"),
        *("for-each-ref", "init", "log", "ls-remote", "merge-base", "reflog", "rev-list"),
        *("rev-parse", "symbolic-ref", "update-ref", "version"),
    }
)
"""Commands that neither read nor write the files of a worktree. All others may: even `write-tree`
filters those that changed just before the index was written."""
_READING = frozenset({"diff", "ls-files", "reflog", "rev-list", "rev-parse", "show", "status"})
"""Commands that leave nothing half done: they end with whoever waits for them, for a pipe that a
worker made would hold them for ever."""
_DRIVERS = r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$"
_ASK_DRIVERS = ("config", "--null", "--name-only", "--get-regexp", _DRIVERS)
_PLAIN_MERGE = "git merge-file --marker-size=%L %A %O %B"
"""What git does by itself where a file has no merge driver."""
_PLAIN_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR")
_NETWORK_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "USER", "LOGNAME"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_SILENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
_OWN = re.compile(r"(core\.excludesfile|safe\.directory)\n(.*)", re.DOTALL)
"""What is taken from the user's own configuration: names of files and folders, nothing to run."""
_LOCAL_SECONDS = 600.0
"""How long git may take on this machine: a worker's named pipe would hold it for ever."""
_THREAD_SECONDS = 10.0
"""How long it may take where a thread waits for it."""
_LAST_SECONDS = 5.0
"""How long a killed process is waited for."""
_SECRET = re.compile(r"(?<=://)[^/@\s]+@")
"""Who logs in, and with what, in a URL that git repeats."""
_MAX_POINTER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A folder of files, and where git keeps what it knows of them, out of a worker's reach."""

    folder: Path
    git_dir: Path
    branch: str = ""
    """The branch that the folder was made with; empty for a folder that has no `.git` itself."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """More of git's own variables."""

    @property
    def common_dir(self) -> Path:
        """The git directory of the repository that the worktree belongs to."""
        return _common_dir(self.git_dir)

    def require_unchanged(self) -> None:
        """Raise WorkspaceError if the worker has put another `.git` into the folder."""
        if self.branch and _pointer(self.folder / ".git", "gitdir: ") != str(self.git_dir):
            raise WorkspaceError(
                f"{self.folder} is no longer the workspace that was made: its .git was replaced"
            )

    def require_branch(self) -> None:
        """Raise WorkspaceError if another branch is checked out than the one that was made."""
        head = _pointer(self.git_dir / "HEAD", "ref: refs/heads/")
        if head != self.branch:
            raise WorkspaceError(
                f"{self.folder} is no longer the workspace that was made: "
                f"its branch {self.branch} is not checked out any more"
            )


def worktree_of(repository: Path, folder: Path, branch: str) -> Worktree | None:
    """The worktree in `folder`, by what its repository says; `None` if it knows of none.

    What is in the folder itself is not asked. Raises WorkspaceError where it says something else.
    """
    wanted = folder.resolve() / ".git"
    git_dir = repository / ".git" if (repository / ".git").is_dir() else repository
    if named := _pointer(repository / ".git", "gitdir: "):  # itself a worktree
        git_dir = repository / named
    for entry in (_common_dir(git_dir) / "worktrees").glob("*/gitdir"):
        if _pointer(entry, "") == str(wanted):
            found = Worktree(folder=folder, git_dir=entry.parent.resolve(), branch=branch)
            found.require_unchanged()
            return found
    return None


def named_repository(folder: Path) -> Path | None:
    """The repository that the `.git` in a worktree names: only as true as who could write it."""
    named = _pointer(folder / ".git", "gitdir: ")
    return _common_dir(Path(named)) if Path(named).is_absolute() else None


def _common_dir(git_dir: Path) -> Path:
    return (git_dir / (_pointer(git_dir / "commondir", "") or ".")).resolve()


def _pointer(file: Path, start: str) -> str:
    """The one line of a small file without its start; empty where it is anything else."""
    with suppress(OSError, UnicodeDecodeError):
        if file.is_file() and not file.is_symlink() and file.stat().st_size < _MAX_POINTER:
            line = file.read_text("utf-8").removesuffix("\n")
            return line.removeprefix(start) if line.startswith(start) else ""
    return ""


async def git(at: Path | Worktree, *command: str) -> str:
    """Run git and answer its output. A folder is one that no worker has written to.

    Raises WorkspaceError with what git said, also where a worktree is not what was made.
    """
    process: Process | None = None
    try:
        async with asyncio.timeout(_LOCAL_SECONDS):
            process = await _start_git(at, command)
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        if process is not None:
            await _end(process)
        raise WorkspaceError(f"git {command[0]}: not done after {_LOCAL_SECONDS:g} s") from error
    except asyncio.CancelledError:
        if process is not None and command[0] in _READING:
            await _end(process)
        raise
    _require_success(command, process.returncode, stdout, stderr)
    return stdout.decode(errors="replace")


async def ask_git(at: Path | Worktree, *command: str, seconds: float, network: bool = False) -> str:
    """Run git for what may end in the middle, and answer its output.

    Git and all that it started are ended after so many seconds, or when the caller is cancelled.
    For another machine (`network`) it may use the user's own configuration to log in, and asks
    nobody for a password. Raises WorkspaceError with what it said, or TimeoutError.
    """
    try:
        async with asyncio.timeout(seconds):
            process = await _start_git(at, command, network=network)
            async with _ended_with_us(process):
                stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise TimeoutError(f"git {command[0]}: no answer within {seconds:g} s") from error
    _require_success(command, process.returncode, stdout, stderr)
    return await asyncio.to_thread(stdout.decode, errors="replace")


def run_git(at: Path | Worktree, *command: str, stdin: str = "") -> str:
    """Run git from a thread, or before there is a loop. Raises WorkspaceError as `git` does."""
    call = _call(at)
    try:
        drivers = ""
        if command[0] not in _WITHOUT_FILES:
            _, drivers, _ = _output(call, _ASK_DRIVERS, "")
        code, said, refused = _output(call, _whole(command, drivers), stdin)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkspaceError(f"git {command[0]}: {error}") from error
    _require_success(command, code, os.fsencode(said), refused)
    return said


def _output(call: "_Call", words: Sequence[str], stdin: str) -> tuple[int, str, bytes]:
    done = subprocess.run(
        [*call.argv, *words],
        cwd="/",
        env=call.environ,
        input=os.fsencode(stdin),
        capture_output=True,
        check=False,
        timeout=_THREAD_SECONDS,
    )
    return done.returncode, os.fsdecode(done.stdout), done.stderr


async def _start_git(
    at: Path | Worktree, command: Sequence[str], *, network: bool = False
) -> Process:
    # No thread is asked for: all of them may be waiting for a lock that the caller has.
    call, drivers = _call(at, network=network), ""
    if command[0] not in _WITHOUT_FILES:
        asking = await _begin(call, _ASK_DRIVERS)
        async with _ended_with_us(asking):
            stdout, _ = await asking.communicate()
        drivers = os.fsdecode(stdout)
    return await _begin(call, _whole(command, drivers))


async def _begin(call: "_Call", words: Sequence[str]) -> Process:
    """Start git; where the caller is cancelled meanwhile, asyncio would end git alone."""
    starting = asyncio.ensure_future(_spawn(call, words))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


async def _spawn(call: "_Call", words: Sequence[str]) -> Process:
    return await asyncio.create_subprocess_exec(
        *call.argv,
        *words,
        # With one that does not answer, a dead mount, this process would wait, and not git alone.
        cwd="/",
        env=call.environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # no terminal to ask at, and one group to end
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """git with all that every command of it has."""

    argv: tuple[str, ...]
    environ: dict[str, str]


def _call(at: Path | Worktree, *, network: bool = False) -> _Call:
    folder, path = (at, _path()) if isinstance(at, Path) else (at.folder, _path(at.folder))
    program = shutil.which("git", path=path)
    if program is None:
        raise UnreachableError("git is not installed")
    environ = _environ(path, network=network)
    if isinstance(at, Worktree):
        at.require_unchanged()
        environ |= {"GIT_DIR": str(at.git_dir), "GIT_WORK_TREE": str(folder), **at.environ}
    own = () if network else ("credential.helper=", *_own_settings(program, path))
    argv = (program, "-C", str(folder), *_options((*_SETTINGS, *own)))
    return _Call(argv=argv, environ=environ)


def _whole(command: Sequence[str], drivers: str) -> list[str]:
    """A command with its flags; the drivers that a repository's configuration has run nothing.

    A `.gitattributes` that a worker wrote can name any of them, and they would run among its files.
    """
    neutral = [_neutral(name) for name in drivers.split("\0") if name]
    return [*_options(neutral), command[0], *_FLAGS.get(command[0], ()), *command[1:]]


def _options(settings: Sequence[str]) -> list[str]:
    return [part for setting in settings for part in ("-c", setting)]


def _path(untrusted: Path | None = None) -> str:
    """The PATH without folders that a worker could have put its own git into."""
    parts = map(Path, os.environ.get("PATH", os.defpath).split(os.pathsep))
    kept = [part for part in parts if part.is_absolute()]
    if untrusted is not None:
        inside = untrusted.resolve()
        kept = [part for part in kept if not part.resolve().is_relative_to(inside)]
    return os.pathsep.join(map(str, kept))


def _environ(path: str, *, network: bool) -> dict[str, str]:
    names = (*_PLAIN_VARIABLES, *(_NETWORK_VARIABLES if network else ()))
    environ = {name: os.environ[name] for name in names if name in os.environ}
    environ |= {"PATH": path, "GIT_OPTIONAL_LOCKS": "0", "GIT_ATTR_NOSYSTEM": "1", **_SILENT}
    if not network:
        environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    return environ


@cache
def _own_settings(program: str, path: str) -> tuple[str, ...]:
    done = subprocess.run(
        [program, "config", "--includes", "--null", "--list"],
        cwd="/",
        env=_environ(path, network=True),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    entries = os.fsdecode(done.stdout).split("\0")
    return tuple(f"{found[1]}={found[2]}" for each in entries if (found := _OWN.fullmatch(each)))


def _neutral(name: str) -> str:
    if name.endswith(".driver"):
        return f"{name}={_PLAIN_MERGE}"
    return f"{name}=false" if name.endswith(".required") else f"{name}="


def _require_success(
    command: Sequence[str], code: int | None, stdout: bytes, stderr: bytes
) -> None:
    if code != 0:
        said = " ".join((stderr or stdout).decode(errors="replace").split())
        raise WorkspaceError(f"git {command[0]}: {_SECRET.sub('', said)}")


@asynccontextmanager
async def _ended_with_us(process: Process) -> AsyncGenerator[None]:
    """Kill a process that leads a group, and its group, where this is left before its end."""
    try:
        yield
    except BaseException:
        await _end(process)
        raise


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the last of them ended just now
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):  # what waits for a device cannot be killed
        async with asyncio.timeout(_LAST_SECONDS):
            await process.wait()


def is_repository(folder: Path) -> bool:
    """Whether the folder is the top of a git repository or of a worktree."""
    return (folder / ".git").exists()


def is_bare(folder: Path) -> bool:
    """Whether the folder is the inside of a git repository: nobody works in it, it is cloned."""
    parts = (folder / "objects").is_dir(), (folder / "refs").is_dir()
    return all(parts) and (folder / "HEAD").is_file() and not is_repository(folder)
