"""What every detector is: events in, answers out, with state of its own and no clock."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from midwatch_monitor.words import AlertKey, Event, Finding, Movement, Resolution

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """The condition was looked at and does not hold, or can no longer be looked at."""

    key: AlertKey
    resolution: Resolution = Resolution.CLEARED
    """`RESTARTED` if the detector had to forget the subject; that is no recovery."""


Answer = Finding | Clear
"""What a detector says of one subject. A finding stands until it is cleared or restarted."""


class Moved(NamedTuple):
    """What moved at one event, and the files that took a content they never had."""

    kinds: frozenset[Movement] = frozenset()
    paths: tuple[str, ...] = ()


class Detector(Protocol):
    """One rule over one attempt: constant work and bounded memory for each event."""

    @property
    def windowed(self) -> bool:
        """Whether a new plan step, a pivot or a revision empties what it counts."""
        ...

    def observe(self, event: Event, moved: Moved) -> Sequence[Answer]:
        """The answers that this event gives; a subject without an answer stays as it was."""
        ...

    def restart(self) -> None:
        """Empty the window; the alerts are resolved by the caller."""
        ...


def remember(memory: dict[K, V], key: K, value: V, limit: int) -> K | None:
    """Put a key at the young end of a dict; answers the oldest key if it had to go."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) <= limit:
        return None
    oldest = next(iter(memory))
    del memory[oldest]
    return oldest
