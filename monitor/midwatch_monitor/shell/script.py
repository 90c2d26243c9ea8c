"""The scripts and patches that a run has written so far, by what they would write."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from midwatch_monitor.shell import diffs, python
from midwatch_monitor.shell.target import MAX_TARGETS, Target

MAX_SCRIPTS = 32
"""Scripts that are known at a time; the one least recently written is dropped."""
MAX_COMMANDS_TEXT = 16_000
"""Characters of a shell script; a longer one is not kept."""

_ARGUMENT = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a file would write if it is run or, as a patch, applied."""

    targets: tuple[Target, ...] = ()
    commands: tuple[str, ...] = ()
    """Shell commands that it runs."""
    patch: bool = False

    def given(self, arguments: Sequence[str]) -> list[Target]:
        """Its targets where it is called with these arguments."""

        def fill(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            return arguments[at] if 0 <= at < len(arguments) else found[0]

        return [replace(each, path=_ARGUMENT.sub(fill, each.path)) for each in self.targets]


class Scripts:
    """The scripts of one run, by path."""

    def __init__(self) -> None:
        self._known: dict[str, Script] = {}

    def get(self, path: str) -> Script | None:
        """What is known of the file at a path."""
        return self._known.get(path)

    def put(self, path: str, script: Script | None) -> None:
        """The file is this script now; `None`: it is none any more."""
        self._known.pop(path, None)
        if script is None:
            return
        if len(self._known) >= MAX_SCRIPTS:
            del self._known[next(iter(self._known))]
        self._known[path] = script

    def rename(self, name: Callable[[str], str]) -> None:
        """Know each script by another path; one that gets none is forgotten."""
        known = {name(path): script for path, script in self._known.items()}
        self._known = {path: script for path, script in known.items() if path}

    def extend(self, path: str, script: Script | None) -> None:
        """The file does this as well from now on."""
        known = self._known.get(path)
        if known is None or script is None:
            self.put(path, known or script)
            return
        targets = dict.fromkeys((*known.targets, *script.targets))
        commands = (*known.commands, *script.commands)
        both = replace(known, targets=tuple(targets)[:MAX_TARGETS], commands=commands[:MAX_TARGETS])
        self.put(path, both)


def script_of(path: str, text: str) -> Script | None:
    """What a file with this text would write; `None` if nothing, or if it is no script."""
    first = text[:200].partition("\n")[0]
    shebang = first.startswith("#!")
    extension = posixpath.splitext(path)[1]
    if extension in {".patch", ".diff"} or first.startswith(("--- ", "diff ")):
        script = Script(targets=diffs.named(text), patch=True)
    elif extension in {".py", ".pyw"} or (shebang and "python" in first):
        script = python_script(text)
    elif (extension in {"", ".sh", ".bash"} or shebang) and len(text) <= MAX_COMMANDS_TEXT:
        script = Script(commands=(text,))
    else:
        return None
    return script if script.targets or script.commands else None


def python_script(text: str) -> Script:
    """What a Python program would write."""
    program = python.program(text)
    commands = [text for text in program.commands if len(text) <= MAX_COMMANDS_TEXT]
    return Script(targets=program.targets, commands=tuple(commands))
