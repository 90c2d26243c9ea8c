"""How far a model's stated confidence can be trusted, judged by its results so far. Pure.

For people and for the supervisor to read; the rules compare the confidence as reported. Confidences
are in percent; rates and errors are from 0 to 1. A model's attempts are fitted by isotonic
regression: the success rate may only rise with the stated confidence, and nothing else is assumed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from midwatch_monitor.metrics.statistics import Interval, area_under_curve
from midwatch_monitor.records import Ending, Origin
from midwatch_monitor.state.attempt import AttemptState

MIN_ATTEMPTS = 5
"""With fewer finished attempts, a model is not calibrated."""

PRIOR_ATTEMPTS = 5.0
"""Number of attempts at the model's overall success rate that are mixed into each level.

A level based on five attempts counts half, and a single lucky attempt has little effect.
"""

BINS = 10
"""Number of bins, of equal width, for the calibration error: the usual choice."""

_DUST = 1e-9
"""Largest rounding error that subtracting a task may leave in a weight; real weights are larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A finished attempt: its stated confidences, and whether it succeeded."""

    attempt: int
    task: str
    """Name of its task; the same task in another run adds little information."""
    model: str
    confidences: tuple[int, ...]
    """Confidences of its checkpoints, in percent; at least one."""
    succeeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A range of stated confidence with one success rate."""

    low: int
    high: int
    """Inclusive."""
    rate: float
    weight: float
    """Weight in attempts; an attempt that reported in several ranges is spread over them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The success rate of a model as a function of its stated confidence; it never decreases."""

    attempts: int
    """Number of attempts that it was fitted to."""
    levels: tuple[Level, ...]

    def rate(self, confidence: int) -> float:
        """Return the success rate at a stated confidence.

        Between two levels it is interpolated linearly; outside of them it is that of the nearest
        level.
        """
        before = self.levels[0]
        for level in self.levels:
            if confidence < level.low and level is not before:
                share = (confidence - before.high) / (level.low - before.high)
                return before.rate + share * (level.rate - before.rate)
            if confidence <= level.high:
                return level.rate
            before = level
        return before.rate

    def percent(self, confidence: int) -> int:
        """Return the success rate at a stated confidence, in whole percent."""
        return round(100 * self.rate(confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """Whether a model states more confidence in attempts that succeed than in those that fail."""

    area: float
    """How often a successful attempt has more confidence than a failed one; 0.5 is chance."""
    interval: Interval

    def worthless(self, useful: float) -> bool:
        """Return whether the confidence is worthless: it may be chance, and cannot be useful.

        That it may be chance is not enough: with few attempts, it always may be.
        """
        return self.interval.low <= 0.5 and self.interval.high < useful


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """What is known about one model. Without a calibration there were too few attempts."""

    model: str
    attempts: int
    succeeded: int
    tasks: int
    checkpoints: int
    calibration: Calibration | None = None
    error_before: float | None = None
    """The expected calibration error of the stated confidence."""
    error_after: float | None = None
    """The same for the calibrated confidence, each task judged by a curve fitted without it.

    `None` also if all attempts are of one task.
    """
    separation: Separation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A stated confidence, the success rate that follows from it, and the attempt's success."""

    stated: int
    """Stated confidence in percent."""
    rate: float
    succeeded: bool
    weight: float = 1.0
    """Weight in attempts."""


@dataclass(slots=True, kw_only=True)
class _Tally:
    """Weights of a set of attempts, and of the successful ones, by stated confidence.

    Every checkpoint counts, because the question is asked at every point of an attempt. The weights
    of an attempt's checkpoints add up to one; otherwise attempts with many checkpoints would
    dominate.
    """

    attempts: int = 0
    succeeded: int = 0
    said: dict[int, float] = field(default_factory=lambda: defaultdict[int, float](float))
    won: dict[int, float] = field(default_factory=lambda: defaultdict[int, float](float))

    def add(self, samples: Iterable[Sample], sign: int = 1) -> None:
        """Add samples, or remove them with a sign of -1."""
        for sample in samples:
            self.attempts += sign
            self.succeeded += sign * sample.succeeded
            weight = sign / len(sample.confidences)
            for confidence in sample.confidences:
                self.said[confidence] += weight
                self.won[confidence] += weight * sample.succeeded


def success(ending: Ending | None, *, accepted: bool | None = None) -> bool | None:
    """Return whether an attempt that is over succeeded, or `None` if that is unknown.

    A person's verdict takes precedence over how it ended. A canceled or unchecked attempt proves
    nothing.
    """
    if accepted is not None:
        return accepted
    if ending in (None, Ending.CANCELED, Ending.UNCHECKED):
        return None
    return ending is Ending.DONE


def success_of(attempt: AttemptState) -> bool | None:
    """Return whether an attempt succeeded; `None` if it is not over, or if that is unknown."""
    if not attempt.transition.lifecycle.over:
        return None
    verdict = attempt.verdict
    if verdict is not None and verdict.origin is Origin.EXPLICIT:
        return verdict.accepted
    return success(attempt.transition.ending)


def calibrate(samples: Sequence[Sample]) -> Calibration | None:
    """Return the calibration of one model, or `None` for fewer than `MIN_ATTEMPTS` attempts."""
    if len(samples) < MIN_ATTEMPTS:
        return None
    tally = _Tally()
    tally.add(samples)
    return _calibration_from(tally)


def separation(samples: Sequence[Sample]) -> Separation | None:
    """Return how well one model's confidence separates success from failure; `None` without both.

    An attempt counts with its mean confidence. Attempts at the same task add little information, so
    the interval counts the tasks.
    """
    parts = [[each for each in samples if each.succeeded is ok] for ok in (True, False)]
    successes, failures = ([fmean(each.confidences) for each in part] for part in parts)
    one, other = (len({each.task for each in part}) for part in parts)
    found = area_under_curve(successes, failures, of=(one, other))
    return None if found is None else Separation(area=found[0], interval=found[1])


def track_records(samples: Iterable[Sample]) -> tuple[TrackRecord, ...]:
    """Return what is known about each model, in the order of their names."""
    models: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        models[sample.model].append(sample)
    return tuple(_track_record(model, models[model]) for model in sorted(models))


def expected_error(predictions: Iterable[Prediction]) -> float:
    """Return the expected calibration error: the mean distance of rates from results.

    It is taken over `BINS` bins of equal width, each with its weight, and needs at least one
    prediction.

    The bins are those of the stated confidence, even for calibrated rates, so that the errors
    before and after calibration use the same bins. Also, a curve fitted without an attempt is lower
    if that attempt succeeded: binning by its rates would separate successes from failures, and make
    a good calibration look bad.
    """
    weights, gaps = [0.0] * BINS, [0.0] * BINS
    for each in predictions:
        weights[bin_of(each.stated)] += each.weight
        gaps[bin_of(each.stated)] += each.weight * (each.rate - each.succeeded)
    return sum(map(abs, gaps)) / sum(weights)


def bin_of(confidence: int) -> int:
    """Return the index of the bin of a stated confidence."""
    return max(0, min(confidence * BINS // 100, BINS - 1))


def _track_record(model: str, samples: Sequence[Sample]) -> TrackRecord:
    calibration = calibrate(samples)
    return TrackRecord(
        model=model,
        attempts=len(samples),
        succeeded=sum(sample.succeeded for sample in samples),
        tasks=len({sample.task for sample in samples}),
        checkpoints=sum(len(sample.confidences) for sample in samples),
        calibration=calibration,
        error_before=expected_error(_predictions(samples, lambda stated: stated / 100))
        if calibration
        else None,
        error_after=_held_out_error(samples) if calibration else None,
        separation=separation(samples),
    )


def _held_out_error(samples: Sequence[Sample]) -> float | None:
    tasks: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        tasks[sample.task].append(sample)
    if len(tasks) < 2:
        return None
    others = _Tally()
    others.add(samples)
    predictions: list[Prediction] = []
    for held_out in tasks.values():
        others.add(held_out, -1)
        predictions += _predictions(held_out, _calibration_from(others).rate)
        others.add(held_out)
    return expected_error(predictions)


def _predictions(samples: Iterable[Sample], rate: Callable[[int], float]) -> list[Prediction]:
    return [
        Prediction(
            stated=confidence,
            rate=rate(confidence),
            succeeded=sample.succeeded,
            weight=1 / len(sample.confidences),
        )
        for sample in samples
        for confidence in sample.confidences
    ]


def _calibration_from(tally: _Tally) -> Calibration:
    # The rule of succession: five successes out of five do not make a sixth certain.
    usual = (tally.succeeded + 1) / (tally.attempts + 2)
    observed = _merge_violators(
        Level(low=said, high=said, rate=tally.won[said] / weight, weight=weight)
        for said, weight in sorted(tally.said.items())
        if weight > _DUST
    )
    # A thin level moves further toward the usual rate than its neighbours, and may pass them.
    return Calibration(
        attempts=tally.attempts,
        levels=tuple(_merge_violators(_shrink(level, usual) for level in observed)),
    )


def _merge_violators(levels: Iterable[Level]) -> list[Level]:
    """Return the levels with neighbours merged until rates only rise: pool adjacent violators."""
    pooled: list[Level] = []
    for level in levels:
        merged = level
        while pooled and pooled[-1].rate >= merged.rate:
            merged = _merge_levels(pooled.pop(), merged)
        pooled.append(merged)
    return pooled


def _merge_levels(lower: Level, higher: Level) -> Level:
    weight = lower.weight + higher.weight
    rate = (lower.rate * lower.weight + higher.rate * higher.weight) / weight
    return Level(low=lower.low, high=higher.high, rate=rate, weight=weight)


def _shrink(level: Level, usual: float) -> Level:
    """Return the level with its rate moved toward the usual rate."""
    weight = level.weight + PRIOR_ATTEMPTS
    rate = (level.rate * level.weight + usual * PRIOR_ATTEMPTS) / weight
    return Level(low=level.low, high=level.high, rate=rate, weight=weight)
