"""The bus within one process, and the protocol that every bus follows."""

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.records import Hint, NodeStatus

T = TypeVar("T")

CAPACITY = 1_000
"""What waits for one listener; beyond that the oldest is dropped."""


class Mailbox(Generic[T]):
    """One listener's queue. Belongs to the thread of one event loop."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._waiting: deque[T] = deque(maxlen=capacity)
        self._capacity = capacity
        self._news = asyncio.Event()
        self.closed = False
        """Whether nothing more will come."""
        self.dropped: int = 0
        """Items that were lost because nobody took them in time."""

    def offer(self, items: Collection[T]) -> None:
        """Queue items in their order, in place of the oldest where there is no room."""
        if self.closed or not items:
            return
        self.dropped += max(0, len(self._waiting) + len(items) - self._capacity)
        self._waiting.extend(items)
        self._news.set()

    async def wait(self, seconds: float | None = None) -> list[T]:
        """All that is there, else the next one; empty after `seconds` or once closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return []
        items = list(self._waiting)
        self._waiting.clear()
        if not self.closed:
            self._news.clear()
        return items

    def close(self) -> None:
        """Take nothing more, and wake whoever waits."""
        self.closed = True
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Subscription(Mailbox[Hint]):
    """One subscriber's queue of hints."""


class Audience:
    """The subscribers of all hints, and those of the hints of one attempt.

    With a thousand attempts in a process, each must not be woken by what the others do.
    """

    def __init__(self) -> None:
        self._boxes: dict[int | None, list[Subscription]] = {}

    def __len__(self) -> int:
        """The attempts, and `None` for all, that somebody listened for at the last `listen`."""
        return len(self._boxes)

    def listen(self, attempt: int | None = None, *, capacity: int = CAPACITY) -> Subscription:
        """A new queue of all hints, or of those that are about one attempt or about none."""
        box = Subscription(capacity)
        open_ = {of: [b for b in boxes if not b.closed] for of, boxes in self._boxes.items()}
        self._boxes = {of: boxes for of, boxes in open_.items() if boxes}
        self._boxes.setdefault(attempt, []).append(box)
        return box

    def offer(self, hints: Collection[Hint]) -> None:
        """Pass hints on, in their order, to those whom they concern."""
        for box in self._boxes.get(None, ()):
            box.offer(hints)
        if len(self._boxes) == (None in self._boxes):
            return  # nobody listens for a single attempt
        for hint in hints:
            for box in self._of(hint.attempt):
                box.offer((hint,))

    def _of(self, attempt: int | None) -> list[Subscription]:
        if attempt is not None:
            return self._boxes.get(attempt, [])
        return [box for of, boxes in self._boxes.items() if of is not None for box in boxes]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGone:
    """The broker says that a start of a node has left, or no longer answers. Only a hint as well:
    its beats in the journal show whether it lives."""

    name: str
    boot: str


class Departures(Mailbox[NodeGone]):
    """Which nodes have gone, since the connection to the broker or before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusCounters:
    """What became of the hints that were published since a bus was opened, by their numbers."""

    sent: int = 0
    """Acknowledged by the broker."""
    waiting: int = 0
    """Not acknowledged yet."""
    dropped: int = 0
    """Never sent, because too many waited."""
    connected: bool = False


class Bus(Protocol):
    """Anything that carries hints."""

    def publish(self, hint: Hint) -> None:
        """Tell every subscriber. Never blocks and never raises."""
        ...

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """A new queue that gets every hint from now on, until it is closed.

        With an attempt, only those that are about it, or about none.
        """
        ...


class FleetBus(Bus, AbstractAsyncContextManager["FleetBus"], Protocol):
    """A bus that is opened and closed, and that may carry more than hints."""

    @property
    def counters(self) -> BusCounters:
        """What went through it."""
        ...

    def claims(self) -> Subscription:
        """A new queue of those hints that the broker gave to this process alone of its group.

        They come a second time, to everybody, like all others.
        """
        ...

    def departures(self) -> Departures:
        """A new queue of the nodes that the broker says have gone."""
        ...

    def say(self, status: NodeStatus) -> None:
        """What everybody shall know of this node. Never blocks and never raises."""
        ...


class LocalBus:
    """The bus within one process."""

    counters = BusCounters()
    """Nothing is sent anywhere."""

    def __init__(self) -> None:
        self._audience = Audience()

    def publish(self, hint: Hint) -> None:
        """Tell every subscriber, if there is any."""
        self._audience.offer((hint,))

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """A new queue that gets every hint, or those of one attempt, until it is closed."""
        return self._audience.listen(attempt)

    def claims(self) -> Subscription:
        """A queue that stays empty: without a broker nobody hands out turns."""
        return Subscription()

    def departures(self) -> Departures:
        """A queue that stays empty: without a broker only the journal tells who is gone."""
        return Departures()

    def say(self, status: NodeStatus) -> None:
        """Nobody listens."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


def bus_for(
    settings: FleetSettings,
    *,
    name: str,
    status: NodeStatus | None = None,
    environ: Mapping[str, str],
    share: str = "",
    session: bool = True,
) -> FleetBus:
    """The bus of a process: over the broker of the settings, else within the process."""
    if not settings.broker.url:
        return LocalBus()
    from midwatch_monitor.bus.mqtt import MqttBus  # dear, and only who has a broker needs it

    return MqttBus(
        settings, name=name, status=status, environ=environ, share=share, session=session
    )
