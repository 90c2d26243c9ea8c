"""Files that programs write, by their names and arguments; data that flows into them; patches."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

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


Writer = Callable[[Sequence[str]], Iterator[WriteTarget]]
"""Returns the files that a program with these arguments writes."""


def positional(arguments: Sequence[str], valued: str = "", named: str = "") -> list[str]:
    """Return the arguments that are not options.

    `valued` holds the letters of the short options that take a value; `named`, separated by blanks,
    the names of the long ones.
    """
    left: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*left, *rest]
        if not argument.startswith("-") or argument == "-":
            left.append(argument)
        elif argument.startswith("--"):
            if argument[2:] in named.split():
                next(rest, None)
        elif argument[-1] in valued and not set(argument[1:-1]) & set(valued):
            next(rest, None)
    return left


def option_value(arguments: Sequence[str], *options: str) -> str:
    """Return the value of the first argument that is one of these options; empty if none is."""
    for at, argument in enumerate(arguments):
        for option in options:
            if argument == option:
                return "".join(arguments[at + 1 : at + 2])
            if option.startswith("--") and argument.startswith(option + "="):
                return argument[len(option) + 1 :]
            if not option.startswith("--") and argument.startswith(option):
                return argument[len(option) :]
    return ""


_SED_LETTERS = re.compile(r"-[^iefl]*(?:(?P<place>i).*|(?P<valued>[efl])(?P<value>.*))?", re.DOTALL)
_PERL_LETTERS = re.compile(
    r"-(?:0[0-7]*|[^0ieEMmIFCDVx])*"
    r"(?:(?P<place>i).*|(?P<valued>[eE])(?P<value>.*)|[MmIFCDVx].*)?",
    re.DOTALL,
)
"""A cluster of options: `-i`, after which a suffix may follow, or one that takes a value."""


def _edited_in_place(letters: re.Pattern[str], *, options_anywhere: bool = False) -> Writer:
    """Return what sed or perl edits, by the letters of its options."""

    def read(arguments: Sequence[str]) -> Iterator[WriteTarget]:
        in_place = script = False
        left: list[str] = []
        rest = iter(arguments)
        for argument in rest:
            if argument == "--":
                left.extend(rest)
            elif argument.startswith("--"):
                in_place |= argument.startswith("--in-place")
                if argument.startswith(("--expression", "--file")):
                    script = True
                    _ = "=" in argument or next(rest, None)
            elif len(argument) > 1 and (found := letters.fullmatch(argument)):
                in_place |= found["place"] is not None
                script |= found["valued"] not in (None, "l")
                _ = not found["valued"] or found["value"] or next(rest, None)
            else:
                left.append(argument)
                left.extend(() if options_anywhere else rest)
        if in_place and (script or options_anywhere):
            if left and not left[0]:
                del left[0]  # the empty suffix of BSD's -i
            yield from _edit_targets(left if script else left[1:])

    return read


def _awk(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    if option_value(arguments, "-i", "--include") == "inplace":
        left = positional(arguments, "ivFfE", "include assign field-separator file")
        program = option_value(arguments, "-f", "--file")
        yield from _edit_targets(left if program else left[1:])


def pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return the pairs of source and target in `mv` and `cp`."""
    left = positional(arguments, "tS", "target-directory suffix")
    folder = option_value(arguments, "-t", "--target-directory")
    if folder:
        left.append(folder)
    *sources, place = left if len(left) > 1 else ("",)
    for source in sources:
        if folder or len(sources) > 1:
            yield source, posixpath.join(place, posixpath.basename(source.rstrip("/")))
        else:
            yield source, into(source, place)


