"""Applies the current rules to recorded runs, one by one or together in order of time."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from midwatch_monitor.alerts import Moment
from midwatch_monitor.concurrent_attempts import ConcurrentAttempts
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import TraceError
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Alert, AlertKey, Change, Event, Fault, Severity, Step
from midwatch_monitor.rules import Moved
from midwatch_monitor.rules.overrides import for_worker
from midwatch_monitor.silence import SilenceAlerts, begins
from midwatch_monitor.traces import AUTO, Damage, find_traces, open_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """An alert that starts firing or rises in severity."""

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
    type: Literal["trace"] = "trace"
    trace: str
    steps: int
    alerts: int
    """How many times an alert fired; a rise in severity does not count."""
    first_alarm_step: int | None
    """The first step with an alert of severity warning or critical."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageLine:
    """A skipped line of a trace, and the reason."""

    type: Literal["damage"] = "damage"
    trace: str
    line: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultLine:
    """A rule that failed on a trace and was off for the rest of it."""

    type: Literal["fault"] = "fault"
    trace: str
    rule: str
    error: str


ReplayLine = AlertLine | TraceLine | DamageLine | FaultLine


Changes = Callable[[Moment, Mapping[AlertKey, Alert]], tuple[Alert, ...]]
"""Returns changes of alerts that no single event of a run decides."""


def replay(
    path: Path, settings: Settings, *, format: str = AUTO, worker: str = ""
) -> Iterator[ReplayLine]:
    """Yield what the rules say about a trace, or every known trace below a folder, while reading.

    Raises TraceError at once for a named file in no known format, and pydantic's ValidationError if
    the worker's settings are wrong.
    """
    if path.is_dir():
        return _replay_folder(path, settings, format, worker)
    return _replay_trace(path, open_trace(path, format), Replay(settings, worker=worker))


