"""What a fleet that has something to do needs, and has not: nodes, a monitor. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import NodeState, NodeStatus

GONE = frozenset({NodeState.DOWN, NodeState.LOST})
"""How a node stands that does nothing more."""


def missing_lines(
    nodes: Iterable[NodeStatus], monitors: Iterable[MonitorStatus], now: datetime
) -> Iterator[str]:
    """All that is missing, a line each."""
    if all(each.state in GONE for each in nodes):
        yield "no node is up: nothing goes on until one is; `midwatch node` starts one"
    absent = monitor_absent(monitors, now)
    if absent:
        yield absent


def monitor_absent(monitors: Iterable[MonitorStatus], now: datetime) -> str:
    """That nobody watches, in words; empty where a monitor is at work."""
    known = sorted(monitors, key=lambda each: each.until)
    if any(each.lives(now) for each in known):
        return ""
    last = f" ({known[-1].name} was, until {rounded(now - known[-1].until)} ago)" if known else ""
    return (
        f"no monitor is at work{last}: nobody escalates, decides or learns until one is; "
        "`midwatch monitor` starts one"
    )


def rounded(time: timedelta) -> str:
    """A time in seconds, minutes or hours, as exactly as a reader wants it."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
