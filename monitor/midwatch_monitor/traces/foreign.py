"""Shared by readers of other formats: values of unknown shape, paths, edits, calls, answers."""

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from posixpath import join, normpath
from typing import cast

from midwatch_monitor.records import Edit, Step, StepKind
from midwatch_monitor.shell import Shell
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.time_range import plausible


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A JSON value, or `None` if it is missing."""

    value: object = None

    def __getitem__(self, key: str) -> "JsonNode":
        """Return the value under a key; an empty node if there is none."""
        return JsonNode(self.members.get(key))

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def __iter__(self) -> Iterator["JsonNode"]:
        """Yield the elements of an array; nothing for anything else."""
        # `isinstance` alone leaves the element type unknown.
        value = self.value
        return map(JsonNode, cast("list[object]", value) if isinstance(value, list) else ())

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def members(self) -> Mapping[str, object]:
        """The members of an object; empty for anything else."""
        value = self.value
        return cast("dict[str, object]", value) if isinstance(value, dict) else {}

    def without(self, names: Set[str]) -> "JsonNode":
        """Return the object without these members, and without null members."""
        members = self.members.items()
        return JsonNode(
            {key: value for key, value in members if key not in names and value is not None}
        )

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def text(self) -> str:
        """The text; empty for anything else."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def said(self) -> str:
        """The text, or the joined texts of a list of parts."""
        return self.text or "\n".join(filter(None, (part["text"].text for part in self)))

    @property
    def whole(self) -> int | None:
        """The integer, also from text or from a float without a fraction."""
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
        """The number, if it is not negative; 0 for anything else."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            return 0.0
        return max(float(self.value), 0.0) if abs(self.value) < _HUGE else 0.0

    @property
    def count(self) -> int:
        """The integer, if it is not negative; 0 for anything else."""
        return int(self.amount)

    @property
    def time(self) -> datetime | None:
        """The time: ISO 8601 (UTC if it has no zone), or seconds since 1970.

        `None` if it is not a time, or not a plausible one.
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
        """The value of a JSON text; anything else unchanged."""
        if not isinstance(self.value, str):
            return self
        try:
            return JsonNode(json.loads(self.value))
        except (ValueError, RecursionError):
            return self

    @property
    def canonical(self) -> str:
        """JSON that is equal for equal values; a text is unchanged."""
        if isinstance(self.value, str):
            return self.value
        try:
            return json.dumps(self.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except RecursionError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceItem:
    """One entry of a trace: its index, from 1, and its value."""

    number: int
    node: JsonNode


_HUGE = 1e18


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) < 19 and digits.isascii() and digits.isdigit()


_DRIVE = re.compile(r"[A-Za-z]:/")


def within(path: str, root: str, cwd: str = "") -> str:
    """Return a path relative to the root if it is below it, else unchanged; resolve `.` and `..`.

    A relative path starts from `cwd`, or from the root if `cwd` is unknown. Backslashes become
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
"""Exit codes of a command that could not be executed or was not found."""


class Workplace:
    """The folder of a run, and what its shell and editor change there."""

    def __init__(self, root: str = "") -> None:
        self._shell = Shell()
        self.root = self.cwd = ""
        self.enter(root)

    def enter(self, folder: str) -> None:
        """Go to a folder, if one is given. Paths are relative to the first one."""
        if not self.root:
            self.root = folder
            self._shell.edits("", cwd=folder)
        self.cwd = folder or self.cwd

    def path(self, named: str) -> str:
        """Return a file's path as it is to be reported."""
        return within(named, self.root, self.cwd)

    def run(self, command: str) -> tuple[Edit, ...]:
        """Return the edits of a command if it runs."""
        return self._shell.edits(command, cwd=self.cwd)

    def write(self, named: str, content: str | None = None) -> tuple[Edit, ...]:
        """Return the edit of a file, with its complete new content if known."""
        path = self.path(named)
        if content is None:
            return (Edit(path=path),)
        self._shell.note(path, content)
        return (Edit(path=path, digest=digest(content)),)


MAX_OPEN = 256
"""Number of open calls; when exceeded, the oldest is assumed to have no result."""
_MAX_CLOSED = 1024


