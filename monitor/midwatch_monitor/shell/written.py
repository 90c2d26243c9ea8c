"""The files that the commands of a run have written, and what scripts among them would write."""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from midwatch_monitor.shell.python import program
from midwatch_monitor.shell.syntax import UNKNOWN
from midwatch_monitor.shell.target import (
    EVERYTHING,
    MAX_TARGETS,
    WriteTarget,
    patched_files,
    place_path,
)

MAX_SCRIPTS = 32
"""Number of known scripts; the least recently written one is dropped."""
MAX_COMMANDS_TEXT = 16_000
"""Longest shell script that is kept, in characters."""

_ARGUMENT = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenScript:
    """What a file would write if it were run or, if a patch, applied."""

    targets: tuple[WriteTarget, ...] = ()
    commands: tuple[str, ...] = ()
    """Shell commands that it runs."""
    patch: bool = False

    def targets_for(self, arguments: Sequence[str]) -> list[WriteTarget]:
        """Return its targets when called with these arguments."""

        def fill(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            return arguments[at] if 0 <= at < len(arguments) else found[0]

        return [replace(each, path=_ARGUMENT.sub(fill, each.path)) for each in self.targets]


class Scripts(dict[str, WrittenScript]):
    """The scripts of one run, by path."""

    def put(self, path: str, script: WrittenScript | None) -> None:
        """Set the script at a path; `None` if the file is no longer a script."""
        self.pop(path, None)
        if script is None:
            return
        if len(self) >= MAX_SCRIPTS:
            del self[next(iter(self))]
        self[path] = script

    def rename(self, name: Callable[[str], str]) -> None:
        """Rename every script by a function of its path; forget those without a new path."""
        known = {name(path): script for path, script in self.items()}
        self.clear()
        self.update({path: script for path, script in known.items() if path})

    def extend(self, path: str, script: WrittenScript | None) -> None:
        """Add to what the file does when run."""
        known = self.get(path)
        if known is None or script is None:
            self.put(path, known or script)
            return
        targets = dict.fromkeys((*known.targets, *script.targets))
        commands = (*known.commands, *script.commands)
        both = replace(known, targets=tuple(targets)[:MAX_TARGETS], commands=commands[:MAX_TARGETS])
        self.put(path, both)


def script_of(path: str, text: str) -> WrittenScript | None:
    """Return what a file with this text would write; `None` if nothing or if it is not a script."""
    first = text[:200].partition("\n")[0]
    shebang = first.startswith("#!")
    extension = posixpath.splitext(path)[1]
    if extension in {".patch", ".diff"} or first.startswith(("--- ", "diff ")):
        script = WrittenScript(targets=patched_files(text), patch=True)
    elif extension in {".py", ".pyw"} or (shebang and "python" in first):
        script = python_script(text)
    elif (extension in {"", ".sh", ".bash"} or shebang) and len(text) <= MAX_COMMANDS_TEXT:
        script = WrittenScript(commands=(text,))
    else:
        return None
    return script if script.targets or script.commands else None


def python_script(text: str) -> WrittenScript:
    """Return what a Python program would write."""
    targets, commands = program(text)
    short = tuple(each for each in commands if len(each) <= MAX_COMMANDS_TEXT)
    return WrittenScript(targets=targets, commands=short)


_MAX_WRITTEN = 256
_MAX_COMMANDS = 4000
"""Number of simple commands that are followed, including those in loops and scripts."""
_MAX_VALUE = 4096
"""Longest value of a variable, or folder, in characters; a longer one counts as unknown."""


class WrittenFiles:
    """The state of one command line on the way. Paths in `written` include the current folder."""

    def __init__(self, *, directory: str, root: str, scripts: Scripts) -> None:
        self.written: list[WriteTarget] = []
        self.variables: dict[str, str] = {}
        self.scripts = scripts
        self.directory = directory
        self._before = directory
        self._root = root
        self._left = _MAX_COMMANDS

    def step(self) -> bool:
        """Count one more simple command; return whether it may be followed."""
        self._left -= 1
        return self._left >= 0 and len(self.written) < _MAX_WRITTEN

    def go(self, place: str) -> None:
        """Change the folder, as `cd` does."""
        gone = self._before if place == "-" else posixpath.join(self.directory, place)
        self._before = self.directory
        self.directory = gone if len(gone) <= _MAX_VALUE else UNKNOWN

    def assign(self, name: str, value: str) -> None:
        """Assign a value to a variable."""
        self.variables[name] = value if len(value) <= _MAX_VALUE else UNKNOWN

    def place_path(self, path: str) -> str:
        """Return the path as an edit would name it; empty if it is not a file of the work."""
        return place_path(path, directory=self.directory, root=self._root)

    def add_all(self, targets: Iterable[WriteTarget]) -> None:
        """Add written files."""
        for target in targets:
            self.add(target)

    def add(self, target: WriteTarget) -> None:
        """Add a written file; if it is a script, a later command may run it."""
        if len(self.written) >= _MAX_WRITTEN:
            return
        path = self.place_path(target.path)
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
        """Note a copied file: what is known about the original holds for the copy."""
        known = posixpath.join(self.directory, source)
        last = next((each for each in reversed(self.written) if each.path == known), None)
        script = self.scripts.get(self.place_path(source))
        self.add(WriteTarget(path=place, text=last.text if last and not last.appended else None))
        if path := self.place_path(place):
            self.scripts.put(path, script)
