"""The rule about time: nothing is heard from an attempt, or nothing moves."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from midwatch_monitor.config.rules import Silence
from midwatch_monitor.config.section import Length
from midwatch_monitor.records import (
    Activity,
    AlertKey,
    Change,
    Event,
    Finding,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.detector import Clear, Moved, RuleAnswer

SILENT = AlertKey(rule="silence")
UNMOVED = AlertKey(rule="silence", subject="no movement")

_WORDS = {
    Activity.MODEL: "waiting for the model",
    Activity.COMMAND: "a command is running",
    Activity.RATE_LIMITED: "rate-limited by the provider",
    Activity.IDLE: "nothing is known to be running",
}


class SilenceDetector:
    """Measures how long nothing was heard, with limits by activity, and how long nothing moved.

    It is given the time, since no event reports silence. A parked attempt is never silent, and
    events without a time are not judged.
    """

    __slots__ = ("_activity", "_heard_at", "_moved_at", "_settings", "_step", "_waits")

    def __init__(self, settings: Silence) -> None:
        self._settings = settings
        self._activity: Activity | None = None
        self._waits = False
        self._heard_at: datetime | None = None
        self._moved_at: datetime | None = None
        self._step = 0

    def observe(self, event: Event, moved: Moved) -> None:
        """Take in a sign of life, and note whether something moved."""
        anew = self._waits or self._moved_at is None
        limited = self._activity is Activity.RATE_LIMITED
        if isinstance(event, Step):
            self._step = event.number
            # If no source reports activity, a turn without a call means waiting for a person.
            if self._activity is None:
                self._waits = event.kind is StepKind.MESSAGE
        else:
            self._apply_change(event.lifecycle, event.activity)
            anew = anew or begins(event)
        if event.at is None:
            return
        # Another pause by the provider is not a sign of work.
        if not (limited and isinstance(event, Change) and event.activity is Activity.RATE_LIMITED):
            self._heard_at = event.at
        if moved.kinds or anew:
            self._moved_at = event.at

    def _apply_change(self, lifecycle: Lifecycle | None, activity: Activity | None) -> None:
        if activity is not None:
            self._activity = activity
            self._waits = activity is Activity.WAITING
        if lifecycle is not None:
            self._waits = lifecycle is Lifecycle.INPUT_REQUIRED

    @property
    def due(self) -> datetime | None:
        """When the next threshold is reached if nothing is heard until then."""
        if self._waits:
            return None
        ends = [end for key in (SILENT, UNMOVED) if (end := self.since(key))]
        return min(ends, default=None)

    def since(self, key: AlertKey) -> datetime | None:
        """Return when a subject starts to hold if nothing changes; `None` for never."""
        silent = key == SILENT
        began = self._heard_at if silent else self._moved_at
        limit = self._silence_limit() if silent else self._settings.unmoved
        if not began or not limit.seconds:
            return None
        try:
            return began + timedelta(seconds=limit.seconds)
        except OverflowError:  # a journal may hold any time
            return None

    @property
    def heard_at(self) -> datetime | None:
        """The last sign of life."""
        return self._heard_at

    def look(self, now: datetime) -> Sequence[RuleAnswer]:
        """Return the answers about both subjects now."""
        return (self._check_silence(now), self._check_checkpoint(now))

    def _check_silence(self, now: datetime) -> RuleAnswer:
        seconds = _seconds_since(self._heard_at, now)
        if self._waits or not _reached(self._silence_limit(), seconds):
            return Clear(key=SILENT)
        doing = _WORDS.get(self._activity or Activity.IDLE, "")
        summary = f"nothing heard for {_minutes(seconds)}; {doing}"
        return self._make_finding(SILENT, self._settings.severity, seconds, summary)

    def _check_checkpoint(self, now: datetime) -> RuleAnswer:
        seconds = _seconds_since(self._moved_at, now)
        if self._waits or not _reached(self._settings.unmoved, seconds):
            return Clear(key=UNMOVED)
        summary = f"nothing moved for {_minutes(seconds)} although it is working"
        return self._make_finding(UNMOVED, Severity.NOTICE, seconds, summary)

    def _silence_limit(self) -> Length:
        match self._activity:
            case Activity.MODEL:
                return self._settings.model
            case Activity.RATE_LIMITED:
                return self._settings.rate_limited
            case Activity.IDLE:
                return self._settings.idle
            case _:  # a command, or a source that does not say
                return self._settings.command

    def _make_finding(
        self, key: AlertKey, severity: Severity, value: float, summary: str
    ) -> Finding:
        evidence = (self._step,) if self._step else ()
        return Finding(
            key=key, severity=severity, value=round(value), summary=summary, evidence=evidence
        )


def begins(event: Event) -> bool:
    """Whether an attempt starts or resumes here, with nobody working on it before."""
    return isinstance(event, Change) and event.lifecycle is Lifecycle.WORKING


def _seconds_since(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else (now - since).total_seconds()


def _reached(limit: Length, seconds: float) -> bool:
    return bool(limit.seconds) and seconds >= (limit.seconds or 0)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
