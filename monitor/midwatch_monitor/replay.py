"""Today's rules over recorded runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.judge import Judge
from midwatch_monitor.traces import AUTO, Damage, find_traces, open_trace
from midwatch_monitor.words import Alert, Change, Event, Fault, Judgement, Severity, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """An alert that fires, or whose severity rises."""

    type: Literal["alert"] = "alert"
    trace: str
    step: int
    rule: str
    subject: str
    severity: Severity
    value: int | float
    summary: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One whole trace."""

    type: Literal["trace"] = "trace"
    trace: str
    steps: int
    alerts: int
    """How many times an alert fired; a severity that rises is no further alert."""
    first_alarm_step: int | None
    """The first step with an alert of severity warning or critical."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageLine:
    """A line of a trace that was skipped, and why."""

    type: Literal["damage"] = "damage"
    trace: str
    line: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLine:
    """A rule that broke over a trace, and was off for the rest of it."""

    type: Literal["fault"] = "fault"
    trace: str
    rule: str
    error: str


ReplayLine = AlertLine | TraceLine | DamageLine | FaultLine


def replay(
    path: Path, settings: Settings, *, format: str = AUTO, worker: str = ""
) -> Iterator[ReplayLine]:
    """What the rules say of a trace, or of every known trace below a folder, as it is read.

    Raises TraceError at once for a named file in no known format, and pydantic's ValidationError
    where the settings of the worker are wrong.
    """
    if path.is_dir():
        return _folder(path, settings, format, worker)
    return _trace(path, open_trace(path, format), Replay(settings, worker=worker))


class Replay:
    """The rules over one trace, and the count of what they said."""

    def __init__(self, settings: Settings, *, worker: str = "") -> None:
        self._judge = Judge(settings.rules, worker=worker)
        self._judge.observe(Change(reflect_every=settings.reflect.remind_every))
        self._fired: set[tuple[str, str]] = set()
        self._steps = 0
        self._alerts = 0
        self._first_alarm: int | None = None

    def observe(self, event: Event) -> tuple[tuple[Alert, ...], tuple[Fault, ...]]:
        """The alerts that fire or rise at this event, and the rules that broke."""
        if isinstance(event, Step):
            self._steps += 1
        judgement = self._judge.observe(event)
        loud = tuple(self._loud(judgement))
        if self._first_alarm is None and any(alert.severity.alarm for alert in loud):
            self._first_alarm = loud[0].step
        return loud, judgement.faults

    def sum(self, trace: str) -> TraceLine:
        """The trace as a whole."""
        return TraceLine(
            trace=trace,
            steps=self._steps,
            alerts=self._alerts,
            first_alarm_step=self._first_alarm,
        )

    def _loud(self, judgement: Judgement) -> Iterator[Alert]:
        for alert in judgement.alerts:
            key = (alert.key.rule, alert.key.subject)
            if not alert.firing:
                self._fired.discard(key)
                continue
            if key not in self._fired:
                self._fired.add(key)
                self._alerts += 1
            yield alert


def _folder(folder: Path, settings: Settings, format: str, worker: str) -> Iterator[ReplayLine]:
    for path in find_traces(folder, format):
        yield from _trace(path, open_trace(path, format), Replay(settings, worker=worker))


def _trace(path: Path, events: Iterator[Event | Damage], run: Replay) -> Iterator[ReplayLine]:
    trace = str(path)
    for event in events:
        if isinstance(event, Damage):
            yield DamageLine(trace=trace, line=event.line, problem=event.problem)
            continue
        alerts, faults = run.observe(event)
        for alert in alerts:
            yield _alert_line(trace, alert)
        for fault in faults:
            yield FaultLine(trace=trace, rule=fault.part, error=fault.error)
    yield run.sum(trace)


def _alert_line(trace: str, alert: Alert) -> AlertLine:
    return AlertLine(
        trace=trace,
        step=alert.step,
        rule=alert.key.rule,
        subject=alert.key.subject,
        severity=alert.severity,
        value=int(alert.value) if alert.value == int(alert.value) else alert.value,
        summary=alert.summary,
        evidence=alert.evidence,
    )
