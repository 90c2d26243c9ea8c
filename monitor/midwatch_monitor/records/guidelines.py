"""The bounded document of working principles of a project, versioned and approved."""

from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records.intervention import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidelines:
    """One version of a project's guidelines, proposed. Its id is that of its journal entry."""

    version: int
    """Counted from 1 in each project."""
    text: str
    """Markdown."""
    base: int | None = None
    """The version that was in force when it was written, by journal id."""
    sources: tuple[int, ...] = ()
    """The attempts that it was drawn from, by journal id."""
    model: str = ""


class GuidelinesAct(StrEnum):
    """What is done about a version."""

    APPROVED = "approved"
    """It is in force from now on, and the version before it is not."""
    REJECTED = "rejected"
    ROLLED_BACK = "rolled back"
    """It is no longer in force; what was before it is again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesMark:
    """A change of what becomes of a version. `guidelines` is its journal id."""

    guidelines: int
    act: GuidelinesAct
    by: Actor = Actor.OPERATOR
    author: str = ""
    comment: str = ""
    over: int | None = None
    """For `approved`: the version that it is to follow, 0 for none; `None` for any."""


class GuidelinesState(StrEnum):
    """Where a version stands."""

    PROPOSED = "proposed"
    LIVE = "live"
    FORMER = "former"
    """Was in force, and another is now."""
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """A look back at the attempts of a project since the last one."""

    watermark: int
    """The journal id of the newest summary that was looked at: the next look starts after it."""
    attempts: tuple[int, ...] = ()
    """The attempts whose summaries were used, by journal id."""
    insights: int = 0
    """Lessons that came of it."""
    proposed: bool = False
    """Whether a version of the guidelines came of it."""
    skipped: str = ""
    """Why nothing was asked; empty if something was."""
    error: str = ""
    """What failed; what came before it is kept."""
    after: int = 0
    """Written by older versions only: the entry by which a run of a fleet was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialScore:
    """What one finished task came to when it was done again with each text, 0 to 1."""

    task: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A proposed version tried on tasks that it was not drawn from. `guidelines` is its id."""

    guidelines: int
    scores: tuple[TrialScore, ...] = ()
    adopted: bool = False
    reason: str = ""
