"""When an attempt's alerts become a question for the supervisor. Pure; steps are the clock."""

from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.records import Alert, AlertKey, Severity

REPORTING = frozenset({"missed_checkpoint", "low_confidence", "declining_confidence"})
"""Rules about how a worker reports. What is wrong with its work is always more urgent."""


def about_reporting(keys: Iterable[AlertKey]) -> bool:
    """Whether alerts are about reporting only, and none is about the work."""
    return all(key.rule in REPORTING for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """What keeps an attempt from being escalated again at once."""

    open: bool = False
    """An escalation of the attempt is open or waits for its outcome."""
    parked: bool = False
    """A person has been asked, or the attempt is over."""
    closed_at_step: int | None = None
    """The attempt's step at which its last escalation was closed."""
    raised: int = 0
    """How many escalations the attempt has had."""

    def may_ask(self, *, step: int, cooldown: int, cap: int) -> bool:
        """Whether an escalation may be opened now.

        `cooldown` counts steps since the last one was closed. One above `cap` is still opened, so
        that the policy can hand the attempt to a person; then there are no more.
        """
        if self.open or self.parked or self.raised > cap:
            return False
        return self.closed_at_step is None or step - self.closed_at_step >= cooldown


def audible(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """The firing alarms, worst first, without the warnings that a critical one explains.

    A warning that began after a critical alert fired follows from it; one that began before is a
    matter of its own. Those about reporting are heard only where none is about the work.
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
    """The alarms that began to fire since an escalation was opened, and belong to it now."""
    known = set(asked)
    return tuple(alert.key for alert in audible(alerts) if alert.key not in known)
