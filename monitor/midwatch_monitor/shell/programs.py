"""The files that a program writes, judging only by its name and arguments."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from midwatch_monitor.shell.target import EVERYTHING, WriteTarget, into


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


def _sed(arguments: Sequence[str]) -> Iterator[WriteTarget]:
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
        elif argument.startswith("-") and len(argument) > 1:
            here, ends = _sed_letters(argument[1:])
            in_place |= here
            script |= ends in {"e", "f"}
            _ = not ends or next(rest, None)
        else:
            left.append(argument)
    if in_place:
        if left and not left[0]:
            del left[0]  # the empty suffix of BSD's -i
        yield from _edit_targets(left if script else left[1:])


def _sed_letters(letters: str) -> tuple[bool, str]:
    """Return whether a cluster of sed options has `-i`, and the letter that takes an argument."""
    for at, letter in enumerate(letters):
        if letter == "i":
            return True, ""
        if letter in "efl":
            return False, letter if at == len(letters) - 1 else letter.upper()
    return False, ""


def _perl(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    in_place = script = False
    left: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--" or not argument.startswith("-"):
            left.extend([argument, *rest] if argument != "--" else rest)
        else:
            here, code, wants = _perl_letters(argument[1:])
            in_place |= here
            script |= code
            _ = not wants or next(rest, None)
    if in_place and script:
        yield from _edit_targets(left)


def _perl_letters(letters: str) -> tuple[bool, bool, bool]:
    """Return whether a cluster of perl options has `-i`, has `-e`, and takes the next argument."""
    at = 0
    while at < len(letters):
        if letters[at] == "0":
            at = len(letters) - len(letters[at:].lstrip("01234567"))
        elif letters[at] == "i":
            return True, False, False
        elif letters[at] in "eE":
            return False, True, at == len(letters) - 1
        elif letters[at] in "MmIFCDVx":
            return False, False, False
        else:
            at += 1
    return False, False, False


def _awk(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    if option_value(arguments, "-i", "--include") == "inplace":
        left = positional(arguments, "ivFfE", "include assign field-separator file")
        program = option_value(arguments, "-f", "--file")
        yield from _edit_targets(left if program else left[1:])


def _rm(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    for path in positional(arguments):
        yield WriteTarget(path=path, deleted=True)


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


def _install(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    yield from _edit_targets([place for _, place in pairs(arguments)])


def _last_file(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    yield from _edit_targets(positional(arguments, "cpS", "prompt")[-1:])


def _vim(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    """Yield the files only if vim is told to write; otherwise they are opened for reading."""
    orders = [a[1:] for a in arguments if a.startswith("+")]
    orders += [b for a, b in pairwise(arguments) if a in {"-c", "--cmd"}]
    if any(order.lstrip(":").startswith(("w", "x", "up")) for order in orders):
        yield from _edit_targets(
            a for a in positional(arguments, "cuSsTwW") if not a.startswith("+")
        )


def _dd(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    yield from _edit_targets(a.removeprefix("of=") for a in arguments if a.startswith("of="))


def _truncate(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    yield from _edit_targets(positional(arguments, "sr", "size reference"))


def _edit_targets(paths: Iterable[str]) -> Iterator[WriteTarget]:
    for path in paths:
        yield WriteTarget(path=path)


WRITERS: Mapping[str, Callable[[Sequence[str]], Iterator[WriteTarget]]] = {
    "sed": _sed,
    "gsed": _sed,
    "perl": _perl,
    "awk": _awk,
    "gawk": _awk,
    "rm": _rm,
    "unlink": _rm,
    "install": _install,
    "ed": _last_file,
    "ex": _last_file,
    "vim": _vim,
    "vi": _vim,
    "nvim": _vim,
    "dd": _dd,
    "truncate": _truncate,
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
        for path in positional(arguments):
            yield WriteTarget(path=path, deleted=True)


def _git_mv(arguments: Sequence[str]) -> Iterator[WriteTarget]:
    *sources, place = positional(arguments) or [""]
    for source in sources:
        yield WriteTarget(path=source, deleted=True)
        yield WriteTarget(path=into(source, place))


def _restore_targets(paths: Sequence[str]) -> Iterator[WriteTarget]:
    for path in paths:
        yield WriteTarget(path=path, restored=True)


_GIT_COMMANDS: Mapping[str, Callable[[Sequence[str]], Iterator[WriteTarget]]] = {
    "checkout": _checkout,
    "restore": _restore,
    "stash": _stash,
    "reset": _reset,
    "rm": _git_rm,
    "mv": _git_mv,
}