class CallNumbers:
    """Numbers the steps of a run in order of completion, in bounded memory."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, Step] = {}
        self._closed: dict[str, None] = {}

    def number(self, step: Step) -> Step:
        """Return the step numbered as the next one of the run."""
        self._count += 1
        return replace(step, number=self._count)

    def knows(self, key: str) -> bool:
        """Whether the call is known already: resumed sessions repeat earlier calls."""
        return bool(key) and (key in self._open or key in self._closed)

    def open(self, key: str, step: Step) -> Iterator[Step]:
        """Open a call. Yields the step of a call that has been open for too long.

        Calls without a key share the empty key, so only one of them is open at a time.
        """
        if key in self._open:
            yield self._without_result(key)
        self._open[key] = step
        if len(self._open) > MAX_OPEN:
            yield self._without_result(next(iter(self._open)))

    def close(self, key: str) -> Step | None:
        """Return the open call that a result belongs to, not yet numbered, if there is one."""
        step = self._open.pop(key, None)
        if step is not None:
            self._closed[key] = None
            if len(self._closed) > _MAX_CLOSED:
                del self._closed[next(iter(self._closed))]
        return step

    def rest(self) -> Iterator[Step]:
        """Yield the steps whose results never came, at the end of the run."""
        while self._open:
            yield self._without_result(next(iter(self._open)))

    def _without_result(self, key: str) -> Step:
        """Return the call without a result, so its edits are unknown."""
        return self.number(replace(self._open.pop(key), edits=()))


_PATHS = ("file_path", "notebook_path", "absolute_path", "path")


@dataclass(slots=True, kw_only=True)
class ModelAnswer:
    """An answer of the model. Its text and cost go to its first call."""

    key: str
    step: Step
    """A message with the text and cost that no call has taken yet."""
    called: bool = False

    def say(self, text: str) -> None:
        """Add a paragraph."""
        said = "\n\n".join(filter(None, (self.step.text, text)))
        self.step = replace(self.step, text=said)

    def call(self, step: Step) -> Step:
        """Return the call, with the answer's text and cost if it is the first one."""
        self.called = True
        own = self._take_step()
        return replace(
            step, request=own.request, text=own.text, tokens=own.tokens, cost_usd=own.cost_usd
        )

    def message(self) -> Step | None:
        """Return the answer's text, once, if it made no call."""
        return self._take_step() if self.step.text and not self.called else None

    def _take_step(self) -> Step:
        taken, self.step = self.step, replace(self.step, text="", tokens=0, cost_usd=0.0)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """A program's own tools that change files, as far as their arguments show."""

    shell: str
    writing: Set[str]
    whole: str
    """The tool among `writing` that is given the complete file as `content`."""
    folder: str = ""
    """The argument of `shell` that names the command's folder, if there is one."""

    def call(
        self, place: Workplace, tool: str, given: JsonNode, *, at: datetime | None, call: str
    ) -> Step:
        """Return the open call; its `edits` take effect if it succeeds."""
        command = given["command"].text if tool == self.shell else ""
        named = next((given[name].text for name in _PATHS if given[name].text), "")
        edits: tuple[Edit, ...] = ()
        if tool == self.shell:
            if self.folder:
                place.enter(join(place.root, given[self.folder].text))
            edits = place.run(command)
        elif tool in self.writing and named:
            edits = place.write(named, given["content"].text if tool == self.whole else None)
        return Step(
            number=0,
            kind=StepKind.TOOL,
            at=at,
            tool=tool,
            args=command if tool == self.shell else given.canonical,
            path=place.path(named),
            edits=edits,
            call=call,
        )


def finish_call(
    step: Step, *, at: datetime | None, ok: bool | None, exit_code: int | None, output: str
) -> Step:
    """Return a call with its result. A failed call changed nothing, unless a command ran."""
    kept = ok is not False or exit_code not in (None, *NOTHING_RAN)
    return replace(
        step,
        at=at or step.at,
        ok=ok,
        exit_code=exit_code,
        output=output,
        edits=step.edits if kept else (),
    )
