"""The files that a git command puts back, changes or removes."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from midwatch_monitor.shell.programs import positional
from midwatch_monitor.shell.target import EVERYTHING, Target, into

_FILE = re.compile(r"(?!v?\d+(?:\.\d+)*$)(?:.*/)?\.?[^/]*\.[^/]*")
"""What names a file, where it could also name a branch or a tag."""


def written(arguments: Sequence[str]) -> Iterator[Target]:
    """The files that `git` with these arguments changes in the working tree."""
    rest = list(arguments)
    directory = ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-C", "-c", "--git-dir", "--work-tree"} and rest:
            value = rest.pop(0)
            directory = posixpath.join(directory, value) if option == "-C" else directory
    if rest and rest[0] in _COMMANDS:
        for target in _COMMANDS[rest[0]](rest[1:]):
            if target.path == EVERYTHING:
                yield target
            else:
                yield replace(target, path=posixpath.join(directory, target.path))


def _checkout(arguments: Sequence[str]) -> Iterator[Target]:
    if "--" in arguments:
        yield from _restored(arguments[arguments.index("--") + 1 :])
        return
    if {"-b", "-B", "--orphan", "--detach"} & set(arguments):
        return
    left = positional(arguments)
    first = left[:1] if left and (left[0] == "." or _FILE.fullmatch(left[0])) else []
    if first or len(left) > 1:
        yield from _restored([*first, *left[1:]])
    elif {"-f", "--force"} & set(arguments):
        yield Target(path=EVERYTHING, restored=True)


def _restore(arguments: Sequence[str]) -> Iterator[Target]:
    given = set(arguments)
    if not given & {"--staged", "-S"} or given & {"--worktree", "-W"}:
        yield from _restored(positional(arguments, "s", "source"))


def _stash(arguments: Sequence[str]) -> Iterator[Target]:
    order = next((a for a in arguments if not a.startswith("-")), "push")
    if order == "push" and "--" in arguments:
        yield from _restored(arguments[arguments.index("--") + 1 :])
    elif order in {"push", "save"}:
        yield Target(path=EVERYTHING, restored=True)


def _reset(arguments: Sequence[str]) -> Iterator[Target]:
    if "--hard" in arguments:
        yield Target(path=EVERYTHING, restored=True)


def _rm(arguments: Sequence[str]) -> Iterator[Target]:
    if "--cached" not in arguments:
        for path in positional(arguments):
            yield Target(path=path, deleted=True)


def _mv(arguments: Sequence[str]) -> Iterator[Target]:
    *sources, place = positional(arguments) or [""]
    for source in sources:
        yield Target(path=source, deleted=True)
        yield Target(path=into(source, place))


def _restored(paths: Sequence[str]) -> Iterator[Target]:
    for path in paths:
        yield Target(path=path, restored=True)


_COMMANDS: Mapping[str, Callable[[Sequence[str]], Iterator[Target]]] = {
    "checkout": _checkout,
    "restore": _restore,
    "stash": _stash,
    "reset": _reset,
    "rm": _rm,
    "mv": _mv,
}
