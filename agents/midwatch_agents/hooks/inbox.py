"""Where hooks and their listener meet: a private folder with a socket and an inbox.

Imports little, and only from the standard library: an agent waits for this import.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator, Mapping
from pathlib import Path

SOCKET = "hook.sock"
INBOX = "hooks.inbox.jsonl"
MAX_INBOX = 64 << 20
"""Largest inbox, in bytes; a line that would not fit is dropped."""
_MAX_SOCKET_PATH = 100
"""Longest path, in bytes; systems allow 104 to 108."""
_LOCK_WAIT = 0.05
"""Seconds that a hook waits for the inbox's lock."""


def state_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of the socket and the inbox; it may not exist yet."""
    if named := environ.get("MIDWATCH_STATE"):
        return Path(named)
    state = environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore relative paths.
    return (Path(state) if state.startswith("/") else home / ".local/state") / "midwatch"


def socket_path(folder: Path, short: Path = Path("/tmp")) -> Path | None:
    """Return the path of the listener's socket; its folder is created if missing.

    A path of more than 100 bytes is replaced by one below `short`. `None` if the folder cannot be
    private to the user: then there must be no socket.
    """
    path = folder / SOCKET
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        import hashlib

        digest = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
        path = short / f"midwatch-{os.geteuid()}" / f"{digest}.sock"
    return path if make_private(path.parent) else None


def make_private(folder: Path) -> bool:
    """Create a folder with mode 0700 if it is missing; return whether it belongs to this user.

    An existing folder keeps its mode.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)


def put_in_inbox(folder: Path, line: bytes) -> bool:
    """Append a line that ends with a newline; return whether that succeeded.

    It fails if the inbox would exceed 64 MiB, is not a regular file of this user, cannot be
    written, or stays locked for 50 ms.
    """
    if not make_private(folder):
        return False
    inbox, deadline = folder / INBOX, time.monotonic() + _LOCK_WAIT
    try:
        while time.monotonic() < deadline:
            file = os.open(inbox, _APPENDING, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The listener may have taken the file before we locked it.
                if os.path.samestat(os.fstat(file), inbox.lstat()):
                    return _append(file, line)
            except (BlockingIOError, FileNotFoundError):
                time.sleep(0.005)
            finally:
                os.close(file)
    except OSError:
        pass
    return False


_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


def _append(file: int, line: bytes) -> bool:
    found = os.fstat(file)
    fits = found.st_size + len(line) <= MAX_INBOX
    if not fits or not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return False
    if os.write(file, line) == len(line):
        return True
    os.ftruncate(file, found.st_size)  # the disk is full: leave no half line
    return False


def take_inbox(folder: Path) -> Generator[bytes, None, None]:
    """Yield the lines of the inbox in order, without newlines; for one listener at a time.

    The inbox is first renamed, so that hooks begin a new one, and deleted once its last line has
    been taken. If an earlier listener did not finish, all its lines come first. Raises OSError.
    """
    taken = folder / f"{INBOX}.taken"
    for _ in range(2):
        if not taken.exists() and not _set_aside(folder / INBOX, taken):
            return
        with open(_open_own(taken), "rb") as lines:
            for line in lines:
                yield line.rstrip(b"\n")
        taken.unlink()


def _set_aside(inbox: Path, taken: Path) -> bool:
    """Rename the inbox while no hook writes; return whether there was one."""
    try:
        file = _open_own(inbox)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        inbox.rename(taken)
    finally:
        os.close(file)
    return True


def _open_own(path: Path) -> int:
    """Open a file for reading if this user owns it: others may be able to write in the folder."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if os.fstat(file).st_uid != os.geteuid():
        os.close(file)
        raise PermissionError(errno.EACCES, f"{path.name} is another user's", str(path))
    return file
