"""`midwatch nodes`: the nodes of a fleet, and the monitors that watch their work."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from midwatch_monitor.journal.fleet.nodes import HeldAttempt, MonitorStatus
from midwatch_monitor.records import NodeStatus, name_of
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_either, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.fleet.monitors.leases import EXPORTER, LEARNER, NOTIFIER
from midwatch_supervisor.present.json_lines import moment, pick_fields
from midwatch_supervisor.present.waiting import missing_lines, monitor_absent, round_time


async def nodes(*, journal: JournalOption = None, json: JsonOption = False) -> None:
    """List the nodes of all fleets, with their labels and attempts, and the monitors."""
    from midwatch_monitor.journal.core.engine import is_url
    from midwatch_monitor.journal.fleet.nodes import Nodes

    async with await journal_to_read(journal) as opened:
        known = Nodes(opened)
        found, now, held = await known.all(), await opened.now(), await known.in_hand()
        at_work = await known.named([id for ids in held.values() for id in ids])
        monitors = await known.monitors()
    several = len({each.fleet for each in found}) > 1
    for status in found:
        has, left = _in_hand(status, at_work.values())
        fields = _node_fields(status, has, left, now)
        text = _node_text(status, has, left, now, fleet=several)
        write_either(fields, text, json=json)
    for monitor in monitors:
        if monitor.lives(now):
            write_either(_monitor_fields(monitor), _monitor_text(monitor), json=json)
    if not json and (found or is_url(opened.name)):
        write_line(*missing_lines(found, monitors, now))
    elif not json:  # a node needs PostgreSQL; a monitor may be beside a `Watch`
        write_line(*filter(None, [monitor_absent(monitors, now)]))


def _in_hand(
    status: NodeStatus, at_work: Iterable[HeldAttempt]
) -> tuple[list[HeldAttempt], list[HeldAttempt]]:
    """Return the attempts that a node is working on, and those it left that nobody took over.

    The latter include attempts from an earlier start of the node.
    """
    mine = [each for each in at_work if each.holder == status.holder]
    others = [
        each
        for each in at_work
        if each.shared and each.holder != status.holder and name_of(each.holder) == status.name
    ]
    if status.state.gone:
        return [], sorted([*others, *mine], key=attrgetter("attempt"))
    return mine, others


def _node_fields(
    status: NodeStatus, has: Sequence[HeldAttempt], left: Sequence[HeldAttempt], now: datetime
) -> dict[str, object]:
    return {
        "type": "node",
        **pick_fields(status, "name boot fleet state"),
        "doubted": status.doubted_at is not None,
        **pick_fields(status, "slots busy labels version"),
        "started_at": moment(status.started_at),
        "beat_at": moment(status.beat_at),
        "silent_seconds": max(0.0, round((now - status.beat_at).total_seconds(), 1)),
        "attempts": [each.attempt for each in has],
        "left_behind": [each.attempt for each in left],
    }


def _node_text(
    status: NodeStatus,
    has: Sequence[HeldAttempt],
    left: Sequence[HeldAttempt],
    now: datetime,
    *,
    fleet: bool,
) -> str:
    silent, gone = now - status.beat_at, status.state.gone
    words = [f"{status.name}: {status.state}", *[f"fleet {status.fleet}"] * fleet]
    if not gone:
        words.append(f"{status.busy} of {slots_words(status.slots)}")
    if status.labels:
        words.append(f"labels {', '.join(status.labels)}")
    if has:
        each = (f"{one.name} ({one.attempt}) for {round_time(now - one.since)}" for one in has)
        words.append(f"has had {', '.join(each)}")
    if left:
        named = ", ".join(f"{one.name} ({one.attempt})" for one in left)
        words.append(f"left {named}, which no node has taken over yet")
    if status.doubted:
        words.append("the broker says that it is gone")
    return f"{', '.join(words)}, version {status.version}, last heard from {round_time(silent)} ago"


def _monitor_fields(monitor: MonitorStatus) -> dict[str, object]:
    fields = {"type": "monitor", "name": monitor.name, "until": moment(monitor.until)}
    return fields | pick_fields(monitor, "posts attempts")


def _monitor_text(monitor: MonitorStatus) -> str:
    many = len(monitor.attempts)
    words = [f"watches {many} attempt{'' if many == 1 else 's'}", *map(_duty_text, monitor.posts)]
    return f"monitor {monitor.name}: {', '.join(words)}"


_DUTIES = {LEARNER: "learns", NOTIFIER: "notifies people", EXPORTER: "sends telemetry"}


def _duty_text(post: str) -> str:
    what, _, fleet = post.partition(" ")
    if what == "dispatch":
        return f"hands out the tasks of fleet {fleet}"
    return _DUTIES.get(post, f"has the post {post}")  # a newer Midwatch may have more


def slots_words(slots: int) -> str:
    return "1 slot" if slots == 1 else f"{slots} slots"
