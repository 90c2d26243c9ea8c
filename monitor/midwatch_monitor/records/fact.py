"""Facts about a workspace, which workers share, and their review."""

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How a fact is known."""

    CONFIRMED = "confirmed"
    """Seen in a file, or in the output of a command."""
    INFERRED = "inferred"


class FactState(StrEnum):
    """Whether a fact was reviewed."""

    UNREVIEWED = "unreviewed"
    """Shared without a review: recorded by an older version, or restored by a person."""
    PENDING = "pending"
    """Waits for its review; not shared until then."""
    WAITING = "waiting"
    """Waits for a person; not shared until then."""
    REVIEWED = "reviewed"

    @property
    def shared(self) -> bool:
        """Whether workers get a live fact in this state."""
        return self not in {FactState.PENDING, FactState.WAITING}


class FactMaker(StrEnum):
    """Who recorded a fact."""

    WORKER = "worker"
    EXTRACTION = "extraction"
    """Extracted from a finished attempt."""
    REVIEW = "review"
    """Added or reworded by the review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something learned about the workspace. Its id is that of its journal entry."""

    text: str
    certainty: Certainty = Certainty.INFERRED
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    value: str = ""
    """A structured value as JSON, which no review changes; empty if there is none."""
    state: FactState = FactState.UNREVIEWED
    maker: FactMaker = FactMaker.WORKER
    sources: tuple[int, ...] = ()
    """Journal ids of the attempts that it comes from, besides the attempt of its entry."""


class FactAct(StrEnum):
    """What is done with a fact."""

    REVIEWED = "reviewed"
    """Reviewed and kept; it is shared."""
    RELEASED = "released"
    """Shared without a review; older versions did so if it failed or was switched off."""
    HELD = "held"
    """It waits for a person."""
    REPLACED = "replaced"
    """Another fact replaces it: better worded, merged or corrected."""
    REMOVED = "removed"
    """The review found it wrong or useless."""
    RETIRED = "retired"
    """A person withdrew it."""
    RESTORED = "restored"

    @property
    def ends(self) -> bool:
        """Whether the fact is no longer shared."""
        return self in {FactAct.REPLACED, FactAct.REMOVED, FactAct.RETIRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactMark:
    """A change of a fact's state. `fact` is its journal id."""

    fact: int
    act: FactAct
    instead: int | None = None
    """For `replaced`: the fact that replaces it."""
    reason: str = ""
    author: str = ""
    """The reviewer's model, or the person."""


class ReviewState(StrEnum):
    """How a review of facts went."""

    OK = "ok"
    FALLBACK = "fallback"
    """It failed; every fact was kept, to be approved by a person."""
    SKIPPED = "skipped"
    """It is switched off, or there is no model for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReview:
    """The result of a review of an attempt's new facts."""

    state: ReviewState
    facts: tuple[int, ...] = ()
    """Journal ids of the facts that were reviewed."""
    modified: int = 0
    removed: int = 0
    missed: int = 0
    """Number of facts that it added."""
    conflicts: int = 0
    """Number of contradictions with known facts that it resolved."""
    unanswered: int = 0
    """Number of facts that the answer left out; they were kept, to be approved by a person."""
    error: str = ""
    model: str = ""
