"""Every git command that Midwatch runs.

For git, a worker's files are data, never configuration or a program. Git runs in an environment
without secrets and without the user's own configuration, and everything that a repository's
configuration could run (hooks, filters, merge drivers, text conversion, a file system monitor) is
off. Git is told where a worktree's git directory is: a `.git` in the worktree itself is ignored.
See docs/security.md.
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
"""Author of Midwatch's own commits, which shows that no person made them."""
_SETTINGS = (
    *("user.name=Midwatch", f"user.email={EMAIL}"),
    *(f"core.hooksPath={os.devnull}", "core.fsmonitor=false", "core.alternateRefsCommand=true"),
    *("commit.gpgSign=false", "tag.gpgSign=false"),
    *("merge.verifySignatures=false", "log.showSignature=false"),
    *("submodule.recurse=false", "protocol.ext.allow=never"),
    # Git keeps every line of a smaller file in memory, and a worker can write files of any size.
    "core.bigFileThreshold=8m",
    *("gc.auto=0", "maintenance.auto=false"),
)
_FLAGS = {
    # As flags: a `.gitmodules` in the worktree would overrule the configuration.
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
runs filters on files that changed just before the index was written.
"""
_READING = frozenset({"diff", "ls-files", "reflog", "rev-list", "rev-parse", "show", "status"})
"""Commands that leave nothing half done. They are killed with their caller, because a named pipe
made by a worker could block them forever.
"""
_DRIVERS = r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$"
_ASK_DRIVERS = ("config", "--null", "--name-only", "--get-regexp", _DRIVERS)
_PLAIN_MERGE = "git merge-file --marker-size=%L %A %O %B"
"""What git does by itself for a file without a merge driver."""
_PLAIN_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR")
_NETWORK_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "USER", "LOGNAME"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_SILENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
_OWN = re.compile(r"(core\.excludesfile|safe\.directory)\n(.*)", re.DOTALL)
"""Settings taken from the user's own configuration: names of files and folders, nothing to run."""
_LOCAL_SECONDS = 600.0
"""Time limit for git on this machine: a worker's named pipe could block it forever."""
_THREAD_SECONDS = 10.0
"""Time limit for git when a thread waits for it."""
_LAST_SECONDS = 5.0
"""How long to wait for a killed process."""
_SECRET = re.compile(r"(?<=://)[^/@\s]+@")
"""Credentials in a URL that git echoes."""
_MAX_POINTER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A folder of files and its git directory, which a worker cannot reach."""

    folder: Path
    git_dir: Path
    branch: str = ""
    """The branch the folder was created with; empty for a folder without its own `.git`."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """More environment variables for git."""

    @property
    def common_dir(self) -> Path:
        """The git directory of the repository that the worktree belongs to."""
        return _common_dir(self.git_dir)

    def require_unchanged(self) -> None:
        """Raise WorkspaceError if the worker has put another `.git` into the folder."""
        if self.branch and _read_pointer(self.folder / ".git", "gitdir: ") != str(self.git_dir):
            raise WorkspaceError(
                f"{self.folder} is no longer the workspace that was made: its .git was replaced"
            )

    def require_branch(self) -> None:
        """Raise WorkspaceError if its own branch is not checked out."""
        head = _read_pointer(self.git_dir / "HEAD", "ref: refs/heads/")
        if head != self.branch:
            raise WorkspaceError(
                f"{self.folder} is no longer the workspace that was made: "
                f"its branch {self.branch} is not checked out"
            )


def worktree_of(repository: Path, folder: Path, branch: str) -> Worktree | None:
    """Return the worktree in `folder` according to its repository; `None` if there is none.

    The folder itself is not trusted. Raises WorkspaceError if it disagrees.
    """
    wanted = folder.resolve() / ".git"
    git_dir = repository / ".git" if (repository / ".git").is_dir() else repository
    if named := _read_pointer(repository / ".git", "gitdir: "):  # itself a worktree
        git_dir = repository / named
    for entry in (_common_dir(git_dir) / "worktrees").glob("*/gitdir"):
        if _read_pointer(entry, "") == str(wanted):
            found = Worktree(folder=folder, git_dir=entry.parent.resolve(), branch=branch)
            found.require_unchanged()
            return found
    return None


def named_repository(folder: Path) -> Path | None:
    """Return the repository named by the `.git` of a worktree; no more trustworthy than whoever can
    write that file.
    """
    named = _read_pointer(folder / ".git", "gitdir: ")
    return _common_dir(Path(named)) if Path(named).is_absolute() else None


def _common_dir(git_dir: Path) -> Path:
    return (git_dir / (_read_pointer(git_dir / "commondir", "") or ".")).resolve()


def _read_pointer(file: Path, start: str) -> str:
    """Return the only line of a small file without its start; empty for anything else."""
    with suppress(OSError, UnicodeDecodeError):
        if file.is_file() and not file.is_symlink() and file.stat().st_size < _MAX_POINTER:
            line = file.read_text("utf-8").removesuffix("\n")
            return line.removeprefix(start) if line.startswith(start) else ""
    return ""


async def git(at: Path | Worktree, *command: str) -> str:
    """Run git and return its output. A plain folder must be one that no worker has written to.

    Raises WorkspaceError with git's message, or if a worktree is not the one that was created.
    """
    process: Process | None = None
    try:
        async with asyncio.timeout(_LOCAL_SECONDS):
            process = await _start_git(at, command)
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        if process is not None:
            await _kill_group(process)
        raise WorkspaceError(f"git {command[0]}: not done after {_LOCAL_SECONDS:g} s") from error
    except asyncio.CancelledError:
        if process is not None and command[0] in _READING:
            await _kill_group(process)
        raise
    _require_success(command, process.returncode, stdout, stderr)
    return stdout.decode(errors="replace")


async def ask_git(at: Path | Worktree, *command: str, seconds: float, network: bool = False) -> str:
    """Run a git command that may be interrupted, and return its output.

    Git and all processes it started are killed after `seconds`, or when the caller is canceled.
    With `network`, git may use the user's own configuration to log in to another machine, but never
    asks for a password. Raises WorkspaceError with git's message, or TimeoutError.
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
    """Run git from a thread or without an event loop. Raises WorkspaceError like `git`."""
    call = _build_call(at)
    try:
        drivers = ""
        if command[0] not in _WITHOUT_FILES:
            _, drivers, _ = _output(call, _ASK_DRIVERS, "")
        code, said, refused = _output(call, _safe_command(command, drivers), stdin)
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
    # No thread is used: all of them may be waiting for a lock that the caller holds.
    call, drivers = _build_call(at, network=network), ""
    if command[0] not in _WITHOUT_FILES:
        asking = await _start_process(call, _ASK_DRIVERS)
        async with _ended_with_us(asking):
            stdout, _ = await asking.communicate()
        drivers = os.fsdecode(stdout)
    return await _start_process(call, _safe_command(command, drivers))


async def _start_process(call: "_Call", words: Sequence[str]) -> Process:
    """Start git; if the caller is canceled meanwhile, kill its whole process group, which asyncio
    would not do.
    """
    starting = asyncio.ensure_future(_spawn(call, words))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _kill_group(await starting)
        raise


async def _spawn(call: "_Call", words: Sequence[str]) -> Process:
    return await asyncio.create_subprocess_exec(
        *call.argv,
        *words,
        # In a folder that hangs, such as a dead mount, this process would hang, too.
        cwd="/",
        env=call.environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # no terminal for prompts, and one process group to kill
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The command line and environment that all git commands share."""

    argv: tuple[str, ...]
    environ: dict[str, str]


def _build_call(at: Path | Worktree, *, network: bool = False) -> _Call:
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


def _safe_command(command: Sequence[str], drivers: str) -> list[str]:
    """Return a command with its flags and with all configured drivers disabled.

    A worker's `.gitattributes` can name any of them, and then they would run on its files.
    """
    neutral = [_neutral_setting(name) for name in drivers.split("\0") if name]
    return [*_options(neutral), command[0], *_FLAGS.get(command[0], ()), *command[1:]]


def _options(settings: Sequence[str]) -> list[str]:
    return [part for setting in settings for part in ("-c", setting)]


def _path(untrusted: Path | None = None) -> str:
    """Return PATH without folders in which a worker could have placed its own git."""
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


def _neutral_setting(name: str) -> str:
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
    """Kill a process group by its leader if an exception leaves the block."""
    try:
        yield
    except BaseException:
        await _kill_group(process)
        raise


async def _kill_group(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the last process has just ended
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):  # a process that waits for a device cannot be killed
        async with asyncio.timeout(_LAST_SECONDS):
            await process.wait()


AT_CHECKOUT = "smudge|process"
"""Filters that rewrite files when git writes them."""
IN_ANY_WAY = f"clean|{AT_CHECKOUT}"


async def filtered_files(
    at: Path | Worktree, names: Sequence[str], ways: str, *, staged: bool = False
) -> list[str]:
    """Return the files that a filter of the owner's configuration rewrites in one of these ways.

    Attributes come from the folder's files or, with `staged`, from the index. No filter is run.
    """
    filters = await _configured_filters(at, ways) if names else frozenset[str]()
    found: list[str] = []
    for some in chunk(names) if filters else ():
        where = ("--cached",) if staged else ()
        said = await git(at, "check-attr", "-z", *where, "filter", "--", *some)
        parts = said.split("\0")
        named = zip(parts[0::3], parts[2::3], strict=False)
        found += [name for name, each in named if each in filters]
    return found


async def _configured_filters(at: Path | Worktree, ways: str) -> frozenset[str]:
    """Return the names of filters, including those of the user's own configuration."""
    asked = ("config", "--null", "--get-regexp", rf"^filter\..*\.({ways})$")
    try:
        said = await ask_git(at, *asked, seconds=_LOCAL_SECONDS, network=True)
    except WorkspaceError:  # exit code 1: there are none
        return frozenset()
    pairs = (each.split("\n", 1) for each in said.split("\0") if each)
    return frozenset(
        key.removeprefix("filter.").rpartition(".")[0]
        for key, *value in pairs
        if value not in ([""], ["cat"])
    )


def chunk(names: Sequence[str]) -> list[Sequence[str]]:
    """Split names into as many as fit into one command."""
    return [names[start : start + 100] for start in range(0, len(names), 100)]


def holds_submodule(worktree: Worktree, name: str) -> bool:
    """Whether a folder of a worktree is a submodule stored in the worktree's repository."""
    folder = (worktree.folder / name).resolve()
    named = _read_pointer(folder / ".git", "gitdir: ")
    place = (folder / named).resolve()
    return bool(named) and any(
        place.is_relative_to(each / "modules") for each in (worktree.git_dir, worktree.common_dir)
    )


def is_repository(folder: Path) -> bool:
    """Whether the folder is the top of a git repository or of a worktree."""
    return (folder / ".git").exists()


def is_bare(folder: Path) -> bool:
    """Whether the folder is a bare git repository: it can be cloned, but not worked in."""
    parts = (folder / "objects").is_dir(), (folder / "refs").is_dir()
    return all(parts) and (folder / "HEAD").is_file() and not is_repository(folder)
