"""The guidelines of a project: a bounded document of working principles, versioned and approved."""

from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records.intervention import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidelines:
    """A proposed version of a project's guidelines. Its id is that of its journal entry."""

    version: int
    """Number from 1 in each project."""
    text: str
    """The text as Markdown."""
    base: int | None = None
    """Journal id of the version that was in force when it was written."""
    sources: tuple[int, ...] = ()
    """Journal ids of the attempts that it was drawn from."""
    model: str = ""


class GuidelinesAct(StrEnum):
    """What is done with a version."""

    APPROVED = "approved"
    """It is in force from now on, and replaces the previous version."""
    REJECTED = "rejected"
    ROLLED_BACK = "rolled back"
    """It is no longer in force; the previous version is again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesMark:
    """A change of a version's state. `guidelines` is its journal id."""

    guidelines: int
    act: GuidelinesAct
    by: Actor = Actor.OPERATOR
    author: str = ""
    comment: str = ""
    over: int | None = None
    """For `approved`: the version that it must follow; 0 for none, `None` for any."""


class GuidelinesState(StrEnum):
    """The state of a version."""

    PROPOSED = "proposed"
    LIVE = "live"
    FORMER = "former"
    """Was in force; another version is now."""
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """A look back at the attempts of a project since the last one."""

    watermark: int
    """Journal id of the newest summary considered; the next reflection starts after it."""
    attempts: tuple[int, ...] = ()
    """Journal ids of the attempts whose summaries were used."""
    insights: int = 0
    """Number of lessons that it produced."""
    proposed: bool = False
    """Whether it produced a version of the guidelines."""
    skipped: str = ""
    """Why no model was asked; empty if one was."""
    error: str = ""
    """What failed; results from before the failure are kept."""
    after: int = 0
    """Only written by older versions: the entry with which a run of a fleet was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialScore:
    """The scores, 0 to 1, of a finished task that was repeated with the old and the new text."""

    task: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial of a proposed version on tasks that it was not drawn from. `guidelines` is its id."""

    guidelines: int
    scores: tuple[TrialScore, ...] = ()
    adopted: bool = False
    reason: str = ""
