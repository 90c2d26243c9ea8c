"""Lessons of attempts: how they were made, and which of them a prompt contains."""

from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records.feedback import Origin


class LessonOrigin(StrEnum):
    """What a lesson was made from."""

    VERDICT = "verdict"
    """One rejected or failed attempt."""
    REFLECTION = "reflection"
    """A reflection on several attempts; such a lesson is an insight."""
    PERSON = "person"
    """A person wrote it.

    It is attached to an attempt of the project, but comes from it only if the person named a task.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was done, why it failed, and what to do instead. Its id is that of its journal entry."""

    text: str
    failure_class: str = "unknown"
    """One of the classes of the configuration, `other`, or `unknown`."""
    insights: tuple[str, ...] = ()
    """What to do instead, one sentence each."""
    tags: tuple[str, ...] = ()
    kind: str = ""
    """The kind of the worker that did the task: `coder` or `task`."""
    files: tuple[str, ...] = ()
    """Files that it is about, relative to the workspace."""
    steps: tuple[int, ...] = ()
    """Numbers of the attempt's steps that are its evidence."""
    model: str = ""
    """The model that wrote it; empty for the fixed form."""
    born: LessonOrigin = LessonOrigin.VERDICT
    verdict: int | None = None
    """Journal id of the verdict that it explains: a Feedback, or the end of the attempt."""
    origin: Origin = Origin.AUTOMATIC
    """Origin of that verdict."""
    sources: tuple[int, ...] = ()
    """Journal ids of the attempts that it comes from."""
    waits: str = ""
    """Why a person must approve it before any attempt is given it; empty if that is not needed."""
    author: str = ""
    """The person who wrote it, if one did."""


class LessonAct(StrEnum):
    """What is done with a lesson."""

    RETIRED = "retired"
    """It is out of date, and no longer given."""
    RESTORED = "restored"
    """It may be given again."""
    APPROVED = "approved"
    """It may be given, because a person has read it."""
    ARCHIVED = "archived"
    """Retired automatically, because nobody needed it for a long time."""
    RATED = "rated"
    """A person rates it."""
    GIVEN = "given"
    """A person gives it to the next attempt of the task that the entry belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonMark:
    """A change of a lesson's state. `lesson` is its journal id."""

    lesson: int
    act: LessonAct
    rating: int = 0
    """For `rated`: from 1 (misleading) to 5 (saved the day)."""
    author: str = ""
    comment: str = ""


class Method(StrEnum):
    """Why a lesson was found, in order of precedence."""

    TASK = "task"
    """It comes from the same task."""
    TAGS = "tags"
    KIND = "kind"
    """The same kind of work, with words in common."""
    FILES = "files"
    TEXT = "text"
    MANUAL = "manual"
    """A person gave it."""


class Group(StrEnum):
    """The group of an attempt when attempts with and without lessons are compared."""

    NONE = "none"
    """No comparison is made."""
    TREATMENT = "treatment"
    CONTROL = "control"
    """It is given no lessons, to measure what they are worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One lesson in a prompt. `lesson` is its journal id."""

    lesson: int
    method: Method
    score: float = 0.0
    """How well it fits, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The lessons, facts and guidelines that an attempt was given."""

    lessons: tuple[Recalled, ...] = ()
    facts: tuple[int, ...] = ()
    """Journal ids of the facts."""
    guidelines: int | None = None
    """Journal id of the version in force."""
    group: Group = Group.NONE
    tokens: int = 0
    """Estimated tokens of all of it together."""
    seconds: float = 0.0
    """Time it took to find them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An ended attempt in two or three sentences."""

    text: str
    topics: tuple[str, ...] = ()
    """Three to seven words or names."""
    turns: int = 0
    """Number of answers from its model."""
    model: str = ""
    """The model that wrote it; empty for the fixed form."""


class Chore(StrEnum):
    """What has to be derived from a journal entry."""

    SUMMARY = "summary"
    """From the end of an attempt: its summary, and its facts."""
    LESSON = "lesson"
    """From a verdict that rejects a result: a lesson."""
    REVIEW = "review"
    """From the end of an attempt: the review of its pending facts."""


class StudyState(StrEnum):
    """The result of one try at a chore."""

    DONE = "done"
    REFUSED = "refused"
    """Nothing was worth keeping; it is not tried again."""
    FAILED = "failed"
    """It may be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One try at a chore. `about` is the journal id of the chore's entry."""

    about: int
    chore: Chore
    state: StudyState
    reason: str = ""
