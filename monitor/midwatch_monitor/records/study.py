"""What is drawn from an attempt off-line: its summary, its lesson, its facts."""

from dataclasses import dataclass
from enum import StrEnum


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
