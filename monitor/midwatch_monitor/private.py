"""Files and folders that only their owner may read: the journal, exports, Midwatch's own folder."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

log = logging.getLogger(__name__)

_FOLDER, _FILE = 0o700, 0o600


def private_folder(folder: Path) -> None:
    """Make a folder that is ours alone, or take others' rights to it away. Raises OSError."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)  # another process may make it too
    if new:
        folder.chmod(_FOLDER)  # whatever the umask
    else:
        keep_private([folder])


def private_file(file: Path) -> None:
    """See to it that there is a file, and that nobody else may read or write it. Raises OSError."""
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    except FileExistsError:
        keep_private([file])
        return
    os.fchmod(made, _FILE)
    os.close(made)


def keep_private(paths: Iterable[Path]) -> None:
    """Take the rights of others to what is our own away; where that cannot be, warn and go on."""
    for path in paths:
        try:
            found = path.stat()
            if found.st_mode & 0o077 and found.st_uid == os.geteuid():
                path.chmod(found.st_mode & _FOLDER)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("others may read %s: %s", path, error.strerror)
