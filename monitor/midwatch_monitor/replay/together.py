"""Recorded runs replayed as they went, side by side."""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

from midwatch_monitor.concurrent_attempts import Neighbours
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Event
from midwatch_monitor.replay.replay import Changes, Replay, ReplayLine, alert_line, lines
from midwatch_monitor.traces import AUTO, Damage, find_traces, open_trace

MAX_TRACES = 500
"""Traces that may be open at the same time."""
_PROJECT = "replayed"
_START = datetime.min.replace(tzinfo=UTC)
_END = datetime.max.replace(tzinfo=UTC)

Dated = tuple[datetime, int, Event | Damage | None]
"""When, of which trace, what; `None` is its end."""


def replay_together(
    paths: Sequence[Path], settings: Settings, *, format: str = AUTO, worker: str = ""
) -> Iterator[ReplayLine]:
    """What the rules say of traces of one project, in the order of their times.

    A line without a time keeps its place after the one before, and a trace without any is over
    last, for it may have gone on beside all the others. Raises TraceError for a named file
    in no known format, and for more traces than may be open.
    """
    found = [each for path in paths for each in _traces(path, format)]
    if len(found) > MAX_TRACES:
        raise TraceError(f"{len(found)} traces at a time are too many: at most {MAX_TRACES}")
    with ExitStack() as stack:
        events = [stack.enter_context(closing(open_trace(path, format))) for path in found]
        runs = [Replay(settings, worker=worker) for _ in found]
        streams = [_dated(number, each) for number, each in enumerate(events)]
        names = [str(path) for path in found]
        yield from _merged(heapq.merge(*streams, key=lambda each: each[:2]), runs, names, settings)


def _traces(path: Path, format: str) -> Sequence[Path]:
    return list(find_traces(path, format)) if path.is_dir() else [path]


def _dated(number: int, events: Iterator[Event | Damage]) -> Iterator[Dated]:
    now = _START
    for event in events:
        at = None if isinstance(event, Damage) else event.at
        now = max(now, at) if at is not None else now
        yield now, number, event
    yield _END if now == _START else now, number, None


def _merged(
    events: Iterator[Dated], runs: Sequence[Replay], names: Sequence[str], settings: Settings
) -> Iterator[ReplayLine]:
    neighbours = Neighbours(settings.rules.workspace_conflict)
    for number, name in enumerate(names):
        neighbours.join(number, _PROJECT, f"trace {Path(name).stem}")
    for at, number, event in events:
        now = None if at in (_START, _END) else at
        if event is None:
            concerned = neighbours.end(number)
            yield runs[number].sum(names[number])
        else:
            yield from _told(number, runs, names, neighbours, now)
            yield from lines(names[number], runs[number], event)
            concerned = () if isinstance(event, Damage) else neighbours.observe(number, event)
        for each in sorted(concerned):
            yield from _told(each, runs, names, neighbours, now)


def _told(
    number: int,
    runs: Sequence[Replay],
    names: Sequence[str],
    neighbours: Neighbours,
    now: datetime | None,
) -> Iterator[ReplayLine]:
    """What is to be said of one of the attempts by what the others do."""
    for alert in runs[number].take(now, _of(neighbours, number)):
        yield alert_line(names[number], alert)


def _of(neighbours: Neighbours, number: int) -> Changes:
    return lambda now, alerts: neighbours.look(number, alerts, now)
