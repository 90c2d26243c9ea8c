"""What attempts said last of their own confidence, beside what the checks said."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.metrics.calibration import BINS, Prediction, expected_error
from midwatch_monitor.metrics.roster import Roster
from midwatch_monitor.records import Acceptance, Completion, Entry, Step
from midwatch_monitor.replay.tune.figures import Share

_CHECKS = 1_000
"""Checks of an attempt that are told apart; a task has a handful."""


class Source(StrEnum):
    """Where a confidence was stated."""

    CHECKPOINT = "checkpoint"
    """In the attempt's last report through `reflect`."""
    COMPLETION = "completion"
    """In its last claim that something is done, as it was lowered for want of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The attempts that stated a confidence in one range, in percent."""

    low: int
    high: int
    """Included."""
    attempts: Share
    """Those that succeeded."""
    checks: Share
    """The acceptance checks that Midwatch ran on them and that passed, each counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFigures:
    """One source's confidences against what came of them. Every attempt counts once."""

    source: Source
    attempts: int = 0
    error: float | None = None
    """The expected calibration error of what was stated, from 0 to 1; `None` of no attempt."""
    bins: tuple[Bin, ...] = ()
    """Those that hold an attempt, by rising confidence."""


@dataclass(slots=True)
class _Said:
    """What one attempt said last, and its checks by their newest result."""

    confidences: dict[Source, int] = field(default_factory=dict[Source, int])
    checks: dict[str, bool] = field(default_factory=dict[str, bool])


class Stated:
    """Follows stated confidence and acceptance checks."""

    def __init__(self) -> None:
        self._said: dict[int, _Said] = defaultdict(_Said)

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        if entry.attempt is None:
            return
        match entry.record:
            case Step(checkpoint=checkpoint) if checkpoint is not None:
                said = self._said[entry.attempt]
                said.confidences[Source.CHECKPOINT] = checkpoint.confidence
            case Completion(plan_step=number, confidence=confidence) if number:
                # That of the whole task is made of the checks themselves.
                self._said[entry.attempt].confidences[Source.COMPLETION] = confidence
            case Acceptance(check=check, passed=passed):
                checks = self._said[entry.attempt].checks
                if check in checks or len(checks) < _CHECKS:
                    checks[check] = passed
            case _:
                pass

    def figures(self, roster: Roster) -> tuple[StatedFigures, ...]:
        """How it stands, for each source. Attempts whose success nobody knows are left out."""
        ended = [
            (said, succeeded)
            for id, said in self._said.items()
            if (succeeded := roster.succeeded(id)) is not None
        ]
        return tuple(_figures(source, ended) for source in Source)


def _figures(source: Source, ended: list[tuple[_Said, bool]]) -> StatedFigures:
    found = [(said, ok) for said, ok in ended if source in said.confidences]
    bins: dict[int, list[tuple[_Said, bool]]] = defaultdict(list)
    for said, ok in found:
        bins[_place(said.confidences[source])].append((said, ok))
    predictions = [
        Prediction(
            stated=said.confidences[source],
            rate=said.confidences[source] / 100,
            succeeded=ok,
            weight=1.0,
        )
        for said, ok in found
    ]
    return StatedFigures(
        source=source,
        attempts=len(found),
        error=expected_error(predictions) if predictions else None,
        bins=tuple(_bin(place, bins[place]) for place in sorted(bins)),
    )


def _place(confidence: int) -> int:
    """The bin of a confidence: the same bins as those of the calibration error."""
    return max(0, min(confidence * BINS // 100, BINS - 1))


def _bin(place: int, held: list[tuple[_Said, bool]]) -> Bin:
    width = 100 // BINS
    checks = [passed for said, _ in held for passed in said.checks.values()]
    return Bin(
        low=place * width,
        high=100 if place == BINS - 1 else (place + 1) * width - 1,
        attempts=Share(hits=sum(ok for _, ok in held), of=len(held)),
        checks=Share(hits=sum(checks), of=len(checks)),
    )
