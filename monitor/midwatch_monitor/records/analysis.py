"""Why something failed, recorded before it is tried again."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Whether a failure goes away by itself."""

    TRANSIENT = "transient"
    """It goes away: a timeout, a rate limit, an overload. Waiting helps; a change does not."""
    PERMANENT = "permanent"
    """It stays until something is changed."""
    UNKNOWN = "unknown"


class AnalysisAuthor(StrEnum):
    """Who wrote an analysis."""

    WORKER = "worker"
    WATCH = "watch"
    """Midwatch itself, about a retried request to a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analysis of one failure."""

    what: str
    """What happened."""
    cause: Cause
    root: str
    """The root cause, or the mistaken belief."""
    remedy: str
    """What changes before the next try."""
    about: int = 0
    """Number of the step that failed; 0 for an earlier attempt, or the provider."""
    by: AnalysisAuthor = AnalysisAuthor.WORKER
