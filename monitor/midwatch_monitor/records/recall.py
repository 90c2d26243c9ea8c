"""What of all that was learned stands in the prompt of an attempt."""

from dataclasses import dataclass
from enum import StrEnum


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
