"""Lessons, facts and guidelines in their current state, with everything recorded about them."""

from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records.fact import Fact, FactAct, FactState
from midwatch_monitor.records.guidelines import Guidelines, GuidelinesState
from midwatch_monitor.records.lesson import Chore, Lesson, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLesson:
    """A lesson in its current state."""

    id: int
    at: datetime
    project: str
    task: str
    """Name of the task that it comes from; empty for a person's lesson about no task."""
    attempt: int
    """Journal id of the attempt that it comes from, or is only attached to."""
    lesson: Lesson
    used: int = 0
    """Number of attempts that were given it."""
    helped: int = 0
    """Number of those that were accepted."""
    hurt: int = 0
    """Number of those that were rejected or failed."""
    rating: int = 0
    """The last rating by a person, 1 to 5; 0 if there is none."""
    last_used: datetime | None = None
    obsolete: bool = False
    """Whether it is retired or archived, so that no prompt contains it."""
    waiting: bool = False
    """Whether a person must approve it before any attempt is given it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedQuery:
    """An attempt's task, as a query for lessons and facts."""

    project: str
    task: str = ""
    text: str = ""
    """Title and goal of the task."""
    tags: tuple[str, ...] = ()
    kind: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A lesson that may fit, with its score from each kind of search."""

    known: KnownLesson
    bm25: float = 0.0
    """Positive, higher is more similar; 0 if it was not found by its words."""
    words: int = 0
    """Number of search words that it contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact in its current state."""

    id: int
    at: datetime
    project: str
    task: str
    attempt: int
    fact: Fact
    state: FactState
    live: bool = True
    """Whether it is neither replaced, removed nor retired. A waiting fact is live but unshared."""
    ended: FactAct | None = None
    """The act that ended it: replaced, removed or retired; `None` while it is live."""
    instead: int | None = None
    """The fact that replaced it."""
    sources: tuple[int, ...] = ()
    """All attempts that reported it, including those of facts that were merged into it."""
    reason: str = ""
    """Reason of its last mark."""

    @property
    def shared(self) -> bool:
        """Whether workers get it."""
        return self.live and self.state.shared

    @property
    def waiting(self) -> bool:
        """Whether a person must approve it before any worker gets it."""
        return self.live and self.state is FactState.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGuidelines:
    """A version of the guidelines in its current state."""

    id: int
    at: datetime
    project: str
    guidelines: Guidelines
    state: GuidelinesState
    decided_at: datetime | None = None
    author: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSummary:
    """The summary of an attempt, with its journal entry."""

    id: int
    at: datetime
    task: int
    """Journal id of the task."""
    task_name: str
    attempt: int
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChore:
    """A chore that is not done yet. `about` is the journal id of the entry it is derived from."""

    about: int
    chore: Chore
    task: int
    attempt: int
    project: str
    tries: int = 0
    """Number of failed tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """How much of a project was deleted, without the content."""

    id: int
    at: datetime
    author: str
    tasks: int
    attempts: int
    entries: int
