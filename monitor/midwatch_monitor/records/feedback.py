"""Verdicts on results: by a person, implied by what became of the work, or automatic."""

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Where a verdict on a result comes from; rates never mix them."""

    EXPLICIT = "explicit"
    """A person said so."""
    IMPLIED = "implied"
    """What a person did with the result says so."""
    AUTOMATIC = "automatic"
    """The acceptance checks, the reviewer, or how the attempt ended."""


class Sign(StrEnum):
    """What a verdict rests on."""

    SAID = "said"
    """A person's own words."""
    KEPT = "kept"
    """Merged, and its files are unchanged since."""
    EDITED = "edited"
    """Merged, and a person changed its files afterwards: a soft rejection."""
    REVERTED = "reverted"
    """Merged, and taken back."""
    REVIEWED = "reviewed"
    """The reviewer looked at it."""
    ENDED = "ended"
    """How the attempt ended, its acceptance checks among that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Accept or reject of an attempt's result."""

    accepted: bool
    comment: str = ""
    origin: Origin = Origin.EXPLICIT
    author: str = ""
    sign: Sign = Sign.SAID
    diff: str = ""
    """What a person changed afterwards, for `edited`; cut to what a prompt can hold."""
