"""What the commands of a run write, one after the other."""

import posixpath
from dataclasses import replace

from midwatch_monitor.records import Edit
from midwatch_monitor.shell.digest import digest
from midwatch_monitor.shell.lexer import UNKNOWN
from midwatch_monitor.shell.script import Scripts, script_of
from midwatch_monitor.shell.target import EVERYTHING, Target, placed
from midwatch_monitor.shell.trail import Trail
from midwatch_monitor.shell.walk import Walk


class Shell:
    """Follows the commands of one run: what they write, also through scripts written before."""

    def __init__(self) -> None:
        self._scripts = Scripts()
        self._root = ""

    def edits(self, command: str, *, cwd: str = "") -> tuple[Edit, ...]:
        """The files that a command writes, one edit each, in the order of their first writing.

        `cwd` is the folder that it starts in; the first one ever given is the root to which
        paths are relative. A file that holds the output of a running program is no edit.
        """
        self._settle(cwd)
        trail = Trail(directory=cwd, root=self._root, scripts=self._scripts)
        Walk(trail).follow(command)
        last: dict[str, Target] = {}
        for target in trail.written:
            path = placed(target.path, directory="", root=self._root)
            if path and not _folder(target):
                last[path] = _after(last.get(path), target)
        return tuple(_edit(path, target) for path, target in last.items())

    def note(self, path: str, content: str) -> None:
        """A file was written by other means than a command: it may be a script to be run later."""
        path = placed(path, directory=self._root, root=self._root)
        self._scripts.put(path, script_of(path, content))

    def _settle(self, cwd: str) -> None:
        if cwd and not self._root:
            self._root = cwd
            self._scripts.rename(lambda path: placed(path, directory=cwd, root=cwd))


def reverts(command: str, *, cwd: str = "") -> tuple[str, ...]:
    """The paths that a command puts back to what version control holds; `.` for everything."""
    trail = Trail(directory=cwd, root=cwd, scripts=Scripts())
    Walk(trail).follow(command)
    paths = [
        "." if target.path == EVERYTHING else placed(target.path, directory="", root=cwd)
        for target in trail.written
        if target.restored
    ]
    return tuple(dict.fromkeys(path for path in paths if path))


def _after(before: Target | None, target: Target) -> Target:
    """The last writing of a file, with the whole content where the command holds it."""
    if not target.appended:
        return target
    start = before.text if before and not before.deleted else None
    whole = None if start is None or target.text is None else start + target.text
    return replace(target, text=whole)


def _edit(path: str, target: Target) -> Edit:
    return Edit(path=path, digest=_digest(target.text), deleted=target.deleted)


def _digest(text: str | None) -> str:
    if text is None or UNKNOWN in text:
        return ""
    return digest(text)


def _folder(target: Target) -> bool:
    """Whether it names a folder, or all there is."""
    return target.path == EVERYTHING or posixpath.basename(target.path) in {"", ".", ".."}
