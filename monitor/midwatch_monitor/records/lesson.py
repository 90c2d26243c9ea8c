"""What a failed attempt, a rejection or a look back at several attempts taught."""

from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records.feedback import Origin


class Birth(StrEnum):
    """What a lesson was made from."""

    VERDICT = "verdict"
    """One rejected or failed attempt."""
    REFLECTION = "reflection"
    """A look back at several attempts: an insight."""
    PERSON = "person"
    """A person wrote it; it stands with an attempt of the project, and comes from none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was done, why it failed, and what to do instead. Its id is that of its journal entry."""

    text: str
    failure_class: str = "unknown"
    """One of the classes of the configuration, `other`, or `unknown`."""
    insights: tuple[str, ...] = ()
    """What to do instead, each a sentence."""
    tags: tuple[str, ...] = ()
    kind: str = ""
    """The kind of the worker that did the task: `coder` or `task`."""
    files: tuple[str, ...] = ()
    """Files that it is about, relative to the workspace."""
    steps: tuple[int, ...] = ()
    """Numbers of the attempt's steps that it rests on."""
    model: str = ""
    """The model that wrote it; empty for the fixed form."""
    born: Birth = Birth.VERDICT
    verdict: int | None = None
    """The journal id of the verdict that it explains: a Feedback, or the end of the attempt."""
    origin: Origin = Origin.AUTOMATIC
    """Of that verdict."""
    sources: tuple[int, ...] = ()
    """The attempts that it comes from, by journal id."""
    waits: str = ""
    """Why no attempt is given it before a person approves; empty if none has to."""
    author: str = ""
    """The person who wrote it, if one did."""


class LessonAct(StrEnum):
    """What is done about a lesson."""

    RETIRED = "retired"
    """It is out of date, and never comes back into a prompt."""
    RESTORED = "restored"
    """It may be given, again or for the first time: a person has read it."""
    ARCHIVED = "archived"
    """Nobody needed it for long; as retired, but by itself."""
    RATED = "rated"
    """A person says what it is worth."""
    GIVEN = "given"
    """A person gives it to the next attempt of a task: the task that the entry belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonMark:
    """A change of what is thought of a lesson. `lesson` is its journal id."""

    lesson: int
    act: LessonAct
    rating: int = 0
    """For `rated`: from 1 (misleading) to 5 (saved the day)."""
    author: str = ""
    comment: str = ""
