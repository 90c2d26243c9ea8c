"""A file that a program writes, named as the program names it."""

import posixpath
from dataclasses import dataclass

from midwatch_monitor.shell.lexer import UNKNOWN

MAX_TARGETS = 16
"""Files that are kept of one script, and of one program in a command."""

EVERYTHING = ""
"""The path of a target that stands for all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is done to one file. `$1` in its path is the script's first argument."""

    path: str
    text: str | None = None
    """The whole new content, where the command holds it."""
    appended: bool = False
    """Whether `text` is only put at the end."""
    deleted: bool = False
    restored: bool = False
    """Whether it is put back to what version control holds."""


def into(source: str, place: str) -> str:
    """Where a copy of `source` to `place` ends: in it if it looks like a folder.

    A place without a dot in its name is taken for a folder when the source has one.
    """
    name = posixpath.basename(source.rstrip("/"))
    last = posixpath.basename(place)
    if last in {"", ".", ".."} or ("." in name.lstrip(".") and "." not in last):
        return posixpath.join(place, name)
    return place


def placed(path: str, *, directory: str, root: str) -> str:
    """The path as an edit names it: relative to `root` if it is below, else absolute if it can be.

    Empty for what is no file of the work: a device, or a name that only the run knows.
    """
    if not path or {UNKNOWN, "$", "\n"} & set(path):
        return ""
    whole = posixpath.normpath(posixpath.join(directory, path))
    if {UNKNOWN, "$"} & set(whole):
        return ""
    if whole.startswith("/"):
        whole = "/" + whole.lstrip("/")
    if whole == "/dev" or whole.startswith("/dev/"):
        return ""
    if root and whole.startswith("/") and (whole + "/").startswith(root.rstrip("/") + "/"):
        return posixpath.relpath(whole, root)
    return whole
