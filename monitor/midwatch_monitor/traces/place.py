"""Where a file of a foreign run lies: paths as the rules compare them."""

import re
from posixpath import join, normpath

_DRIVE = re.compile(r"[A-Za-z]:/")


def within(path: str, root: str, cwd: str = "") -> str:
    """A path relative to the root where it lies below it, else as it is; `.` and `..` resolved.

    A relative path starts from `cwd`, or from the root where no `cwd` is known. Backslashes become
    slashes.
    """
    if not path:
        return ""
    named = _slashed(path)
    start = "" if _DRIVE.match(named) else _slashed(cwd or root)
    whole = normpath(join(start, named))
    top = normpath(_slashed(root)).rstrip("/") + "/"
    return whole[len(top) :] if root and whole.startswith(top) and whole != top else whole


def _slashed(path: str) -> str:
    return path.replace("\\", "/")
