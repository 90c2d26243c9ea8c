"""Judgements of the monitor: findings, alerts, health."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Severity(StrEnum):
    """How much an alert matters. A notice is recorded, but is not an alarm."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """From 0 for a notice to 2 for a critical alert: strings do not sort by severity."""
        return _RANKS[self]

    @property
    def alarm(self) -> bool:
        """Whether it opens an escalation."""
        return self is not Severity.NOTICE


_RANKS = {Severity.NOTICE: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class Health(StrEnum):
    """The monitor's judgement of an attempt, independent of its lifecycle."""

    OK = "ok"
    NOTICE = "notice"
    """Only notices fire: worth a look, but no alarm."""
    SUSPECT = "suspect"
    STUCK = "stuck"
    UNKNOWN = "unknown"
    """Silent for too long, or its node or its model's provider is gone."""
    NOT_JUDGED = "not judged"
    """No rule judges it."""


class AlertState(StrEnum):
    """The states of an alert."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """Why an alert no longer fires. Only `CLEARED` can count as a recovery."""

    CLEARED = "cleared"
    """The condition was checked, and no longer holds."""
    RESTARTED = "restarted"
    """Its window was emptied by a new plan step, a pivot or a revision of the plan."""
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
    """A rule's statement that its condition holds for an attempt at one step."""

    key: AlertKey
    severity: Severity
    value: float
    summary: str
    evidence: tuple[int, ...] = ()
    """Numbers of the steps that are its evidence."""


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
        """Whether it fires."""
        return self.state is AlertState.FIRING


class Movement(StrEnum):
    """Observed evidence that the work is moving; a worker's own claim is not evidence."""

    CHECK_PASSED = "check-passed"
    """A command that failed before succeeds."""
    CHECK_BROKEN = "check-broken"
    """A command that succeeded before fails: a move for the worse."""
    NEW_FAILURE = "new-failure"
    """A command fails in a way not seen before."""
    FEWER_FAILURES = "fewer-failures"
    """A command fails in fewer places than it ever did."""
    NEW_CONTENT = "new-content"
    """A file has content that it never had before."""
    PLAN_STEP = "plan-step"
    """A plan step was finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A part of the monitoring that failed; it is switched off for the attempt, and reported."""

    part: str
    """The name of the broken rule, or a part such as `observer` or `supervisor`."""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A message that was sent to people; it is not sent to that target again."""

    target: str
    """Name of the target in the configuration."""
    keys: tuple[str, ...]
    """What the message was about, as far as it concerns this record's run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of judging one event."""

    alerts: tuple[Alert, ...] = ()
    """Alerts that changed state or severity at this event."""
    movements: frozenset[Movement] = field(default_factory=lambda: frozenset[Movement]())
    """Movements at this event."""
    moved_paths: tuple[str, ...] = ()
    """Files with content that they never had before."""
    faults: tuple[Fault, ...] = ()
    """Rules that broke at this event; they are switched off from now on."""
