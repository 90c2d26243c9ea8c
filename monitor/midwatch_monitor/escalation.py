"""When the alerts of an attempt are escalated to the supervisor. Pure."""

from collections.abc import Iterable

from midwatch_monitor.records import Alert, AlertKey, Severity

REPORTING = frozenset({"missed_checkpoint", "low_confidence", "declining_confidence"})
"""Rules about how a worker reports. Alerts about its work take precedence over these."""


def about_reporting(keys: Iterable[AlertKey]) -> bool:
    """Return whether all alerts are about reporting, and none about the work."""
    return all(key.rule in REPORTING for key in keys)


def audible(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return the firing alarms, worst first, without warnings that a critical alert explains.

    A warning that began after a critical alert fired is its consequence; one that began before is a
    separate problem. Alarms about reporting are returned only if none is about the work.
    """
    firing = [alert for alert in alerts if alert.firing and alert.severity.alarm]
    alarms = [alert for alert in firing if alert.key.rule not in REPORTING] or firing
    first = min(
        (alert.step for alert in alarms if alert.severity is Severity.CRITICAL), default=None
    )
    heard = [
        alert
        for alert in alarms
        if first is None or alert.severity is Severity.CRITICAL or alert.since_step < first
    ]
    return tuple(sorted(heard, key=lambda alert: (-alert.severity.rank, alert.step)))


def alerts_to_join(alerts: Iterable[Alert], asked: Iterable[AlertKey]) -> tuple[AlertKey, ...]:
    """Return the alarms that began to fire after an escalation was opened, and must join it."""
    known = set(asked)
    return tuple(alert.key for alert in audible(alerts) if alert.key not in known)
