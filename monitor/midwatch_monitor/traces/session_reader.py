"""Sessions that programs keep line by line, read a line at a time."""

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from midwatch_monitor.records import Change, Event, Lifecycle, Step, StepKind
from midwatch_monitor.traces.foreign import CallNumbers, JsonNode, Workplace
from midwatch_monitor.traces.json_stream import Damage, lines
from midwatch_monitor.traces.tool_calls import ModelAnswer, Tools


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


class SessionReader(ABC):
    """One session as it is read; it holds no file. Readers say what a line of theirs means."""

    def __init__(self, *, folder: str = "") -> None:
        self.heading = Heading(folder=folder)
        self._place = Workplace(folder)
        self._calls = CallNumbers()
        self._attended = True
        """Whether there is a person to wait for; a sub-agent has none."""
        self._waits = False
        self._requests = 0
        self._current: ModelAnswer | None = None

    @abstractmethod
    def take(self, line: JsonNode) -> Iterator[Event]:
        """The events that are complete with this line. To be exhausted before the next line."""

    def finish(self) -> Iterator[Event]:
        """What still waits, when no further line comes."""
        yield from self._message()
        yield from self._calls.rest()

    def _enter(self, folder: str) -> None:
        self.heading.add(folder=folder)
        self._place.enter(folder)

    def _answer_for(
        self, key: str, at: datetime | None, *, tokens: int = 0, cost_usd: float = 0.0
    ) -> Generator[Event, None, ModelAnswer]:
        """The answer with that key, begun unless it is being given; the one before is over then."""
        if self._current is None or not key or key != self._current.key:
            yield from self._message()
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
        """A call of the answer (with its `id` and `name`) that now waits, if it is new."""
        key = call["id"].text
        if not self._calls.knows(key):
            step = tools.call(self._place, call["name"].text, given, at=at, call=key)
            yield from self._calls.open(key, answer.call(step))
        answer.called = True

    def _message(self) -> Iterator[Step]:
        """What was said without a call, once nothing can be added to it."""
        message = self._current.message() if self._current else None
        if message is not None:
            yield self._calls.number(message)

    def _to_person(self, at: datetime | None) -> Iterator[Change]:
        """The model has ended its turn."""
        if self._attended and not self._waits:
            self._waits = True
            yield Change(at=at, lifecycle=Lifecycle.INPUT_REQUIRED)

    def _to_model(self, at: datetime | None) -> Iterator[Change]:
        """The model goes on."""
        if self._waits:
            self._waits = False
            yield Change(at=at, lifecycle=Lifecycle.WORKING)


def read_session(path: Path, reader: SessionReader) -> Iterator[Event | Damage]:
    """The events of a file in the order of completion, as they are asked for."""
    for item in lines(path):
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
    """What a person wrote, without the blocks that programs add (`<system-reminder>…`)."""
    return _WRAPPED.sub("", text).strip()
