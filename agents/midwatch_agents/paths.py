"""Checks that paths named by a model stay inside the workspace. Pure."""

from pathlib import PurePosixPath, PureWindowsPath
from posixpath import normpath


def inside(path: str) -> str | None:
    """Return the path relative to the workspace, with forward slashes; `None` if it leaves it.

    The workspace itself does not count as a file. Links are not followed here: readers and writers
    must do that.
    """
    slashed = PureWindowsPath(path.strip()).as_posix()
    if not path.strip() or PureWindowsPath(slashed).drive or slashed.startswith(("/", "~")):
        return None
    clean = normpath(slashed)
    return None if clean == "." or PurePosixPath(clean).parts[0] == ".." else clean
