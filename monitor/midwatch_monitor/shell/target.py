"""Files that programs write, as they name them: targets, what flows into them, and patches."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midwatch_monitor.shell.syntax import UNKNOWN

MAX_TARGETS = 16
"""Files that are kept of one script, and of one program in a command."""

EVERYTHING = ""
"""The path of a target that stands for all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
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


def place_path(path: str, *, directory: str, root: str) -> str:
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


CRAFTING = frozenset(
    [
        *("cat", "echo", "printf", "tee", "sed", "gsed", "awk", "gawk", "mawk", "head", "tail"),
        *("tac", "tr", "cut", "paste", "sort", "uniq", "fold", "fmt", "expand", "unexpand"),
        *("base64", "envsubst", "jq", "rev", ":", "true"),
    ]
)
"""Programs whose redirected output is work; that of any other only keeps what it said."""

_OPTION = re.compile(r"-[neE]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The input or the output of a command."""

    text: str | None = None
    """`None` where it is not known."""
    crafted: bool = False
    """Whether only `CRAFTING` programs had a hand in it."""
    source: str = ""
    """The file that it is read from."""


EMPTY = Stream(text="", crafted=True)


def echo(arguments: Sequence[str], stdin: Stream) -> Stream:
    """What `echo` says."""
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
    """What `printf` says with the plain formats; the others are not worked out."""
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
    """The files of a unified diff, their `a/` and `b/` still before them."""
    return tuple(_patched_files(text))[:MAX_TARGETS]


def patch_blocks(text: str) -> tuple[WriteTarget, ...]:
    """The files of a patch in patch_blocks (`*** Update File: …`)."""
    made = [
        WriteTarget(path=found[2].strip(), deleted=found[1] == "Delete File")
        for found in _BLOCK.finditer(text)
    ]
    return tuple(made[:MAX_TARGETS])


def without_components(path: str, components: int | None) -> str:
    """A path of a diff without its first components; `None`: only `a/` or `b/` goes."""
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
