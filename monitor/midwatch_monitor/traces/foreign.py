"""What readers of other formats share: values of unknown shape, paths, edits, waiting calls."""

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from posixpath import join, normpath
from typing import cast

from midwatch_monitor.records import Edit, Step
from midwatch_monitor.shell import Shell
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.time_range import plausible


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value, or `None` for one that is not there."""

    value: object = None

    def __getitem__(self, key: str) -> "JsonNode":
        """The value under a key; empty where there is none."""
        return JsonNode(self.members.get(key))

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def __iter__(self) -> Iterator["JsonNode"]:
        """The elements of an array; none for anything else."""
        # isinstance alone leaves the type of the elements unknown.
        value = self.value
        return map(JsonNode, cast("list[object]", value) if isinstance(value, list) else ())

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def members(self) -> Mapping[str, object]:
        """What an object holds; nothing for anything else."""
        value = self.value
        return cast("dict[str, object]", value) if isinstance(value, dict) else {}

    def without(self, names: Set[str]) -> "JsonNode":
        """The object without these members, and without those that are null."""
        members = self.members.items()
        return JsonNode(
            {key: value for key, value in members if key not in names and value is not None}
        )

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def text(self) -> str:
        """The text that it is; empty for anything else."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def said(self) -> str:
        """The text that it is, also where it is a list of parts with a text each."""
        return self.text or "\n".join(filter(None, (part["text"].text for part in self)))

    @property
    def whole(self) -> int | None:
        """The integer that it is, also as text or as a float without a fraction."""
        match self.value:
            case bool():
                return None
            case int():
                return self.value
            case float() if self.value.is_integer():
                return int(self.value)
            case str() if _is_integer(self.value):
                return int(self.value)
            case _:
                return None

    @property
    def amount(self) -> float:
        """The number that it is, from 0; 0 for anything else."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            return 0.0
        return max(float(self.value), 0.0) if abs(self.value) < _HUGE else 0.0

    @property
    def count(self) -> int:
        """The whole number that it is, from 0; 0 for anything else."""
        return int(self.amount)

    @property
    def time(self) -> datetime | None:
        """The moment that it names: ISO 8601 (without a zone: UTC), or seconds since 1970.

        `None` where it names none, or one that is not plausible.
        """
        try:
            if isinstance(self.value, str):
                moment = datetime.fromisoformat(self.value)
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            else:
                moment = datetime.fromtimestamp(self.amount, UTC) if self.amount else None
        except (ValueError, OverflowError, OSError):
            return None
        return moment if moment and plausible(moment) else None

    @property
    def decoded(self) -> "JsonNode":
        """What a text of JSON says; anything else as it is."""
        if not isinstance(self.value, str):
            return self
        try:
            return JsonNode(json.loads(self.value))
        except (ValueError, RecursionError):
            return self

    @property
    def canonical(self) -> str:
        """JSON that is equal for equal values; a text is left as it is."""
        if isinstance(self.value, str):
            return self.value
        try:
            return json.dumps(self.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except RecursionError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceItem:
    """One entry of a trace: its place, counted from 1, and what it says."""

    number: int
    node: JsonNode


_HUGE = 1e18


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) < 19 and digits.isascii() and digits.isdigit()


_DRIVE = re.compile(r"[A-Za-z]:/")


def within(path: str, root: str, cwd: str = "") -> str:
    """A path relative to the root where it lies below it, else as it is; `.` and `..` resolved.

    A relative path starts from `cwd`, or from the root where no `cwd` is known. Backslashes become
    slashes.
    """
    if not path:
        return ""
    named = _with_slashes(path)
    start = "" if _DRIVE.match(named) else _with_slashes(cwd or root)
    whole = normpath(join(start, named))
    top = normpath(_with_slashes(root)).rstrip("/") + "/"
    return whole[len(top) :] if root and whole.startswith(top) and whole != top else whole


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


NOTHING_RAN = (126, 127)
"""Exit codes of a command that could not be executed, or was not found."""


class Workplace:
    """Where a run is at work, and what its shell and its editor change there."""

    def __init__(self, root: str = "") -> None:
        self._shell = Shell()
        self.root = self.cwd = ""
        self.enter(root)

    def enter(self, folder: str) -> None:
        """Go to a folder, if one is named. Paths are relative to the first."""
        if not self.root:
            self.root = folder
            self._shell.edits("", cwd=folder)
        self.cwd = folder or self.cwd

    def path(self, named: str) -> str:
        """A file as it is told."""
        return within(named, self.root, self.cwd)

    def run(self, command: str) -> tuple[Edit, ...]:
        """What a command changes if it runs."""
        return self._shell.edits(command, cwd=self.cwd)

    def write(self, named: str, content: str | None = None) -> tuple[Edit, ...]:
        """The change of a file, with all of its content afterwards where that is known."""
        path = self.path(named)
        if content is None:
            return (Edit(path=path),)
        self._shell.note(path, content)
        return (Edit(path=path, digest=digest(content)),)


MAX_OPEN = 256
"""Calls that wait at a time; the oldest is then taken for one whose result never comes."""
_MAX_CLOSED = 1024


class CallNumbers:
    """Numbers the steps of a run in the order of completion, in bounded memory."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, Step] = {}
        self._closed: dict[str, None] = {}

    def number(self, step: Step) -> Step:
        """The step as the next one of the run."""
        self._count += 1
        return replace(step, number=self._count)

    def knows(self, key: str) -> bool:
        """Whether the call was seen before: sessions that were resumed repeat what came before."""
        return bool(key) and (key in self._open or key in self._closed)

    def open(self, key: str, step: Step) -> Iterator[Step]:
        """A call that now waits. Yields the step of one that has waited too long.

        Calls without a key wait one at a time, under the empty one.
        """
        if key in self._open:
            yield self._forsake(key)
        self._open[key] = step
        if len(self._open) > MAX_OPEN:
            yield self._forsake(next(iter(self._open)))

    def close(self, key: str) -> Step | None:
        """The call whose result this is, if it waits; it has no number yet."""
        step = self._open.pop(key, None)
        if step is not None:
            self._closed[key] = None
            if len(self._closed) > _MAX_CLOSED:
                del self._closed[next(iter(self._closed))]
        return step

    def rest(self) -> Iterator[Step]:
        """The steps whose results never came, when the run is over."""
        while self._open:
            yield self._forsake(next(iter(self._open)))

    def _forsake(self, key: str) -> Step:
        """The call without its result: what it changed is not known."""
        return self.number(replace(self._open.pop(key), edits=()))
