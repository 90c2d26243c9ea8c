"""What the monitor makes of what it sees: findings, alerts, health."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Severity(StrEnum):
    """How much an alert matters. A notice is kept, but it is no alarm."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for a notice, 2 for a critical one: strings do not sort by weight."""
        return _RANKS[self]

    @property
    def alarm(self) -> bool:
        """Whether it opens an escalation."""
        return self is not Severity.NOTICE


_RANKS = {Severity.NOTICE: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class Health(StrEnum):
    """How an attempt fares; a separate axis from its lifecycle."""

    OK = "ok"
    NOTICE = "notice"
    """Only notices fire: worth a look, and no alarm."""
    SUSPECT = "suspect"
    STUCK = "stuck"
    UNKNOWN = "unknown"
    """Silent beyond its limit, or its node or its model's provider is gone."""
    NOT_JUDGED = "not judged"
    """No rule looks at it."""


class AlertState(StrEnum):
    """The life of an alert."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """Why an alert no longer fires. Only `CLEARED` can count as a recovery."""

    CLEARED = "cleared"
    """The condition was looked at and no longer holds."""
    RESTARTED = "restarted"
    """Its window was emptied: a new plan step, a pivot, a revision."""
    ENDED = "ended"
    """The attempt is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertKey:
    """The identity of an alert within an attempt."""

    rule: str
    subject: str = ""
    """The file, action or failure that it is about; empty for the attempt as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of an attempt at one step: its condition holds."""

    key: AlertKey
    severity: Severity
    value: float
    summary: str
    evidence: tuple[int, ...] = ()
    """Step numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A finding over time."""

    key: AlertKey
    severity: Severity
    state: AlertState
    value: float
    summary: str
    evidence: tuple[int, ...] = ()
    since_step: int
    """The step at which the condition began to hold."""
    step: int
    """The step of the last change of state or severity."""
    since_at: datetime | None = None
    at: datetime | None = None
    resolution: Resolution | None = None

    @property
    def firing(self) -> bool:
        """Whether it counts now."""
        return self.state is AlertState.FIRING


class Movement(StrEnum):
    """Observed evidence that the work moves; a worker's word is none."""

    CHECK_PASSED = "check-passed"
    """A command that failed before succeeds."""
    CHECK_BROKEN = "check-broken"
    """A command that succeeded before fails. A movement, but for the worse."""
    NEW_FAILURE = "new-failure"
    """A command fails in a way not seen before."""
    FEWER_FAILURES = "fewer-failures"
    """A command fails in fewer places than it ever did."""
    NEW_CONTENT = "new-content"
    """A file has a content that it never had before."""
    PLAN_STEP = "plan-step"
    """A plan step was finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A part of the watch itself that failed: it is switched off for the attempt, and shown."""

    part: str
    """For a broken rule its name; otherwise `observer`, `supervisor` …"""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A message to people has gone out: nobody says the same to that target again."""

    target: str
    """Its name in the configuration."""
    keys: tuple[str, ...]
    """What the message was about, as far as it is of the run that this is recorded in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the rules made of one event."""

    alerts: tuple[Alert, ...] = ()
    """Those that changed state or severity at this event."""
    movements: frozenset[Movement] = field(default_factory=lambda: frozenset[Movement]())
    """What moved at this event."""
    moved_paths: tuple[str, ...] = ()
    """The files that took a content they never had."""
    faults: tuple[Fault, ...] = ()
    """Rules that broke at this event; they are off from now on."""
