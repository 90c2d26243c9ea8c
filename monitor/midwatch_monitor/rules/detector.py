"""What every detector is: events in, answers out, with state of its own and no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from midwatch_monitor.records import AlertKey, Event, Finding, Movement, Resolution
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.contents import Touch
from midwatch_monitor.rules.repeats import NO_ECHO, Echo


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
    touches: tuple[Touch, ...] = ()
    """What the worker's edits did to each file."""

    @property
    def back(self) -> bool:
        """Whether one of them put a file back to a content that it had before."""
        return bool(self.touches) and any(touch.back for touch in self.touches)


UNMOVED = Moved()


class Seen(NamedTuple):
    """What all detectors are told of an event beside the event itself, found out once."""

    act: Act
    moved: Moved = UNMOVED
    echo: Echo = NO_ECHO
    place: int = 0
    """Which step of work it is, or the last one was: from 1, without gaps."""
    changes: int = 0
    """How many steps of work changed files so far."""
    fresh: bool = False
    """Whether the windows begin anew with this event."""


class Detector(Protocol):
    """One rule over one attempt: constant work and bounded memory for each event."""

    @property
    def hears(self) -> int:
        """The facets of events that it is fed."""
        ...

    @property
    def awake(self) -> bool:
        """Whether it must be fed the next event, whatever that is."""
        ...

    @property
    def windowed(self) -> bool:
        """Whether a new plan step, a pivot or a revision empties what it counts."""
        ...

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """The answers that this event gives; a subject without an answer stays as it was."""
        ...

    def restart(self) -> None:
        """Empty the window; the alerts are resolved by the caller."""
        ...
