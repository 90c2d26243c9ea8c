"""Whether a result was accepted, derived from records of the journal. Pure."""

from midwatch_monitor.records import (
    AttemptTransition,
    Ending,
    Feedback,
    Origin,
    Record,
    VerdictBasis,
)

_REJECTED = frozenset({Ending.UNACCEPTED, Ending.STUCK, Ending.RESTARTED, Ending.OUT_OF_BUDGET})
"""Endings that reject the work.

An error, a cancellation, a split and an unchecked end say nothing about it.
"""
_STRONGER = (Origin.AUTOMATIC, Origin.IMPLIED, Origin.EXPLICIT)
"""Origins in increasing order of weight."""


def weight(origin: Origin) -> int:
    """Return the weight of a verdict by its origin, from 0: automatic, implied, explicit.

    Of two verdicts on one attempt, the one that weighs less is ignored.
    """
    return _STRONGER.index(origin)


def verdict_of(record: Record) -> Feedback | None:
    """Return the verdict that a record is or implies, or `None`."""
    if isinstance(record, Feedback):
        return record
    if not isinstance(record, AttemptTransition) or record.ending is None:
        return None
    accepted = record.ending is Ending.DONE
    if not accepted and record.ending not in _REJECTED:
        return None
    return Feedback(
        accepted=accepted,
        comment=record.reason,
        origin=Origin.AUTOMATIC,
        author="midwatch",
        sign=VerdictBasis.ENDED,
    )


def teaches(record: Record) -> bool:
    """Return whether a record is a rejection that a lesson should be drawn from.

    A reviewer's rejection alone is not; the resulting end of the attempt is.
    """
    verdict = verdict_of(record)
    if verdict is None or verdict.accepted:
        return False
    return isinstance(record, AttemptTransition) or verdict.origin is not Origin.AUTOMATIC
