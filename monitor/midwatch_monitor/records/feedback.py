"""Verdicts on results: explicit, implied or automatic."""

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Where a verdict on a result comes from; rates never mix origins."""

    EXPLICIT = "explicit"
    """A person gave it."""
    IMPLIED = "implied"
    """Implied by what a person did with the result."""
    AUTOMATIC = "automatic"
    """From the acceptance checks, the reviewer, or the end of the attempt."""


class VerdictBasis(StrEnum):
    """What a verdict is based on."""

    SAID = "said"
    """A person's statement."""
    KEPT = "kept"
    """The result was merged, and its files are unchanged since."""
    EDITED = "edited"
    """The result was merged, but a person changed its files afterwards: a soft rejection."""
    REVERTED = "reverted"
    """The result was merged, and later reverted."""
    REVIEWED = "reviewed"
    """The reviewer's judgement."""
    ENDED = "ended"
    """How the attempt ended, including its acceptance checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Acceptance or rejection of an attempt's result."""

    accepted: bool
    comment: str = ""
    origin: Origin = Origin.EXPLICIT
    author: str = ""
    sign: VerdictBasis = VerdictBasis.SAID
    diff: str = ""
    """For `edited`: what a person changed afterwards, cut to fit into a prompt."""
