"""The rules over what a worker reports of itself, does not report, or says against the evidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MissedCheckpoint,
    Monologue,
    MultipleBlockers,
    StalledProgress,
    UnsupportedClaim,
)
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    Course,
    Event,
    Finding,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import Check, Facet
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Gauge, Seen


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
        moved = f"went from {first} % to {last} % in" if first != last else f"stuck at {last} % for"
        summary = f"progress {moved} {len(window)} checkpoints"
        return Verdict(value=last - first, summary=summary)

    def read(checkpoint: Checkpoint) -> int:
        return checkpoint.progress_percent

    rule, severity = "stalled_progress", settings.severity
    return WindowDetector(rule, severity, settings.window, read, look)


_REFLECT = "reflect"
"""The tool by which a worker reports."""

_KEY = AlertKey(rule="missed_checkpoint")


class MissedCheckpointDetector:
    """Counts model requests since the last checkpoint, where the worker could have given one."""

    __slots__ = (
        "_gauge",
        "_halves",
        "_interval",
        "_offered",
        "_parked",
        "_request",
        "_since",
    )
    hears = Facet.CHECKPOINT | Facet.CHANGE
    windowed = False

    def __init__(self, settings: MissedCheckpoint) -> None:
        self._gauge = Gauge(settings)
        self._interval = ReflectSettings().remind_every
        self._offered = False
        self._parked = False
        self._halves = 0
        self._request = 0
        self._since = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while too many intervals have passed, and a clear where it no longer stands."""
        if isinstance(event, Change):
            return self._change(event)
        if event.checkpoint is not None:
            self._offered = True
        if event.checkpoint is not None or event.tool == _REFLECT:  # a refused report is one, too
            self._count_from(event)
            return self._gauge.clear()
        request = event.request
        before, self._request = self._request, request
        if not self._offered or self._parked:
            return ()
        return self._count(event.number, request, new=request != before)

    @property
    def awake(self) -> bool:
        """Every request without a checkpoint counts, where one could have been given."""
        return self._offered

    def restart(self) -> None:
        """There is no window: only a checkpoint, or taking `reflect` away, ends the count."""

    def _change(self, change: Change) -> Sequence[Answer]:
        if change.lifecycle is not None:
            self._parked = change.lifecycle is Lifecycle.INPUT_REQUIRED
        if change.reflect is not None and change.reflect != self._offered:
            self._offered = change.reflect
            self._halves = 0
        if change.reflect_every is not None:
            self._interval = change.reflect_every
        return () if self._offered and self._interval else self._gauge.clear()

    def _count_from(self, step: Step) -> None:
        self._halves = 0
        self._request = step.request
        self._since = step.number

    def _count(self, step: int, request: int, *, new: bool) -> Sequence[Answer]:
        """One for each request, however many steps it has; half of one for a step of none known.

        The rest of the request that held the checkpoint is not counted.
        """
        self._halves += 2 * new if request else 1
        requests = self._halves // 2
        missed = requests // self._interval if self._interval else 0
        if self._gauge.rests(missed):
            return ()
        summary = f"no checkpoint in {requests} requests ({missed} reminder intervals)"
        return self._gauge.answer(_KEY, missed, summary, (self._since or 1, step))


class MonologueDetector:
    """Turn after turn without any act."""

    __slots__ = ("_count", "_first", "_gauge")
    hears = Facet.MESSAGE
    windowed = False
    _KEY = AlertKey(rule="monologue")

    def __init__(self, settings: Monologue) -> None:
        self._gauge = Gauge(settings)
        self._count = 0
        self._first = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while only words come; any call of a tool ends it, and so does an answer."""
        if not isinstance(event, Step):
            return () if event.lifecycle is None else self._end()
        number = event.number
        if event.kind is not StepKind.MESSAGE:
            return self._end()
        if not self._count:
            self._first = number
        self._count += 1
        if self._gauge.rests(self._count):
            return ()
        summary = f"{self._count} turns in a row without an act"
        return self._gauge.answer(self._KEY, self._count, summary, (self._first, number))

    def _end(self) -> Sequence[Answer]:
        self._count = 0
        return self._gauge.clear()

    @property
    def awake(self) -> bool:
        """Any act ends a monologue."""
        return self._count > 0

    def restart(self) -> None:
        """There is no window."""


class UnsupportedClaimDetector:
    """The worker says that the tests pass, and the last run of the tests failed."""

    __slots__ = ("_failed_at", "_severity", "_standing")
    hears = Facet.CHECK | Facet.CLAIM
    awake = False
    windowed = False
    _KEY = AlertKey(rule="unsupported_claim")

    def __init__(self, settings: UnsupportedClaim) -> None:
        self._severity = settings.severity
        self._failed_at = 0
        self._standing = False

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding at a claim against the last test run; a run that passes clears it."""
        act = seen.act
        failed_at = self._failed_at
        if act.check is not Check.NONE:
            self._failed_at = act.number if act.failed and act.check is Check.TESTS else 0
            if not self._failed_at:
                return self._clear()
        return self._find(failed_at, act.number) if failed_at and act.claims else ()

    def _find(self, failed_at: int, number: int) -> Sequence[Answer]:
        self._standing = True
        return (
            Finding(
                key=self._KEY,
                severity=self._severity,
                value=1,
                summary=f"says that the tests pass; they failed when last run, at step {failed_at}",
                evidence=(failed_at, number),
            ),
        )

    def _clear(self) -> Sequence[Answer]:
        standing, self._standing = self._standing, False
        return (Clear(key=self._KEY),) if standing else ()

    def restart(self) -> None:
        """There is no window."""
