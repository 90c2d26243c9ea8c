"""What is known as it stands now: lessons, facts and guidelines with all that was said of them."""

from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records.fact import Fact, FactAct, FactState
from midwatch_monitor.records.guidelines import Guidelines, GuidelinesState
from midwatch_monitor.records.lesson import Chore, Lesson, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLesson:
    """A lesson with what became of it."""

    id: int
    at: datetime
    project: str
    task: str
    """The name of the task that it comes from; empty for a person's that is about none."""
    attempt: int
    """The attempt that it comes from, or only stands with, by journal id."""
    lesson: Lesson
    used: int = 0
    """How many attempts were given it."""
    helped: int = 0
    """How many of those were accepted."""
    hurt: int = 0
    """How many of those were rejected or failed."""
    rating: int = 0
    """The last one by a person, 1 to 5; 0 without any."""
    last_used: datetime | None = None
    obsolete: bool = False
    """Retired or archived: it never comes back into a prompt."""
    waiting: bool = False
    """Whether a person has to approve it before any attempt is given it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an attempt is about: what lessons and facts are looked for by."""

    project: str
    task: str = ""
    text: str = ""
    """Title and goal."""
    tags: tuple[str, ...] = ()
    kind: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A lesson that may fit, with what was found of it by each way of looking."""

    known: KnownLesson
    bm25: float = 0.0
    """Positive, higher is more alike; 0 where it was not found by its words."""
    words: int = 0
    """How many of the words that are looked for stand in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact with what became of it."""

    id: int
    at: datetime
    project: str
    task: str
    attempt: int
    fact: Fact
    state: FactState
    live: bool = True
    """Whether it stands: not replaced, removed or retired. What waits stands, unshared."""
    ended: FactAct | None = None
    """What was done about one that does not stand: it was replaced, removed or retired."""
    instead: int | None = None
    """The fact that stands in its place."""
    sources: tuple[int, ...] = ()
    """All attempts that said it, with those of facts that were merged into it."""
    reason: str = ""
    """Of its last mark."""

    @property
    def shared(self) -> bool:
        """Whether workers get it."""
        return self.live and self.state.shared

    @property
    def waiting(self) -> bool:
        """Whether a person has to approve it before any worker gets it."""
        return self.live and self.state is FactState.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGuidelines:
    """A version of the guidelines and where it stands."""

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
    """The summary of an attempt, and where it stands in the journal."""

    id: int
    at: datetime
    task: int
    """By journal id."""
    task_name: str
    attempt: int
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChore:
    """A chore that is not done yet. `about` is the journal id of the entry it draws from."""

    about: int
    chore: Chore
    task: int
    attempt: int
    project: str
    tries: int = 0
    """How often it was tried in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was deleted about a project, without its content."""

    id: int
    at: datetime
    author: str
    tasks: int
    attempts: int
    entries: int
