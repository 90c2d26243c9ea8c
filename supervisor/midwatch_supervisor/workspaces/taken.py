"""Marks results without git as taken: their files were written into a folder of their owner.

With git, the owner's branch shows it. A mark is stored beside the folder of all workspaces, and
applies only to the files that were taken: what is changed later counts as work again.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

from midwatch_supervisor.present.assignment import place_of
from midwatch_supervisor.workspaces.folder_diff import names_below


def mark_taken(folder: Path) -> None:
    """Mark the files of a workspace that a run made as taken. Raises OSError."""
    mark = _taken_file(folder)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(_state_digest(folder), encoding="utf-8")


def is_taken(folder: Path) -> bool:
    """Whether the files of a workspace were taken as they are now."""
    try:
        return _taken_file(folder).read_text("utf-8") == _state_digest(folder)
    except (OSError, UnicodeDecodeError):
        return False


def remove_mark(folder: Path) -> None:
    """Remove the mark of a workspace that is gone."""
    mark = _taken_file(folder)
    with suppress(OSError):  # there may be none, and the folder may hold others
        mark.unlink()
        mark.parent.rmdir()


def _taken_file(folder: Path) -> Path:
    return folder.parents[2] / "taken" / place_of(folder)


def _state_digest(folder: Path) -> str:
    """Return a digest of the names, sizes and times of all files. Raises OSError."""
    digest = hashlib.sha256()
    for name in sorted(names_below(folder)):
        about = (folder / name).lstat()
        digest.update(repr((name, about.st_mode, about.st_size, about.st_mtime_ns)).encode())
    return digest.hexdigest()
