"""What the monitor says of an attempt besides its alerts, as records. Pure."""

from dataclasses import replace
from datetime import datetime

from midwatch_monitor.alerts import Moment, resolve
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Delivery,
    DeliveryState,
    Escalation,
    EscalationState,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Resolution,
    TaskTransition,
)
from midwatch_monitor.rules import DETECTORS
from midwatch_monitor.watched_attempt import WatchedAttempt


def judged_split(view: WatchedAttempt, end: TaskTransition | None) -> tuple[OutcomeReport, ...]:
    """A split is judged by what became of the whole task."""
    if view.split is None or end is None:
        return ()
    done = end.lifecycle is Lifecycle.COMPLETED
    return (
        OutcomeReport(
            intervention=view.split,
            outcome=Outcome.RECOVERED if done else Outcome.NO_EFFECT,
            step=view.state.last_step,
            reason=f"the task is {end.lifecycle}: {end.reason}",
        ),
    )


def closed(escalation: Escalation, reason: str) -> Escalation:
    """The escalation is over."""
    return replace(escalation, state=EscalationState.CLOSED, reason=reason)


def joined(escalation: Escalation, more: tuple[AlertKey, ...]) -> Escalation:
    """It is about more alerts."""
    return replace(escalation, alerts=(*escalation.alerts, *more))


def taken(view: WatchedAttempt, intervention: int) -> Delivery:
    """What a person said of alerts has arrived."""
    return Delivery(
        intervention=intervention, state=DeliveryState.DELIVERED, step=view.state.last_step
    )


def expired(view: WatchedAttempt) -> list[Delivery]:
    """What was said to an attempt that ended first."""
    return [
        Delivery(intervention=each.id, state=DeliveryState.EXPIRED, step=view.state.last_step)
        for each in view.state.interventions.under_way
    ]


def ended(view: WatchedAttempt, at: datetime) -> tuple[Alert, ...]:
    """What is still open of the alerts that the recorder knows nothing of."""
    now = Moment(step=view.state.last_step, at=at)
    resolved = [resolve(alert, Resolution.ENDED, now) for alert in still_open(view)]
    return tuple(alert for alert in resolved if alert is not None)


def still_open(view: WatchedAttempt) -> list[Alert]:
    """The alerts that the recorder does not end."""
    return [
        alert
        for key, alert in view.state.alerts.items()
        if key.rule not in DETECTORS and alert.state is not AlertState.RESOLVED
    ]