class Replay:
    """Applies the rules to one trace and counts their alerts."""

    def __init__(self, settings: Settings, *, worker: str = "") -> None:
        self._judge = Judge(settings.rules, worker=worker)
        self._vigil = SilenceAlerts(for_worker(settings.rules, worker))
        self._timely: dict[AlertKey, Alert] = {}
        self._judge.observe(Change(reflect_every=settings.reflect.remind_every))
        self._fired: set[tuple[str, str]] = set()
        self._steps = 0
        self._last = 0
        self._alerts = 0
        self._first_alarm: int | None = None

    def observe(self, event: Event) -> tuple[tuple[Alert, ...], tuple[Fault, ...]]:
        """Return the alerts that fire or rise with this event, and the rules that failed."""
        # Time before an attempt begins or resumes is not judged: nothing was working then.
        late = () if begins(event) else self._alerts_by_time(event.at)
        if isinstance(event, Change) and event.lifecycle is not None and event.lifecycle.over:
            return self._count_firing(late), ()
        if isinstance(event, Step):
            self._steps += 1
            self._last = event.number
        judgement = self._judge.observe(event)
        moved = Moved(kinds=judgement.movements, paths=judgement.moved_paths)
        self._vigil.observe(event, moved)
        heard = self._alerts_by_time(event.at)
        return self._count_firing((*late, *judgement.alerts, *heard)), judgement.faults

    def look(self, at: datetime | None) -> tuple[Alert, ...]:
        """Return the alerts that fire or rise because nothing has happened until now."""
        return self._count_firing(self._alerts_by_time(at))

    def take(self, at: datetime | None, changes: Changes) -> tuple[Alert, ...]:
        """Return the alerts that fire or rise because of observations outside this run."""
        return self._count_firing(self._remember_timely(at, changes))

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that are firing now."""
        apart = (alert for alert in self._timely.values() if alert.firing)
        return (*self._judge.firing, *apart)

    def sum(self, trace: str) -> TraceLine:
        return TraceLine(
            trace=trace,
            steps=self._steps,
            alerts=self._alerts,
            first_alarm_step=self._first_alarm,
        )

    def _alerts_by_time(self, at: datetime | None) -> tuple[Alert, ...]:
        """Return the changes that only time shows, as the monitor would have seen them."""
        return () if at is None else self._remember_timely(at, self._vigil.look)

    def _remember_timely(self, at: datetime | None, changes: Changes) -> tuple[Alert, ...]:
        found = changes(Moment(step=self._last, at=at), self._timely)
        self._timely.update({alert.key: alert for alert in found})
        return found

    def _count_firing(self, alerts: Iterable[Alert]) -> tuple[Alert, ...]:
        loud: list[Alert] = []
        for alert in alerts:
            key = (alert.key.rule, alert.key.subject)
            if not alert.firing:
                self._fired.discard(key)
                continue
            if key not in self._fired:
                self._fired.add(key)
                self._alerts += 1
            loud.append(alert)
        if self._first_alarm is None:
            self._first_alarm = next((each.step for each in loud if each.severity.alarm), None)
        return tuple(loud)


def _replay_folder(
    folder: Path, settings: Settings, format: str, worker: str
) -> Iterator[ReplayLine]:
    for path in find_traces(folder, format):
        yield from _replay_trace(path, open_trace(path, format), Replay(settings, worker=worker))


def _replay_trace(
    path: Path, events: Iterator[Event | Damage], run: Replay
) -> Iterator[ReplayLine]:
    trace = str(path)
    for event in events:
        yield from lines(trace, run, event)
    yield run.sum(trace)


def lines(trace: str, run: Replay, event: Event | Damage) -> Iterator[ReplayLine]:
    """Yield the lines for one event of a trace."""
    if isinstance(event, Damage):
        yield DamageLine(trace=trace, line=event.line, problem=event.problem)
        return
    alerts, faults = run.observe(event)
    yield from alert_lines(trace, alerts)
    yield from (FaultLine(trace=trace, rule=each.part, error=each.error) for each in faults)


def alert_lines(trace: str, alerts: Iterable[Alert]) -> Iterator[AlertLine]:
    for alert in alerts:
        yield AlertLine(
            trace=trace,
            step=alert.step,
            rule=alert.key.rule,
            subject=alert.key.subject,
            severity=alert.severity,
            value=int(alert.value) if alert.value % 1 == 0 else alert.value,
            summary=alert.summary,
            evidence=alert.evidence,
        )


MAX_TRACES = 500
"""Number of traces that may be open at the same time."""
_PROJECT = "replayed"
_START = datetime.min.replace(tzinfo=UTC)
_END = datetime.max.replace(tzinfo=UTC)

Dated = tuple[datetime, int, Event | Damage | None]
"""A time, a trace's index, and its event; `None` is the trace's end."""


def replay_together(
    paths: Sequence[Path], settings: Settings, *, format: str = AUTO, worker: str = ""
) -> Iterator[ReplayLine]:
    """Yield what the rules say about traces of one project, in order of time.

    A line without a time stays directly after the previous one, and a trace without any times ends
    last, since it may have overlapped all the others. Raises TraceError for a named file in no
    known format, and for more traces than may be open.
    """
    found = [each for path in paths for each in _list_traces(path, format)]
    if len(found) > MAX_TRACES:
        raise TraceError(f"too many traces at once: {len(found)}, at most {MAX_TRACES}")
    with ExitStack() as stack:
        events = [stack.enter_context(closing(open_trace(path, format))) for path in found]
        runs = [Replay(settings, worker=worker) for _ in found]
        streams = [_date_events(number, each) for number, each in enumerate(events)]
        names = [str(path) for path in found]
        yield from _merge_runs(
            heapq.merge(*streams, key=lambda each: each[:2]), runs, names, settings
        )


def _list_traces(path: Path, format: str) -> Sequence[Path]:
    return list(find_traces(path, format)) if path.is_dir() else [path]


def _date_events(number: int, events: Iterator[Event | Damage]) -> Iterator[Dated]:
    now = _START
    for event in events:
        at = None if isinstance(event, Damage) else event.at
        now = max(now, at) if at is not None else now
        yield now, number, event
    yield _END if now == _START else now, number, None


def _merge_runs(
    events: Iterator[Dated], runs: Sequence[Replay], names: Sequence[str], settings: Settings
) -> Iterator[ReplayLine]:
    concurrent = ConcurrentAttempts(settings.rules.workspace_conflict)
    for number, name in enumerate(names):
        concurrent.join(number, _PROJECT, f"trace {Path(name).stem}")

    def conflicts(number: int, at: datetime | None) -> Iterator[AlertLine]:
        """Yield the alerts about one attempt's conflicts with the others."""
        found = runs[number].take(at, lambda now, alerts: concurrent.look(number, alerts, now))
        yield from alert_lines(names[number], found)

    for at, number, event in events:
        now = None if at in (_START, _END) else at
        if event is None:
            concerned = concurrent.end(number)
            yield runs[number].sum(names[number])
        else:
            yield from conflicts(number, now)
            yield from lines(names[number], runs[number], event)
            concerned = () if isinstance(event, Damage) else concurrent.observe(number, event)
        for each in sorted(concerned):
            yield from conflicts(each, now)
