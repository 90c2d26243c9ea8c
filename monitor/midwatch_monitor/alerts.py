"""How findings become alerts, and how alerts end. Pure: the time is an argument."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Finding,
    Health,
    Resolution,
    Severity,
)

if TYPE_CHECKING:  # importing `health` alone must not load pydantic
    from midwatch_monitor.config.rules import RuleSettings
    from midwatch_monitor.config.section import Length

_RECENT = 30
"""Steps after a notice's last evidence during which it can still confirm another notice."""
_HIGHER = {
    Severity.NOTICE: Severity.WARNING,
    Severity.WARNING: Severity.CRITICAL,
    Severity.CRITICAL: Severity.CRITICAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The moment of a judgement: the attempt's last step, and the time if it is known."""

    step: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The newest finding of a condition that holds, and the moment when it began to hold."""

    finding: Finding
    since: Moment


def advance(settings: "RuleSettings", before: Alert | None, holding: Holding, now: Moment) -> Alert:
    """Return the alert of a condition that holds: pending, firing, or resolved and in its cooldown.

    The severity of a firing alert only rises; a new value alone changes neither `step` nor `at`.
    """
    if before is not None and before.firing:
        return _update_alert(before, holding.finding, now)
    if before is not None and _is_at_rest(settings, before, now):
        return before
    held = _is_over(settings.hold, holding.since, now)
    state = AlertState.FIRING if held else AlertState.PENDING
    finding = holding.finding
    same = before is not None and (before.state, before.severity) == (state, finding.severity)
    return Alert(
        key=finding.key,
        severity=finding.severity,
        state=state,
        value=finding.value,
        summary=finding.summary,
        evidence=finding.evidence,
        since_step=holding.since.step,
        step=before.step if same and before else now.step,
        since_at=holding.since.at,
        at=before.at if same and before else now.at,
    )


def resolve(before: Alert, resolution: Resolution, now: Moment) -> Alert | None:
    """Return the alert as resolved, or `None` for a pending one, which is dropped.

    At the end of an attempt a pending alert is resolved too, so that nothing stays open.
    """
    if before.state is AlertState.RESOLVED:
        return before
    if before.state is AlertState.PENDING and resolution is not Resolution.ENDED:
        return None
    return replace(
        before, state=AlertState.RESOLVED, resolution=resolution, step=now.step, at=now.at
    )


def raise_agreeing(
    firing: Collection[Alert],
    raised: Collection[AlertKey],
    evidence: Mapping[str, object],
    now: Moment,
) -> list[Alert]:
    """Return the firing alerts that others raise by one level; each alert is raised only once.

    An alert is raised if an alert of another rule has a higher severity. If none is raised this
    way, and at least two recent notices rest on different evidence, the newest of these is raised.
    """
    # A raised alert raises no other: otherwise two notices would make each other warnings.
    own = [alert for alert in firing if alert.key not in raised]
    lower = [alert for alert in firing if any(_ranks_above(other, alert) for other in own)]
    return [
        replace(alert, severity=_HIGHER[alert.severity], step=now.step, at=now.at)
        for alert in lower or _notices_to_raise(firing, evidence, now)
        if alert.key not in raised
    ]


def _ranks_above(one: Alert, other: Alert) -> bool:
    return one.key.rule != other.key.rule and one.severity.rank > other.severity.rank


def health(firing: Collection[Alert]) -> Health:
    """Return the health of an attempt with these firing alerts.

    It is `UNKNOWN` if all alarms are warnings of silence, which does not show how the work goes.
    """
    alarms = [alert for alert in firing if alert.severity.alarm]
    if not alarms:
        return Health.NOTICE if firing else Health.OK
    if any(alert.severity is Severity.CRITICAL for alert in alarms):
        return Health.STUCK
    silent = all(alert.key.rule == "silence" for alert in alarms)
    return Health.UNKNOWN if silent else Health.SUSPECT


def _notices_to_raise(
    firing: Collection[Alert], evidence: Mapping[str, object], now: Moment
) -> list[Alert]:
    notices = [
        alert
        for alert in firing
        if alert.severity is Severity.NOTICE and now.step - _last_seen(alert) <= _RECENT
    ]
    if len({evidence[alert.key.rule] for alert in notices}) < 2:
        return []
    return [max(notices, key=lambda alert: alert.step)]


def _last_seen(alert: Alert) -> int:
    """Return the last step that is evidence for an alert, which may fire long after that step."""
    return max((alert.step, *alert.evidence[-1:]))


def _update_alert(before: Alert, finding: Finding, now: Moment) -> Alert:
    rises = finding.severity.rank > before.severity.rank
    return replace(
        before,
        severity=finding.severity if rises else before.severity,
        value=finding.value,
        summary=finding.summary,
        evidence=finding.evidence,
        step=now.step if rises else before.step,
        at=now.at if rises else before.at,
    )


def _is_at_rest(settings: "RuleSettings", before: Alert, now: Moment) -> bool:
    return before.state is AlertState.RESOLVED and not is_cooled_down(settings, before, now)


def is_cooled_down(settings: "RuleSettings", resolved: Alert, now: Moment) -> bool:
    """Return whether the cooldown of a resolved alert is over."""
    return _is_over(settings.cooldown, Moment(step=resolved.step, at=resolved.at), now)


def _is_over(length: "Length", since: Moment, now: Moment) -> bool:
    return length.over(steps=now.step - since.step, since=since.at, now=now.at)