def _vim(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    """Yield the files only if vim is told to write; otherwise they are opened for reading."""
    orders = [a[1:] for a in arguments if a.startswith("+")]
    orders += [b for a, b in pairwise(arguments) if a in {"-c", "--cmd"}]
    if any(order.lstrip(":").startswith(("w", "x", "up")) for order in orders):
        yield from _edit_targets(
            a for a in positional(arguments, "cuSsTwW") if not a.startswith("+")
        )


def _edit_targets(paths: Iterable[str]) -> Iterator[WriteTarget]:
    return (WriteTarget(path=path) for path in paths)


def _last_file(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    return _edit_targets(positional(arguments, "cpS", "prompt")[-1:])


def _deleted(paths: Iterable[str]) -> Iterator[WriteTarget]:
    return (WriteTarget(path=path, deleted=True) for path in paths)


_sed = _edited_in_place(_SED_LETTERS, options_anywhere=True)
_perl = _edited_in_place(_PERL_LETTERS)
WRITERS: Mapping[str, Writer] = {
    "sed": _sed,
    "gsed": _sed,
    "perl": _perl,
    "awk": _awk,
    "gawk": _awk,
    "rm": lambda arguments: _deleted(positional(arguments)),
    "unlink": lambda arguments: _deleted(positional(arguments)),
    "install": lambda arguments: _edit_targets(place for _, place in pairs(arguments)),
    "ed": _last_file,
    "ex": _last_file,
    "vim": _vim,
    "vi": _vim,
    "nvim": _vim,
    "dd": lambda arguments: _edit_targets(a[3:] for a in arguments if a.startswith("of=")),
    "truncate": lambda arguments: _edit_targets(positional(arguments, "sr", "size reference")),
}
"""For each program, a function that returns what it writes, regardless of its input."""


_FILE = re.compile(r"(?!v?\d+(?:\.\d+)*$)(?:.*/)?\.?[^/]*\.[^/]*")
"""A name that is a file where it could also be a branch or a tag."""


def git_targets(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    """Return the files in the working tree that `git` with these arguments changes."""
    rest = list(arguments)
    directory = ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-C", "-c", "--git-dir", "--work-tree"} and rest:
            value = rest.pop(0)
            directory = posixpath.join(directory, value) if option == "-C" else directory
    if rest and rest[0] in _GIT_COMMANDS:
        for target in _GIT_COMMANDS[rest[0]](rest[1:]):
            if target.path == EVERYTHING:
                yield target
            else:
                yield replace(target, path=posixpath.join(directory, target.path))


def _checkout(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    if "--" in arguments:
        yield from _restore_targets(arguments[arguments.index("--") + 1 :])
        return
    if {"-b", "-B", "--orphan", "--detach"} & set(arguments):
        return
    left = positional(arguments)
    first = left[:1] if left and (left[0] == "." or _FILE.fullmatch(left[0])) else []
    if first or len(left) > 1:
        yield from _restore_targets([*first, *left[1:]])
    elif {"-f", "--force"} & set(arguments):
        yield WriteTarget(path=EVERYTHING, restored=True)


def _restore(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    given = set(arguments)
    if not given & {"--staged", "-S"} or given & {"--worktree", "-W"}:
        yield from _restore_targets(positional(arguments, "s", "source"))


def _stash(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    order = next((a for a in arguments if not a.startswith("-")), "push")
    if order == "push" and "--" in arguments:
        yield from _restore_targets(arguments[arguments.index("--") + 1 :])
    elif order in {"push", "save"}:
        yield WriteTarget(path=EVERYTHING, restored=True)


def _reset(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    if "--hard" in arguments:
        yield WriteTarget(path=EVERYTHING, restored=True)


def _git_rm(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    if "--cached" not in arguments:
        yield from _deleted(positional(arguments))


def _git_mv(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    *sources, place = positional(arguments) or [""]
    for source in sources:
        yield WriteTarget(path=source, deleted=True)
        yield WriteTarget(path=into(source, place))


def _restore_targets(paths: Sequence[str]) -> Iterator[WriteTarget]:
    return (WriteTarget(path=path, restored=True) for path in paths)


_GIT_COMMANDS: Mapping[str, Writer] = {
    "checkout": _checkout,
    "restore": _restore,
    "stash": _stash,
    "reset": _reset,
    "rm": _git_rm,
    "mv": _git_mv,
}
