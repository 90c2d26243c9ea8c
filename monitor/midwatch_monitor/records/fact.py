"""Facts about a workspace, shared between workers, and their review."""

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How a fact is known."""

    CONFIRMED = "confirmed"
    """Seen: in a file, or in the output of a command."""
    INFERRED = "inferred"


class FactState(StrEnum):
    """Whether somebody looked at a fact."""

    UNREVIEWED = "unreviewed"
    """Shared though nobody looked at it, as older versions did, or restored by a person."""
    PENDING = "pending"
    """Waits for its review, and is not shared before."""
    WAITING = "waiting"
    """Waits for a person, and is not shared before."""
    REVIEWED = "reviewed"

    @property
    def shared(self) -> bool:
        """Whether a fact that stands is given to workers."""
        return self not in {FactState.PENDING, FactState.WAITING}


class FactMaker(StrEnum):
    """Who wrote a fact down."""

    WORKER = "worker"
    EXTRACTION = "extraction"
    """Taken out of a finished attempt."""
    REVIEW = "review"
    """Missed by the others, or better worded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something learned about the workspace. Its id is that of its journal entry."""

    text: str
    certainty: Certainty = Certainty.INFERRED
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    value: str = ""
    """A structured value as JSON, kept as it is through every review; empty if there is none."""
    state: FactState = FactState.UNREVIEWED
    maker: FactMaker = FactMaker.WORKER
    sources: tuple[int, ...] = ()
    """The attempts that it comes from, by journal id; that of its entry is one by itself."""


class FactAct(StrEnum):
    """What is done about a fact."""

    REVIEWED = "reviewed"
    """Looked at and kept; it is shared."""
    RELEASED = "released"
    """Shared without a review. Older versions did so where that failed or was switched off."""
    HELD = "held"
    """It waits for a person."""
    REPLACED = "replaced"
    """Another fact stands in its place: a better wording, a merged one, the truth."""
    REMOVED = "removed"
    """Wrong or useless, the review says."""
    RETIRED = "retired"
    """A person took it back."""
    RESTORED = "restored"

    @property
    def ends(self) -> bool:
        """Whether the fact is no longer shared."""
        return self in {FactAct.REPLACED, FactAct.REMOVED, FactAct.RETIRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactMark:
    """A change of what becomes of a fact. `fact` is its journal id."""

    fact: int
    act: FactAct
    instead: int | None = None
    """For `replaced`: the fact that stands in its place."""
    reason: str = ""
    author: str = ""
    """The reviewer's model, or the person."""


class ReviewState(StrEnum):
    """How a review of facts went."""

    OK = "ok"
    FALLBACK = "fallback"
    """It failed, and every fact was kept, for a person."""
    SKIPPED = "skipped"
    """It is switched off, or there is no model for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReview:
    """What a review of an attempt's new facts came to."""

    state: ReviewState
    facts: tuple[int, ...] = ()
    """The facts that were looked at, by journal id."""
    modified: int = 0
    removed: int = 0
    missed: int = 0
    """Facts that it added."""
    conflicts: int = 0
    """Contradictions with known facts that it settled."""
    unanswered: int = 0
    """Facts that the answer left out; they were kept, for a person."""
    error: str = ""
    model: str = ""
