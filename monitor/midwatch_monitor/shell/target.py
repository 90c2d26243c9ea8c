"""Files that programs write, as they name them; the data that flows into them; patches."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midwatch_monitor.shell.syntax import UNKNOWN

MAX_TARGETS = 16
"""Number of files kept for one script, and for one program in a command."""

EVERYTHING = ""
"""The path of a target that stands for all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """What is done to one file. `$1` in its path is the script's first argument."""

    path: str
    text: str | None = None
    """The complete new content, if the command contains it."""
    appended: bool = False
    """Whether `text` is appended."""
    deleted: bool = False
    restored: bool = False
    """Whether it is restored from version control."""


def into(source: str, place: str) -> str:
    """Return the path of a copy of `source` to `place`: inside it if it looks like a folder.

    A place without a dot in its name counts as a folder if the source's name has one.
    """
    name = posixpath.basename(source.rstrip("/"))
    last = posixpath.basename(place)
    if last in {"", ".", ".."} or ("." in name.lstrip(".") and "." not in last):
        return posixpath.join(place, name)
    return place


def place_path(path: str, *, directory: str, root: str) -> str:
    """Return the path as an edit names it: relative to `root` if below it, else absolute if
    possible.

    Empty for anything but a file of the work: a device, or a name known only at run time.
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


CRAFTING = frozenset(
    [
        *("cat", "echo", "printf", "tee", "sed", "gsed", "awk", "gawk", "mawk", "head", "tail"),
        *("tac", "tr", "cut", "paste", "sort", "uniq", "fold", "fmt", "expand", "unexpand"),
        *("base64", "envsubst", "jq", "rev", ":", "true"),
    ]
)
"""Programs whose redirected output is work; other programs' output is only a log."""

_OPTION = re.compile(r"-[neE]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The input or the output of a command."""

    text: str | None = None
    """`None` if unknown."""
    crafted: bool = False
    """Whether only `CRAFTING` programs contributed to it."""
    source: str = ""
    """The file it is read from."""


EMPTY = Stream(text="", crafted=True)


def echo(arguments: Sequence[str], stdin: Stream) -> Stream:
    """Return the output of `echo`."""
    rest = list(arguments)
    newline = "\n"
    escaped = False
    while rest and _OPTION.fullmatch(rest[0]):
        option = rest.pop(0)
        newline = "" if "n" in option else newline
        escaped |= "e" in option
    text = " ".join(rest) + newline
    return Stream(text=None if escaped and "\\" in text else text, crafted=True)


def printf(arguments: Sequence[str], stdin: Stream) -> Stream:
    """Return the output of `printf` with plain formats; others are not evaluated."""
    form = "".join(arguments[:1]).replace("\\n", "\n")
    text = None
    if form in {"%s", "%s\n"}:
        text = "".join(form.replace("%s", word) for word in arguments[1:])
    elif "%" not in form and "\\" not in form:
        text = form
    return Stream(text=text, crafted=True)


_HEADER = re.compile(r"^(---|\+\+\+) ([^\t\n]+)", re.MULTILINE)
_BLOCK = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_NOWHERE = "/dev/null"


def patched_files(text: str) -> tuple[WriteTarget, ...]:
    """Return the files of a unified diff, with their `a/` or `b/`."""
    return tuple(_patched_files(text))[:MAX_TARGETS]


def patch_blocks(text: str) -> tuple[WriteTarget, ...]:
    """Return the files of a patch in blocks (`*** Update File: …`)."""
    made = [
        WriteTarget(path=found[2].strip(), deleted=found[1] == "Delete File")
        for found in _BLOCK.finditer(text)
    ]
    return tuple(made[:MAX_TARGETS])


def without_components(path: str, components: int | None) -> str:
    """Return a diff's path without its first components; for `None`, without `a/` or `b/`."""
    if components is None:
        return path[2:] if path.startswith(("a/", "b/")) else path
    return "/".join(path.split("/")[components:])


def _patched_files(text: str) -> Iterator[WriteTarget]:
    old = ""
    for found in _HEADER.finditer(text):
        path = found[2].strip()
        if found[1] == "---":
            old = path
        elif path != _NOWHERE:
            yield WriteTarget(path=path)
        elif old not in {"", _NOWHERE}:
            yield WriteTarget(path=old, deleted=True)
