"""One line of `show` on what was learned, as other programs read it. A run's own lines have none.

Each begins as the lines of a run do: type, moment, task and attempt.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from midwatch_monitor.records import (
    Certainty,
    Chore,
    FactMaker,
    FactState,
    Group,
    Method,
    Origin,
    Sign,
    StudyState,
)
from midwatch_supervisor.present.line import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What every line begins with."""

    type: str
    at: datetime
    task: str
    attempt: int | None
    number: int | None
    id: int
    """The journal id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLesson:
    """A lesson in a first prompt."""

    id: int
    method: Method
    score: float
    text: str
    """Empty if it was erased."""
    failure_class: str = ""
    origin: Origin | None = None
    source_attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFact:
    """A fact in a first prompt."""

    id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenGuidelines:
    """The guidelines of a first prompt."""

    id: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLine(_Line):
    """What an attempt was given."""

    type: Literal["recall"] = "recall"
    lessons: tuple[GivenLesson, ...]
    facts: tuple[GivenFact, ...]
    guidelines: GivenGuidelines | None
    group: Group
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackLine(_Line):
    """A verdict on its result."""

    type: Literal["feedback"] = "feedback"
    accepted: bool
    origin: Origin
    author: str
    sign: Sign
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonLine(_Line):
    """A lesson that was drawn from it."""

    type: Literal["lesson"] = "lesson"
    text: str
    failure_class: str
    insights: tuple[str, ...]
    tags: tuple[str, ...]
    steps: tuple[int, ...]
    origin: Origin
    verdict: int | None
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLine(_Line):
    """It in two or three sentences."""

    type: Literal["summary"] = "summary"
    text: str
    topics: tuple[str, ...]
    turns: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLine(_Line):
    """A fact that it brought."""

    type: Literal["fact"] = "fact"
    text: str
    certainty: Certainty
    files: tuple[str, ...]
    tags: tuple[str, ...]
    state: FactState
    """As it was when it was written down."""
    maker: FactMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLine(_Line):
    """Something that could not be drawn from it."""

    type: Literal["study"] = "study"
    about: int
    chore: Chore
    state: StudyState
    reason: str


Learnt = RecallLine | FeedbackLine | LessonLine | SummaryLine | FactLine | StudyLine
"""One line on what was learned."""


def learnt_fields(line: Learnt) -> Mapping[str, object]:
    """The line as JSON takes it."""
    return asdict(line) | {"at": moment(line.at)}
