"""What attempts taught: how it was drawn from them, and what of it stands in a prompt."""

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
    """A person wrote it; it stands with an attempt of the project, and comes from none unless the
    person named a task."""


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
    """It may be given again."""
    APPROVED = "approved"
    """It may be given for the first time: a person has read it."""
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


class Method(StrEnum):
    """Why a lesson was found, in the order in which they count."""

    TASK = "task"
    """It comes from the same task."""
    TAGS = "tags"
    KIND = "kind"
    """The same kind of work, and words in common."""
    FILES = "files"
    TEXT = "text"
    MANUAL = "manual"
    """A person gave it."""


class Group(StrEnum):
    """In which group of the comparison an attempt is."""

    NONE = "none"
    """Nothing is compared."""
    TREATMENT = "treatment"
    CONTROL = "control"
    """It is given no lessons, so that one sees what they are worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One lesson in a prompt. `lesson` is its journal id."""

    lesson: int
    method: Method
    score: float = 0.0
    """How well it fits, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What an attempt was given."""

    lessons: tuple[Recalled, ...] = ()
    facts: tuple[int, ...] = ()
    """By journal id."""
    guidelines: int | None = None
    """The version in force, by journal id."""
    group: Group = Group.NONE
    tokens: int = 0
    """Of all of it together, estimated."""
    seconds: float = 0.0
    """How long it took to find."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An ended attempt in two or three sentences."""

    text: str
    topics: tuple[str, ...] = ()
    """Three to seven words or names."""
    turns: int = 0
    """How often its model answered."""
    model: str = ""
    """The model that wrote it; empty for the fixed form."""


class Chore(StrEnum):
    """What is to be drawn from an entry of the journal."""

    SUMMARY = "summary"
    """From the end of an attempt: its summary, and facts out of it."""
    LESSON = "lesson"
    """From a verdict that is a rejection."""
    REVIEW = "review"
    """From the end of an attempt: the review of its pending facts."""


class StudyState(StrEnum):
    """What became of one try at a chore."""

    DONE = "done"
    REFUSED = "refused"
    """There is nothing worth keeping in it; it is not tried again."""
    FAILED = "failed"
    """It may be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One try at a chore. `about` is the journal id of the entry that it draws from."""

    about: int
    chore: Chore
    state: StudyState
    reason: str = ""
