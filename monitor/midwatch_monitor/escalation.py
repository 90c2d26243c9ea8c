"""When the alerts of an attempt are escalated to the supervisor. Pure; time is counted in steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.records import Alert, AlertKey, Severity

REPORTING = frozenset({"missed_checkpoint", "low_confidence", "declining_confidence"})
"""Rules about how a worker reports. Alerts about its work take precedence over these."""


def about_reporting(keys: Iterable[AlertKey]) -> bool:
    """Return whether all alerts are about reporting, and none about the work."""
    return all(key.rule in REPORTING for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationLimits:
    """Conditions that keep an attempt from being escalated again."""

    open: bool = False
    """An escalation of the attempt is open or waits for its outcome."""
    parked: bool = False
    """A person has been asked, or the attempt is over or about to end."""
    closed_at_step: int | None = None
    """The attempt's step at which its last escalation was closed."""
    raised: int = 0
    """Number of escalations that the attempt has had."""

    def may_ask(self, *, step: int, cooldown: int, cap: int) -> bool:
        """Return whether an escalation may be opened now.

        `cooldown` is the number of steps since the last one was closed. One more than `cap` may be
        opened, so that the policy can hand the attempt to a person.
        """
        if self.open or self.parked or self.raised > cap:
            return False
        return self.closed_at_step is None or step - self.closed_at_step >= cooldown


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
