"""Where hooks and their listener meet: a folder of the user's own, a socket and an inbox in it.

Only the standard library, and little of that: an agent waits while this is imported.
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
"""Bytes; a line that would not fit is dropped."""
_MAX_SOCKET_PATH = 100
"""Bytes; systems allow 104 to 108."""
_LOCK_WAIT = 0.05
"""Seconds that a hook waits for the inbox's lock."""


def state_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Where the socket and the inbox are; it need not be there yet."""
    if named := environ.get("MIDWATCH_STATE"):
        return Path(named)
    state = environ.get("XDG_STATE_HOME", "")
    # The XDG specification has a relative path ignored.
    return (Path(state) if state.startswith("/") else home / ".local/state") / "midwatch"


def socket_path(folder: Path, short: Path = Path("/tmp")) -> Path | None:
    """Where the listener's socket is, in a folder that is made if there is none.

    A path of more than 100 bytes is replaced by one below `short`. `None` where that folder cannot
    be the user's alone: then there must be no socket.
    """
    path = folder / SOCKET
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        import hashlib

        digest = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
        path = short / f"midwatch-{os.geteuid()}" / f"{digest}.sock"
    return path if make_private(path.parent) else None


def make_private(folder: Path) -> bool:
    """Make a folder of mode 0700 if there is none; whether there is one that is this user's.

    One that was there keeps its mode.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)


def put_in_inbox(folder: Path, line: bytes) -> bool:
    """Append a line, at its end a newline; whether it is there now.

    It is not if the inbox would grow over 64 MiB, is no file of this user's own, cannot be
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
                # The listener may have taken it before it was locked.
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
    os.ftruncate(file, found.st_size)  # the disk is full: no half line
    return False


def take_inbox(folder: Path) -> Generator[bytes, None, None]:
    """The lines of the inbox in order, without their newlines; for one listener at a time.

    The inbox is renamed first, so that hooks begin a new one, and deleted after its last line was
    taken. What an earlier listener took and did not finish comes first, all of it. Raises OSError.
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
    """Rename the inbox while no hook writes; whether there was one."""
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
    """Open what this user wrote, to read it: others may write in a folder that was there."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if os.fstat(file).st_uid != os.geteuid():
        os.close(file)
        raise PermissionError(errno.EACCES, f"{path.name} is another user's", str(path))
    return file
