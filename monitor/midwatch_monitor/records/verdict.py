"""Whether a result was accepted, by whatever says so. Pure."""

from midwatch_monitor.records import AttemptTransition, Ending, Feedback, Origin, Record, Sign

_REJECTED = frozenset({Ending.UNACCEPTED, Ending.STUCK, Ending.RESTARTED, Ending.OUT_OF_BUDGET})
"""Endings that say something of the work. An error of the provider, a canceled attempt, one that
was split and one that nobody checked do not."""
_STRONGER = (Origin.AUTOMATIC, Origin.IMPLIED, Origin.EXPLICIT)
"""Each one counts more than those before it."""


def weight(origin: Origin) -> int:
    """How much a verdict counts by its origin: a sign more than the checks, a person's word most.

    From 0; of two verdicts on one attempt the one that weighs less is passed over.
    """
    return _STRONGER.index(origin)


def verdict_of(record: Record) -> Feedback | None:
    """The verdict that a record of the journal is or implies; `None` for any other record."""
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
        sign=Sign.ENDED,
    )


def teaches(record: Record) -> bool:
    """Whether a record is a rejection that a lesson is to be drawn from.

    A reviewer's refusal is none by itself: the attempt that it ended is.
    """
    verdict = verdict_of(record)
    if verdict is None or verdict.accepted:
        return False
    return isinstance(record, AttemptTransition) or verdict.origin is not Origin.AUTOMATIC
