"""Sessions that programs keep line by line: what each reader offers, and what all of them share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from midwatch_monitor.records import Change, Event, Lifecycle
from midwatch_monitor.traces.foreign import Node
from midwatch_monitor.traces.json_stream import Damage, lines


@dataclass(slots=True, kw_only=True)
class Heading:
    """What a session says of itself; empty as long as no line has told it."""

    id: str = ""
    folder: str = ""
    """Where it works, as it is named at first."""
    prompt: str = ""
    """What a person asked for first; nothing that the program put around it."""

    def add(self, *, id: str = "", folder: str = "", prompt: str = "") -> None:
        """Take what was not known yet."""
        self.id = self.id or id
        self.folder = self.folder or folder
        self.prompt = self.prompt or prompt


class SessionReader(Protocol):
    """One session as it is read, a line at a time; it holds no file."""

    heading: Heading

    def take(self, line: Node) -> Iterator[Event]:
        """The events that are complete with this line. To be exhausted before the next line."""
        ...

    def finish(self) -> Iterator[Event]:
        """What still waits, when no further line comes."""
        ...


def read_session(path: Path, reader: SessionReader) -> Iterator[Event | Damage]:
    """The events of a file in the order of completion, as they are asked for."""
    for item in lines(path):
        if isinstance(item, Damage):
            yield item
        else:
            yield from reader.take(item.node)
    yield from reader.finish()


class Turns:
    """Whose turn it is: the model's at first. Tells only what changes."""

    def __init__(self) -> None:
        self.attended = True
        """Whether there is a person to wait for; a sub-agent has none."""
        self._waits = False

    def to_person(self, at: datetime | None) -> Iterator[Change]:
        """The model has ended its turn."""
        if self.attended and not self._waits:
            self._waits = True
            yield Change(at=at, lifecycle=Lifecycle.INPUT_REQUIRED)

    def to_model(self, at: datetime | None) -> Iterator[Change]:
        """The model goes on."""
        if self._waits:
            self._waits = False
            yield Change(at=at, lifecycle=Lifecycle.WORKING)


_WRAPPED = re.compile(
    r"<((?:bash|command|environment|hook|ide|local|qwen|session|system|task|turn|user)[-_:][\w:-]+)>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)


def typed(text: str) -> str:
    """What a person wrote, without the blocks that programs add (`<system-reminder>…`)."""
    return _WRAPPED.sub("", text).strip()
