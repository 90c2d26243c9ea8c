"""The rules over what a worker reports of itself: single checkpoints, and windows of them."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MultipleBlockers,
    StalledProgress,
)
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Moved
from midwatch_monitor.words import (
    AlertKey,
    Change,
    Checkpoint,
    Course,
    Event,
    Finding,
    Severity,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one look at checkpoints says; without a summary the condition does not hold."""

    value: float = 0.0
    summary: str = ""


_FINE = Verdict()

PointLook = Callable[[Checkpoint], Verdict]
WindowLook = Callable[[Sequence[Checkpoint]], Verdict | None]
"""Answers `None` where there is too little to judge."""


class PointDetector:
    """Judges each checkpoint for itself. A restart of windows does not concern it."""

    windowed = False

    def __init__(self, rule: str, severity: Severity, look: PointLook) -> None:
        self._key = AlertKey(rule=rule)
        self._severity = severity
        self._look = look

    def observe(self, event: Event, moved: Moved) -> Sequence[Answer]:
        """A finding or a clear for each checkpoint, nothing for all else."""
        if isinstance(event, Change) or event.checkpoint is None:
            return ()
        verdict = self._look(event.checkpoint)
        return (_answer(self._key, self._severity, verdict, (event.number,)),)

    def restart(self) -> None:
        """There is no window."""


class WindowDetector:
    """Judges the last checkpoints together, the first of them against the last."""

    windowed = True

    def __init__(self, rule: str, severity: Severity, window: int, look: WindowLook) -> None:
        self._key = AlertKey(rule=rule)
        self._severity = severity
        self._look = look
        self._seen = deque[tuple[int, Checkpoint]](maxlen=window)

    def observe(self, event: Event, moved: Moved) -> Sequence[Answer]:
        """A finding or a clear once the window allows one. A pivot belongs to no window."""
        if isinstance(event, Change) or event.checkpoint is None:
            return ()
        if event.checkpoint.decision is Course.PIVOT:
            return ()
        self._seen.append((event.number, event.checkpoint))
        verdict = self._look([checkpoint for _, checkpoint in self._seen])
        if verdict is None:
            return ()
        steps = tuple(number for number, _ in self._seen)
        return (_answer(self._key, self._severity, verdict, steps),)

    def restart(self) -> None:
        """Forget the checkpoints so far."""
        self._seen.clear()


def _answer(key: AlertKey, severity: Severity, verdict: Verdict, steps: tuple[int, ...]) -> Answer:
    if not verdict.summary:
        return Clear(key=key)
    return Finding(
        key=key,
        severity=severity,
        value=verdict.value,
        summary=verdict.summary,
        evidence=steps,
    )


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
    """The stated confidence fell over a full window by the threshold, or more."""

    def look(window: Sequence[Checkpoint]) -> Verdict | None:
        if len(window) < settings.window:
            return None
        first, last = window[0].confidence, window[-1].confidence
        if first - last < settings.drop:
            return _FINE
        summary = f"stated confidence fell from {first} % to {last} % in {len(window)} checkpoints"
        return Verdict(value=first - last, summary=summary)

    return WindowDetector("declining_confidence", settings.severity, settings.window, look)


def stalled_progress(settings: StalledProgress) -> Detector:
    """The stated progress gained too little over a full window. At 100 nothing is left to gain."""

    def look(window: Sequence[Checkpoint]) -> Verdict | None:
        first, last = window[0].progress_percent, window[-1].progress_percent
        if last >= 100 or (len(window) > 1 and last - first >= settings.min_gain):
            return _FINE
        if len(window) < settings.window:
            return None
        summary = f"stated progress went from {first} % to {last} % in {len(window)} checkpoints"
        return Verdict(value=last - first, summary=summary)

    return WindowDetector("stalled_progress", settings.severity, settings.window, look)
