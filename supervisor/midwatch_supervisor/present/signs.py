"""A sign for each state, so that nothing is told by colour alone."""

from collections.abc import Mapping

from midwatch_monitor.records import Health, Lifecycle, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_status import AttemptStatus

HEALTH_SIGNS: Mapping[Health, str] = {
    Health.OK: "●",
    Health.SUSPECT: "▲",
    Health.STUCK: "■",
    Health.UNKNOWN: "?",
    Health.NOTICE: "·",
    Health.NOT_JUDGED: "○",
}
"""A shape for each health, so that no colour is needed."""

SEVERITY_SIGNS: Mapping[Severity, str] = {
    Severity.NOTICE: "·",
    Severity.WARNING: "▲",
    Severity.CRITICAL: "■",
}

LIFECYCLE_SIGNS: Mapping[Lifecycle, str] = {
    Lifecycle.SUBMITTED: "…",
    Lifecycle.WORKING: "▶",
    Lifecycle.INPUT_REQUIRED: "?",
    Lifecycle.COMPLETED: "✓",
    Lifecycle.FAILED: "✗",
    Lifecycle.CANCELED: "⊘",
    Lifecycle.REJECTED: "⊘",
}

LOST_SIGN = "✗"
"""Of a node that is lost."""

SPLIT_SIGN = "÷"
"""Of an attempt that smaller tasks took over; it is over, and no failure."""

_STATUS_SIGNS: Mapping[AttemptStatus, str] = {
    AttemptStatus.PAUSED: "‖",
    AttemptStatus.SPLIT: SPLIT_SIGN,
    AttemptStatus.RESTARTED: "↻",
}


def status_text(status: AttemptStatus, *, accepted: bool | None) -> str:
    """Where a task stands, in a word, with what speaks against a completed one."""
    rejected = accepted is False and status is AttemptStatus.COMPLETED
    return f"{status} (result rejected)" if rejected else status.value


def standing_sign(state: AttemptState) -> str:
    """Where an attempt stands in one sign; one whose result was not accepted has no tick."""
    if state.rejected:
        return LIFECYCLE_SIGNS[Lifecycle.FAILED]
    return _STATUS_SIGNS.get(state.status, LIFECYCLE_SIGNS[state.lifecycle])
