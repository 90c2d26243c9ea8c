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
"""Most items that wait for one listener; beyond that, the oldest are dropped."""


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
        """Queue items in order, dropping the oldest if there is no room."""
        if self.closed or not items:
            return
        self.dropped += max(0, len(self._waiting) + len(items) - self._capacity)
        self._waiting.extend(items)
        self._news.set()

    async def wait(self, seconds: float | None = None) -> list[T]:
        """Return all waiting items, or wait for the next; empty after `seconds` or once closed."""
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
        """Accept nothing more, and wake the waiting listener."""
        self.closed = True
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Subscription(Mailbox[Hint]):
    """One subscriber's queue of hints."""


class Audience:
    """The subscribers to all hints, and those to the hints of one attempt.

    With a thousand attempts in a process, none must be woken by the hints of the others.
    """

    def __init__(self) -> None:
        self._boxes: dict[int | None, list[Subscription]] = {}

    def __len__(self) -> int:
        """Return how many attempts, and `None` for all, had a subscriber at the last `listen`."""
        return len(self._boxes)

    def listen(self, attempt: int | None = None, *, capacity: int = CAPACITY) -> Subscription:
        """Return a new queue of all hints, or of those about one attempt or about none."""
        box = Subscription(capacity)
        open_ = {of: [b for b in boxes if not b.closed] for of, boxes in self._boxes.items()}
        self._boxes = {of: boxes for of, boxes in open_.items() if boxes}
        self._boxes.setdefault(attempt, []).append(box)
        return box

    def offer(self, hints: Collection[Hint]) -> None:
        """Pass hints on, in order, to the subscribers that they concern."""
        for box in self._boxes.get(None, ()):
            box.offer(hints)
        if len(self._boxes) == (None in self._boxes):
            return  # nobody listens for a single attempt
        for hint in hints:
            for box in self._subscriptions_of(hint.attempt):
                box.offer((hint,))

    def _subscriptions_of(self, attempt: int | None) -> list[Subscription]:
        if attempt is not None:
            return self._boxes.get(attempt, [])
        return [box for of, boxes in self._boxes.items() if of is not None for box in boxes]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGone:
    """The broker's report that one start of a node has left, or no longer answers.

    It is only a hint: the node's heartbeats in the journal show whether it is alive.
    """

    name: str
    boot: str


class Departures(Mailbox[NodeGone]):
    """A queue of nodes that have gone, including those from before the connection to the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusCounters:
    """Numbers of hints published since the bus was opened, by what happened to them."""

    sent: int = 0
    """Acknowledged by the broker."""
    waiting: int = 0
    """Not acknowledged yet."""
    dropped: int = 0
    """Never sent, because too many were waiting."""
    connected: bool = False


class Bus(Protocol):
    """A carrier of hints."""

    def publish(self, hint: Hint) -> None:
        """Pass a hint to every subscriber. Never blocks and never raises."""
        ...

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """Return a new queue that gets every hint from now on, until it is closed.

        With an attempt, it gets only the hints about that attempt or about none.
        """
        ...


class FleetBus(Bus, AbstractAsyncContextManager["FleetBus"], Protocol):
    """A bus that is opened and closed, and that may carry more than hints."""

    @property
    def counters(self) -> BusCounters:
        """Numbers of hints that went through it."""
        ...

    def claims(self) -> Subscription:
        """Return a new queue of the hints that the broker gave only to this process in its group.

        Like all other hints, they also reach every subscriber.
        """
        ...

    def departures(self) -> Departures:
        """Return a new queue of the nodes that the broker reports gone."""
        ...

    def announce(self, status: NodeStatus) -> None:
        """Announce the status of this node to everybody. Never blocks and never raises."""
        ...


class LocalBus:
    """The bus within one process."""

    counters = BusCounters()
    """All zero: nothing is sent anywhere."""

    def __init__(self) -> None:
        self._audience = Audience()

    def publish(self, hint: Hint) -> None:
        """Pass a hint to every subscriber."""
        self._audience.offer((hint,))

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """Return a new queue that gets every hint, or those of one attempt, until it is closed."""
        return self._audience.listen(attempt)

    def claims(self) -> Subscription:
        """Return a queue that stays empty: without a broker nobody hands out turns."""
        return Subscription()

    def departures(self) -> Departures:
        """Return a queue that stays empty: without a broker only the journal shows who is gone."""
        return Departures()

    def announce(self, status: NodeStatus) -> None:
        """Do nothing: nobody listens."""

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
    """Return the bus of a process: over the configured broker, or within the process."""
    if not settings.broker.url:
        return LocalBus()
    from midwatch_monitor.bus.mqtt import MqttBus  # slow to import

    return MqttBus(
        settings, name=name, status=status, environ=environ, share=share, session=session
    )
