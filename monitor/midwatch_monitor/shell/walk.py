"""Goes through a command line in the order in which a shell would."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.shell.calls import Calls
from midwatch_monitor.shell.stream import EMPTY, Stream
from midwatch_monitor.shell.syntax import Bracket, Command, Redirect, expand, filled, parse
from midwatch_monitor.shell.target import MAX_TARGETS, Target
from midwatch_monitor.shell.trail import Trail
from midwatch_monitor.shell.wrapping import unwrapped

_MAX_DEPTH = 3
"""How deep shells and scripts are followed into each other, and loops in loops."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_LOOPS = frozenset({"for", "while", "until", "select"})
_BEFORE = frozenset({"if", "then", "else", "elif", "do", "!", "{"})
_KEYWORDS = _BEFORE | frozenset({"while", "until", "fi", "esac", "done", "}"})


@dataclass(slots=True)
class _Scope:
    directory: str
    subshell: bool
    crafted: bool = True


class Walk:
    """Follows command lines; what they write is in its trail."""

    def __init__(self, trail: Trail, *, depth: int = 0) -> None:
        self._trail = trail
        self._depth = depth
        self._calls = Calls(trail, self._nested)
        self._scopes: list[_Scope] = []
        self._out = EMPTY
        self._closed = False

    def follow(self, text: str) -> None:
        """Go through a command line."""
        items = parse(text)
        self._run(_Lines(items), 0, len(items), 0)

    def _nested(self, text: str, arguments: Sequence[str]) -> None:
        if self._depth >= _MAX_DEPTH:
            return
        directory, variables = self._trail.directory, dict(self._trail.variables)
        for at, argument in enumerate(arguments[:9], 1):
            self._trail.assign(str(at), argument)
        Walk(self._trail, depth=self._depth + 1).follow(text)
        self._trail.directory, self._trail.variables = directory, variables

    def _run(self, lines: "_Lines", start: int, stop: int, loops: int) -> None:
        at = start
        while at < stop and self._trail.step():
            item = lines.items[at]
            end = lines.ends.get(at, 0) if loops < _MAX_DEPTH else 0
            if isinstance(item, Bracket):
                self._bracket(item)
            elif end and (values := self._values(item)):
                name, *texts = values
                for text in texts:
                    self._trail.assign(name, text)
                    self._run(lines, at + 1, end, loops + 1)
                at = end
            else:
                self._command(item)
            at += 1

    def _values(self, command: Command) -> list[str]:
        """The variable of a `for` and its values; nothing for another loop."""
        words = _unled(self._expanded(command))
        if len(words) < 4 or words[0] != "for" or words[2] != "in":
            return []
        return [words[1], *words[3 : 3 + MAX_TARGETS]]

    def _expanded(self, command: Command) -> list[str]:
        variables = self._trail.variables
        return [text for word in command.words for text in expand(word, variables)]

    def _bracket(self, bracket: Bracket) -> None:
        if bracket is Bracket.OPEN:
            self._scopes.append(_Scope(directory=self._trail.directory, subshell=True))
        else:
            self._close()

    def _close(self) -> None:
        scope = self._scopes.pop() if self._scopes else _Scope(directory="", subshell=False)
        if scope.subshell:
            self._trail.directory = scope.directory
        self._done(Stream(crafted=scope.crafted))
        self._closed = True

    def _done(self, out: Stream) -> None:
        self._out = out
        if self._scopes:
            self._scopes[-1].crafted &= out.crafted

    def _command(self, command: Command) -> None:
        stdin = self._out if command.piped else Stream(crafted=True)
        for redirect in command.redirects:
            stdin = self._read(redirect) or stdin
        words = self._assigned(self._led(self._expanded(command)))
        if words or not (command.words or self._closed):
            self._done(self._calls.call(unwrapped(words), stdin))
        for redirect in command.redirects:
            self._redirected(redirect)
        self._closed = False

    def _led(self, words: list[str]) -> list[str]:
        """The words after the keywords that lead them."""
        at = 0
        while at < len(words) and words[at] in _KEYWORDS:
            if words[at] == "{":
                self._scopes.append(_Scope(directory=self._trail.directory, subshell=False))
            elif words[at] == "}":
                self._close()
            else:
                self._out = Stream()
            at += 1
        return words[at:]

    def _assigned(self, words: list[str]) -> list[str]:
        """The words after the assignments before them; those count where nothing follows."""
        found: list[tuple[str, str]] = []
        for word in words[1:] if words and words[0] in _DECLARES else words:
            assignment = _ASSIGNMENT.fullmatch(word)
            if not assignment:
                return words
            found.append((assignment[1], assignment[2]))
        for name, value in found:
            self._trail.assign(name, value)
        return []

    def _read(self, redirect: Redirect) -> Stream | None:
        if redirect.body is not None:
            body = redirect.body
            text = body if redirect.literal else filled(body, self._trail.variables)
            return Stream(text=text, crafted=True)
        target = "".join(expand(redirect.target, self._trail.variables))
        if redirect.operator == "<<<":
            return Stream(text=target + "\n", crafted=True)
        if redirect.operator == "<":
            return Stream(crafted=True, source=self._trail.placed(target))
        return None

    def _redirected(self, redirect: Redirect) -> None:
        if redirect.descriptor != 1 or redirect.operator not in {">", ">>", ">|"}:
            return
        if self._out.crafted:
            path = "".join(expand(redirect.target, self._trail.variables))
            appended = redirect.operator == ">>"
            self._trail.add(Target(path=path, text=self._out.text, appended=appended))
            self._out = EMPTY


class _Lines:
    """The commands of a text, and for each loop among them the place of its `done`."""

    def __init__(self, items: Sequence[Command | Bracket]) -> None:
        self.items = items
        self.ends: dict[int, int] = {}
        opened: list[int] = []
        for at, item in enumerate(items):
            if isinstance(item, Bracket):
                continue
            words = _unled([text for word in item.words[:3] for text in expand(word, {})])
            if words and words[0] in _LOOPS:
                opened.append(at)
            elif words and words[0] == "done" and opened:
                self.ends[opened.pop()] = at


def _unled(words: list[str]) -> list[str]:
    """The words after those that may stand before a loop."""
    at = 0
    while at < len(words) and words[at] in _BEFORE:
        at += 1
    return words[at:]
