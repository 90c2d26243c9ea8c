"""Files and folders that only their owner may read: journal, exports, Midwatch's own folder."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

log = logging.getLogger(__name__)

_FOLDER, _FILE = 0o700, 0o600


def private_folder(folder: Path) -> None:
    """Create a folder that only its owner may use, or restrict it to its owner. Raises OSError."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)  # another process may create it too
    if new:
        folder.chmod(_FOLDER)  # regardless of the umask
    else:
        keep_private([folder])


def private_file(file: Path) -> None:
    """Create a file if it is missing, and let only its owner read and write it. Raises OSError."""
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    except FileExistsError:
        keep_private([file])
        return
    os.fchmod(made, _FILE)
    os.close(made)


def keep_private(paths: Iterable[Path]) -> None:
    """Revoke others' rights to paths of the current user; log a warning if that fails."""
    for path in paths:
        try:
            found = path.stat()
            if found.st_mode & 0o077 and found.st_uid == os.geteuid():
                path.chmod(found.st_mode & _FOLDER)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("could not restrict access to %s: %s", path, error.strerror)
