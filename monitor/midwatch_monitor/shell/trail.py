"""Where a command has gone and what it has written so far."""

import posixpath
from collections.abc import Iterable
from dataclasses import replace

from midwatch_monitor.shell.lexer import UNKNOWN
from midwatch_monitor.shell.script import Scripts, script_of
from midwatch_monitor.shell.target import EVERYTHING, Target, placed

_MAX_WRITTEN = 256
_MAX_COMMANDS = 4000
"""Simple commands that are looked at, those in loops and scripts included."""
_MAX_VALUE = 4096
"""Characters of a variable's value, or of a folder; a longer one is not known."""


class Trail:
    """The state of one command line on its way. Paths in `written` hold the folders gone to."""

    def __init__(self, *, directory: str, root: str, scripts: Scripts) -> None:
        self.written: list[Target] = []
        self.variables: dict[str, str] = {}
        self.scripts = scripts
        self.directory = directory
        self._before = directory
        self._root = root
        self._left = _MAX_COMMANDS

    def step(self) -> bool:
        """Whether one more simple command may be looked at."""
        self._left -= 1
        return self._left >= 0 and len(self.written) < _MAX_WRITTEN

    def go(self, place: str) -> None:
        """Change the folder, as `cd` does."""
        gone = self._before if place == "-" else posixpath.join(self.directory, place)
        self._before = self.directory
        self.directory = gone if len(gone) <= _MAX_VALUE else UNKNOWN

    def assign(self, name: str, value: str) -> None:
        """Give a variable its value."""
        self.variables[name] = value if len(value) <= _MAX_VALUE else UNKNOWN

    def placed(self, path: str) -> str:
        """The path as an edit would name it; empty for what is no file of the work."""
        return placed(path, directory=self.directory, root=self._root)

    def add_all(self, targets: Iterable[Target]) -> None:
        """These files are written."""
        for target in targets:
            self.add(target)

    def add(self, target: Target) -> None:
        """A file is written; if it is a script, a later command may run it."""
        if len(self.written) >= _MAX_WRITTEN:
            return
        path = self.placed(target.path)
        if target.path != EVERYTHING:
            target = replace(target, path=posixpath.join(self.directory, target.path))
        self.written.append(target)
        if not path:
            return
        if target.deleted:
            self.scripts.put(path, None)
        elif target.text is not None:
            script = script_of(path, target.text)
            if target.appended:
                self.scripts.extend(path, script)
            else:
                self.scripts.put(path, script)

    def copy(self, source: str, place: str) -> None:
        """A file is copied: what the command line knows of it holds for the copy."""
        known = posixpath.join(self.directory, source)
        last = next((each for each in reversed(self.written) if each.path == known), None)
        script = self.scripts.get(self.placed(source))
        self.add(Target(path=place, text=last.text if last and not last.appended else None))
        if path := self.placed(place):
            self.scripts.put(path, script)
