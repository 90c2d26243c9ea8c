"""The files that a patch changes, read from its text."""

import re
from collections.abc import Iterator

from midwatch_monitor.shell.target import MAX_TARGETS, Target

_HEADER = re.compile(r"^(---|\+\+\+) ([^\t\n]+)", re.MULTILINE)
_BLOCK = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_NOWHERE = "/dev/null"


def named(text: str) -> tuple[Target, ...]:
    """The files of a unified diff, their `a/` and `b/` still before them."""
    return tuple(_named(text))[:MAX_TARGETS]


def blocks(text: str) -> tuple[Target, ...]:
    """The files of a patch in blocks (`*** Update File: …`)."""
    made = [
        Target(path=found[2].strip(), deleted=found[1] == "Delete File")
        for found in _BLOCK.finditer(text)
    ]
    return tuple(made[:MAX_TARGETS])


def stripped(path: str, components: int | None) -> str:
    """A path of a diff without its first components; `None`: only `a/` or `b/` goes."""
    if components is None:
        return path[2:] if path.startswith(("a/", "b/")) else path
    return "/".join(path.split("/")[components:])


def _named(text: str) -> Iterator[Target]:
    old = ""
    for found in _HEADER.finditer(text):
        path = found[2].strip()
        if found[1] == "---":
            old = path
        elif path != _NOWHERE:
            yield Target(path=path)
        elif old not in {"", _NOWHERE}:
            yield Target(path=old, deleted=True)
