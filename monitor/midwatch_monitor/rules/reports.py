"""The rules over what a worker reports of itself: single checkpoints, and windows of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MultipleBlockers,
    StalledProgress,
)
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    Course,
    Event,
    Finding,
    Severity,
)
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one look at checkpoints says; without a summary the condition does not hold."""

    value: float = 0.0
    summary: str = ""


_FINE = Verdict()

PointLook = Callable[[Checkpoint], Verdict]
Read = Callable[[Checkpoint], int]
WindowLook = Callable[[Sequence[int]], Verdict | None]
"""Answers `None` where there is too little to judge."""


class PointDetector:
    """Judges each checkpoint for itself. A restart of windows does not concern it."""

    __slots__ = ("_look", "_rule", "_severity")
    hears = Facet.CHECKPOINT
    awake = False
    windowed = False

    def __init__(self, rule: str, severity: Severity, look: PointLook) -> None:
        self._rule = rule
        self._severity = severity
        self._look = look

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding or a clear for each checkpoint, nothing for all else."""
        if isinstance(event, Change) or event.checkpoint is None:
            return ()
        verdict = self._look(event.checkpoint)
        return _answer(self._rule, self._severity, verdict, (event.number,))

    def restart(self) -> None:
        """There is no window."""


class WindowDetector:
    """Judges one number of the last checkpoints together, the first of them against the last."""

    __slots__ = ("_look", "_read", "_rule", "_seen", "_severity", "_window")
    hears = Facet.CHECKPOINT
    awake = False
    windowed = True

    def __init__(
        self, rule: str, severity: Severity, window: int, read: Read, look: WindowLook
    ) -> None:
        self._rule = rule
        self._severity = severity
        self._window = window
        self._read = read
        self._look = look
        self._seen: tuple[tuple[int, int], ...] = ()

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding or a clear once the window allows one. A pivot belongs to no window."""
        if isinstance(event, Change) or event.checkpoint is None:
            return ()
        if seen.fresh and event.checkpoint.decision is Course.PIVOT:
            return ()
        newest = (event.number, self._read(event.checkpoint))
        self._seen = (*self._seen, newest)[-self._window :]
        verdict = self._look([value for _, value in self._seen])
        if verdict is None:
            return ()
        steps = tuple(number for number, _ in self._seen)
        return _answer(self._rule, self._severity, verdict, steps)

    def restart(self) -> None:
        """Forget the checkpoints so far."""
        self._seen = ()


def _answer(
    rule: str, severity: Severity, verdict: Verdict, steps: tuple[int, ...]
) -> Sequence[Answer]:
    if not verdict.summary:
        return _cleared(rule)
    finding = Finding(
        key=AlertKey(rule=rule),
        severity=severity,
        value=verdict.value,
        summary=verdict.summary,
        evidence=steps,
    )
    return (finding,)


@lru_cache(maxsize=64)
def _cleared(rule: str) -> Sequence[Answer]:
    """What nearly every checkpoint is answered with: one for all attempts."""
    return (Clear(key=AlertKey(rule=rule)),)


def explicit_escalation(settings: ExplicitEscalation) -> Detector:
    """The worker asks for help, until a checkpoint no longer does."""

    def look(checkpoint: Checkpoint) -> Verdict:
        if checkpoint.decision is not Course.ESCALATE:
            return _FINE
        return Verdict(value=1.0, summary="the worker asks for help")

    return PointDetector("explicit_escalation", settings.severity, look)


def low_confidence(settings: LowConfidence) -> Detector:
    """The stated confidence is under the threshold, not at it."""

    def look(checkpoint: Checkpoint) -> Verdict:
        if checkpoint.confidence >= settings.below:
            return _FINE
        summary = f"stated confidence is {checkpoint.confidence} %, below {settings.below} %"
        return Verdict(value=checkpoint.confidence, summary=summary)

    return PointDetector("low_confidence", settings.severity, look)


def multiple_blockers(settings: MultipleBlockers) -> Detector:
    """One checkpoint names as many blockers as the threshold, or more."""

    def look(checkpoint: Checkpoint) -> Verdict:
        count = len(checkpoint.blockers)
        if count < settings.count:
            return _FINE
        return Verdict(value=count, summary=f"{count} blockers in one checkpoint")

    return PointDetector("multiple_blockers", settings.severity, look)


def declining_confidence(settings: DecliningConfidence) -> Detector:
    """The stated confidence fell over a full window by the threshold, or more, and does not rise.

    Where the last checkpoint is more confident than the one before it, the fall is over: of 80, 28
    and 60 the last two say that the worker found its way again.
    """

    def look(window: Sequence[int]) -> Verdict | None:
        if len(window) < settings.window:
            return None
        first, last = window[0], window[-1]
        if first - last < settings.drop or last > window[-2]:
            return _FINE
        summary = f"stated confidence fell from {first} % to {last} % in {len(window)} checkpoints"
        return Verdict(value=first - last, summary=summary)

    def read(checkpoint: Checkpoint) -> int:
        return checkpoint.confidence

    rule, severity = "declining_confidence", settings.severity
    return WindowDetector(rule, severity, settings.window, read, look)


def stalled_progress(settings: StalledProgress) -> Detector:
    """The stated progress gained too little over a full window. At 100 nothing is left to gain."""

    def look(window: Sequence[int]) -> Verdict | None:
        first, last = window[0], window[-1]
        if last >= 100 or (len(window) > 1 and last - first >= settings.min_gain):
            return _FINE
        if len(window) < settings.window:
            return None
        summary = f"stated progress went from {first} % to {last} % in {len(window)} checkpoints"
        return Verdict(value=last - first, summary=summary)

    def read(checkpoint: Checkpoint) -> int:
        return checkpoint.progress_percent

    rule, severity = "stalled_progress", settings.severity
    return WindowDetector(rule, severity, settings.window, read, look)
