"""Targets that messages about a run do not reach, by the run's journal. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from midwatch_monitor.records import Entry, Fault, Notified

_PART = "message to "


def fault_part(target: str) -> str:
    """Return the part that a fault names if a target cannot be reached."""
    return f"{_PART}{target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreachableTarget:
    """A target whose last message about a run failed."""

    type: Literal["target"] = "target"
    run: int
    target: str
    since: datetime
    error: str


def unreachable_targets(run: int, told: Iterable[Entry]) -> Collection[UnreachableTarget]:
    """Return the unreachable targets of a run, from its faults and sent messages."""
    found: dict[str, UnreachableTarget] = {}
    for entry in told:
        match entry.record:
            case Notified(target=name):
                found.pop(name, None)
            case Fault(part=part, error=error) if part.startswith(_PART):
                name = part.removeprefix(_PART)
                failed = UnreachableTarget(run=run, target=name, since=entry.at, error=error)
                found.setdefault(name, failed)
            case _:
                pass
    return found.values()
