"""Sessions that programs store line by line: where they are, and how to read them as they grow."""

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from midwatch_monitor.records import Change, Event, Lifecycle, Step, StepKind
from midwatch_monitor.traces.foreign import (
    CallNumbers,
    JsonNode,
    ModelAnswer,
    Tools,
    TraceItem,
    Workplace,
)
from midwatch_monitor.traces.json_stream import MAX_LINE, Damage, item_of, items, lines


@dataclass(slots=True, kw_only=True)
class Heading:
    """What a session says about itself; empty until a line says it."""

    id: str = ""
    folder: str = ""
    """The folder where it works, as first named."""
    prompt: str = ""
    """A person's first request, without text that the program added."""

    def add(self, *, id: str = "", folder: str = "", prompt: str = "") -> None:
        """Add what is not known yet."""
        self.id = self.id or id
        self.folder = self.folder or folder
        self.prompt = self.prompt or prompt


class SessionReader(ABC):
    """Reads one session; holds no file. Subclasses interpret their format's lines."""

    def __init__(self, *, folder: str = "") -> None:
        self.heading = Heading(folder=folder)
        self._place = Workplace(folder)
        self._calls = CallNumbers()
        self._waits = False
        self._requests = 0
        self._current: ModelAnswer | None = None

    @abstractmethod
    def take(self, line: JsonNode) -> Iterator[Event]:
        """Yield the events that this line completes. Exhaust the iterator before the next line."""

    def finish(self) -> Iterator[Event]:
        """Yield the remaining events, if no more lines come."""
        yield from self._message_step()
        yield from self._calls.rest()

    def knows(self, call: str) -> bool:
        """Whether a call with this id has been read."""
        return self._calls.knows(call)

    def _enter_folder(self, folder: str) -> None:
        self.heading.add(folder=folder)
        self._place.enter(folder)

    def _answer_for(
        self, key: str, at: datetime | None, *, tokens: int = 0, cost_usd: float = 0.0
    ) -> Generator[Event, None, ModelAnswer]:
        """Return the answer with this key; if it is not the current one, end that and begin it."""
        if self._current is None or not key or key != self._current.key:
            yield from self._message_step()
            yield from self._to_model(at)
            return self._begin_answer(at, key=key, tokens=tokens, cost_usd=cost_usd)
        return self._current

    def _begin_answer(
        self, at: datetime | None, *, key: str = "", tokens: int = 0, cost_usd: float = 0.0
    ) -> ModelAnswer:
        self._requests += 1
        step = Step(
            number=0,
            kind=StepKind.MESSAGE,
            at=at,
            request=self._requests,
            tokens=tokens,
            cost_usd=cost_usd,
        )
        self._current = ModelAnswer(key=key, step=step)
        return self._current

    def _open_call(
        self,
        answer: ModelAnswer,
        tools: Tools,
        call: JsonNode,
        given: JsonNode,
        at: datetime | None,
    ) -> Iterator[Step]:
        """Open a call of the answer (it has an `id` and a `name`), if it is new."""
        key = call["id"].text
        if not self._calls.knows(key):
            step = tools.call(self._place, call["name"].text, given, at=at, call=key)
            yield from self._calls.open(key, answer.call(step))
        answer.called = True

    def _message_step(self) -> Iterator[Step]:
        """Yield the answer as a step if it made no call, once nothing can be added to it."""
        message = self._current.message() if self._current else None
        if message is not None:
            yield self._calls.number(message)

    def _to_person(self, at: datetime | None) -> Iterator[Change]:
        """Note that the model ended its turn."""
        if not self._waits:
            self._waits = True
            yield Change(at=at, lifecycle=Lifecycle.INPUT_REQUIRED)

    def _to_model(self, at: datetime | None) -> Iterator[Change]:
        """Note that the model continues."""
        if self._waits:
            self._waits = False
            yield Change(at=at, lifecycle=Lifecycle.WORKING)


def read_session(path: Path, reader: SessionReader) -> Iterator[Event | Damage]:
    """Yield the events of a file lazily, in order of completion."""
    yield from read_items(lines(path), reader)


