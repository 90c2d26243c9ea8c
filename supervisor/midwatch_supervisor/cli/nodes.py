"""`midwatch nodes`: the nodes of a fleet."""

from collections.abc import Sequence
from datetime import timedelta

from midwatch_monitor.words import NodeState, NodeStatus
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption

_GONE = frozenset({NodeState.DOWN, NodeState.LOST})


async def nodes(*, journal: JournalOption = None, json: JsonOption = False) -> None:
    """List the nodes of a fleet: what each does, offers and has in hand."""
    from midwatch_monitor.journal.nodes import Nodes

    async with await journal_to_read(journal) as opened:
        known = Nodes(opened)
        found, now, held = await known.all(), await known.now(), await known.in_hand()
    for status in found:
        attempts = [] if status.state in _GONE else held.get(status.holder, [])
        if json:
            write_json(_fields(status, attempts))
        else:
            write_line(_text(status, attempts, silent=now - status.beat_at))
    if not (found or json):
        write_line("no node has been here yet: `midwatch node` starts one")


def _fields(status: NodeStatus, attempts: Sequence[int]) -> dict[str, object]:
    return {
        "type": "node",
        "name": status.name,
        "boot": status.boot,
        "state": status.state.value,
        "doubted": status.doubted_at is not None,
        "slots": status.slots,
        "busy": status.busy,
        "labels": list(status.labels),
        "version": status.version,
        "started_at": status.started_at.isoformat(),
        "beat_at": status.beat_at.isoformat(),
        "attempts": list(attempts),
    }


def _text(status: NodeStatus, attempts: Sequence[int], *, silent: timedelta) -> str:
    words = [f"{status.name}: {status.state}", f"{status.busy} of {slots_words(status.slots)}"]
    if status.labels:
        words.append(f"labels {', '.join(status.labels)}")
    if attempts:
        words.append(f"attempts {', '.join(map(str, attempts))}")
    if status.doubted_at is not None and status.state not in _GONE:
        words.append("the broker says that it is gone")
    return f"{', '.join(words)}, version {status.version}, heard {_ago(silent)}"


def slots_words(slots: int) -> str:
    """How many slots, in words."""
    return "1 slot" if slots == 1 else f"{slots} slots"


def _ago(silent: timedelta) -> str:
    seconds = max(0, int(silent.total_seconds()))
    if seconds < 120:
        return f"{seconds} s ago"
    return f"{seconds // 60} min ago" if seconds < 7200 else f"{seconds // 3600} h ago"
