"""Paths that a model names, as far as they stay inside the workspace. Pure."""

from pathlib import PurePosixPath, PureWindowsPath
from posixpath import normpath


def inside(path: str) -> str | None:
    """The path relative to the workspace, with forward slashes; `None` for one that leaves it.

    The workspace itself is no file. A link is not looked at: who reads or writes must do that.
    """
    slashed = PureWindowsPath(path.strip()).as_posix()
    if not path.strip() or PureWindowsPath(slashed).drive or slashed.startswith(("/", "~")):
        return None
    clean = normpath(slashed)
    return None if clean == "." or PurePosixPath(clean).parts[0] == ".." else clean
