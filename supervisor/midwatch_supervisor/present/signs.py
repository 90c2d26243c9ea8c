"""A sign for each state, so that nothing is told by colour alone."""

from collections.abc import Mapping

from midwatch_monitor.records import Health, Lifecycle, Severity

HEALTH_SIGNS: Mapping[Health, str] = {
    Health.OK: "●",
    Health.NOTICE: "·",
    Health.SUSPECT: "▲",
    Health.STUCK: "■",
    Health.UNKNOWN: "?",
    Health.NOT_JUDGED: "-",
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