def read_items(
    said: Iterable[TraceItem | Damage], reader: SessionReader
) -> Iterator[Event | Damage]:
    """Yield the events of a file's items, in order of completion."""
    for item in said:
        if isinstance(item, Damage):
            yield item
        else:
            yield from reader.take(item.node)
    yield from reader.finish()


_WRAPPED = re.compile(
    r"<((?:bash|command|environment|hook|ide|local|qwen|session|system|task|turn|user)[-_:][\w:-]+)>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)


def typed_text(text: str) -> str:
    """Return what a person typed, without blocks added by programs (`<system-reminder>…`)."""
    return _WRAPPED.sub("", text).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """Where a program keeps its sessions on this machine."""

    agent: str
    """The program's name, which is also its files' format."""
    folder: str
    """The folder in the user's home."""
    variable: str = ""
    """The environment variable that names another folder."""
    patterns: tuple[str, ...]
    """Patterns of the files below the folder."""

    def folder_of(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the program's folder for this user."""
        named = environ.get(self.variable, "") if self.variable else ""
        return Path(named) if named else home / self.folder


_KEPT = (
    SessionFiles(
        agent="claude-code",
        folder=".claude",
        variable="CLAUDE_CONFIG_DIR",
        patterns=("projects/*/*.jsonl", "projects/*/*/subagents/agent-*.jsonl"),
    ),
    SessionFiles(
        agent="codex",
        folder=".codex",
        variable="CODEX_HOME",
        patterns=("sessions/*/*/*/rollout-*.jsonl",),
    ),
    SessionFiles(
        agent="gemini",
        folder=".gemini",
        patterns=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
    ),
    SessionFiles(agent="qwen", folder=".qwen", patterns=("projects/*/chats/*.jsonl",)),
)
KEPT: Mapping[str, SessionFiles] = MappingProxyType({each.agent: each for each in _KEPT})
"""By the program's name."""


def find_sessions(
    kept: SessionFiles, environ: Mapping[str, str], home: Path, *, since: datetime
) -> list[Path]:
    """Return a program's files last written at or after that time; see `find_written`."""
    return find_written(kept.folder_of(environ, home), kept.patterns, since=since)


def find_written(folder: Path, patterns: Iterable[str], *, since: datetime) -> list[Path]:
    """Return the files below a folder last written at or after that time, sorted.

    Links out of the folder and unreadable files are skipped.
    """
    found = {path for pattern in patterns for path in _list_files(folder, pattern)}
    return sorted(path for path in found if _is_recent(path, folder, since))


def parent_of(path: Path) -> Path | None:
    """Return the session whose sub-agent has this file, by its location; it may not exist."""
    folder = path.parent
    if folder.name != "subagents" or not path.name.startswith("agent-"):
        return None
    return folder.parent.with_name(f"{folder.parent.name}{path.suffix}")


def _list_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files that can be listed; a folder that fails ends the listing."""
    try:
        yield from folder.glob(pattern)
    except OSError:
        return


def _is_recent(path: Path, folder: Path, since: datetime) -> bool:
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        return inside and path.is_file() and path.stat().st_mtime >= since.timestamp()
    except (OSError, RuntimeError):  # unreadable, gone, or a link to itself
        return False


class SessionTail(Protocol):
    """Follows one file of a session from its beginning."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    def read(self) -> list[TraceItem | Damage]:
        """Return what is new, or a part of it; empty once all is read.

        Raises OSError for an unreadable file.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


_CHUNK = 1024 * 1024
"""Bytes that are read at a time."""


class Tail:
    """Follows one file of JSON lines from its beginning.

    A line counts once its end is written. If another file takes the name, the old one is first read
    to its end; a file that got shorter is read again from its start. A line of more than 32 MiB is
    damage and not kept in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BufferedReader | None = None
        self._rest = b""
        """The beginning of an incomplete line."""
        self._too_long = False
        self._line = 0

    def read(self, most: int = 4 * _CHUNK) -> list[TraceItem | Damage]:
        """Return what is new, at most that many bytes of it; empty while there is no such file.

        Raises OSError for an unreadable file.
        """
        found = list[TraceItem | Damage]()
        while most > 0:
            chunk = self._next_chunk()
            if not chunk:
                break
            most -= len(chunk)
            found += self._split_lines(chunk)
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_chunk(self) -> bytes:
        if self._file is None:
            return self._next_chunk() if self._open_file() else b""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._begin_anew(self._file)
        if chunk := self._file.read(_CHUNK):
            return chunk
        return self._next_chunk() if self._is_replaced(self._file) and self._open_file() else b""

    def _open_file(self) -> bool:
        """Open the file that now has the name; return whether there is one."""
        try:
            # Opening a named pipe would block.
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            return False
        self.close()
        self._file = os.fdopen(file, "rb")
        self._begin_anew(self._file)
        return True

    def _begin_anew(self, file: BufferedReader) -> None:
        file.seek(0)
        self._rest, self._too_long, self._line = b"", False, 0

    def _is_replaced(self, file: BufferedReader) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(file.fileno()))
        except OSError:  # it may come back
            return False

    def _split_lines(self, chunk: bytes) -> list[TraceItem | Damage]:
        found = list[TraceItem | Damage]()
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            self._line += 1
            line, self._rest = self._rest + end, b""
            if self._too_long or len(line) > MAX_LINE:
                found.append(Damage(line=self._line, problem=f"longer than {MAX_LINE} bytes"))
            elif line.strip():
                found.append(item_of(line, self._line))
            self._too_long = False
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            self._rest, self._too_long = b"", True
        return found


_ENTRIES = 500
"""Entries of a document that are read at a time."""


class DocumentTail:
    """Follows one document with an array of entries, which is rewritten for each new entry.

    An entry is identified by its `id`, else by its index, and the last one is read again as it
    grows. A document that breaks off is damaged only if it still does at the next look: its end may
    not have been written yet.
    """

    def __init__(self, path: Path, array: str, head: JsonNode) -> None:
        self.path = path
        self._array = array
        self._known = set[str]()
        self._last = ""
        self._stamp: tuple[int, ...] = ()
        """The file's stamp when it was last read."""
        self._reading: Iterator[TraceItem | Damage] = iter([TraceItem(number=0, node=head)])
        self._told = set[Damage]()
        self._broken: Damage | None = None
        """Where the document broke off when it was last read."""
        self._at_end = False
        """Whether the last call returned nothing, which ends a look."""

    def read(self) -> list[TraceItem | Damage]:
        """Return what is new, or a part of it; empty once all is read.

        Raises OSError for an unreadable file.
        """
        found: list[TraceItem | Damage] = list(islice(self._reading, _ENTRIES))
        if not found and self._is_new():
            self._reading = self._new_entries()
            found = list(islice(self._reading, _ENTRIES))
        elif not found and self._at_end and self._broken is not None:
            found = [self._broken]
            self._told.add(self._broken)
            self._broken = None
        self._at_end = not found
        return found

    def close(self) -> None:
        """Close the file."""
        self._reading = iter(())

    def _is_new(self) -> bool:
        try:
            now = self.path.stat()
        except FileNotFoundError:  # it may come back
            return False
        before, self._stamp = self._stamp, (now.st_ino, now.st_size, now.st_mtime_ns)
        return stat.S_ISREG(now.st_mode) and self._stamp != before

    def _new_entries(self) -> Iterator[TraceItem | Damage]:
        """Yield the unread entries, and the one that was last before."""
        self._broken = None
        for item in items(self.path, self._array):
            if isinstance(item, Damage):
                yield from self._new_damage(item)
                continue
            key = item.node["id"].text or str(item.number)
            if key == self._last or key not in self._known:
                self._known.add(key)
                self._last = key
                yield item

    def _new_damage(self, damage: Damage) -> Iterator[Damage]:
        """Yield damage that is new, or remember where the document breaks off."""
        if damage in self._told:
            return
        if damage.breaks_off:
            self._broken = damage
        else:
            self._told.add(damage)
            yield damage
