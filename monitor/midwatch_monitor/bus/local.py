"""The bus within one process, and the protocol that every bus follows."""

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

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
        self._closed = False
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """What was lost because nobody took it in time."""
        return self._dropped

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    def offer(self, item: T) -> None:
        """Queue something, in place of the oldest if there is no room."""
        if self._closed:
            return
        if len(self._waiting) == self._capacity:
            self._dropped += 1
        self._waiting.append(item)
        self._news.set()

    def offer_all(self, items: Collection[T]) -> None:
        """Queue several things in their order, in place of the oldest where there is no room."""
        if self._closed or not items:
            return
        self._dropped += max(0, len(self._waiting) + len(items) - self._capacity)
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
        if not self._closed:
            self._news.clear()
        return items

    def close(self) -> None:
        """Take nothing more, and wake whoever waits."""
        self._closed = True
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


class Listeners(Generic[T]):
    """Everybody who listens for the same thing."""

    def __init__(self) -> None:
        self._boxes: list[Mailbox[T]] = []

    def add(self, box: Mailbox[T]) -> None:
        """One more, until it is closed."""
        self._boxes = [*(each for each in self._boxes if not each.closed), box]

    @property
    def any(self) -> bool:
        """Whether anybody listens."""
        return any(not box.closed for box in self._boxes)

    def offer(self, item: T) -> None:
        """Tell all who have not closed."""
        for box in self._boxes:
            box.offer(item)

    def offer_all(self, items: Collection[T]) -> None:
        """Tell all who have not closed of several things."""
        for box in self._boxes:
            box.offer_all(items)


class Subscription(Mailbox[Hint]):
    """One subscriber's queue of hints. Belongs to the thread of one event loop."""


class Audience:
    """Everybody who listens for hints: for all of them, or for those of one attempt.

    With a thousand attempts in a process, each must not be woken by what the others do.
    """

    def __init__(self) -> None:
        self._all: Listeners[Hint] = Listeners()
        self._of: dict[int, Listeners[Hint]] = {}

    def __len__(self) -> int:
        """For how many single attempts somebody listens, or did when the last one began to."""
        return len(self._of)

    def listen(self, attempt: int | None = None, *, capacity: int = CAPACITY) -> Subscription:
        """A new queue of all hints, or of those that are about one attempt or about none."""
        box = Subscription(capacity)
        if attempt is None:
            self._all.add(box)
            return box
        self._of = {id: each for id, each in self._of.items() if each.any}
        self._of.setdefault(attempt, Listeners()).add(box)
        return box

    def offer(self, hint: Hint) -> None:
        """Tell all whom it concerns."""
        self._all.offer(hint)
        if self._of:
            self._offer_single(hint)

    def offer_all(self, hints: Sequence[Hint]) -> None:
        """Tell all whom they concern, in their order."""
        self._all.offer_all(hints)
        if self._of:
            for hint in hints:
                self._offer_single(hint)

    def _offer_single(self, hint: Hint) -> None:
        """Tell those who listen for single attempts."""
        if hint.attempt is None:
            for listeners in self._of.values():
                listeners.offer(hint)
        elif (listeners := self._of.get(hint.attempt)) is not None:
            listeners.offer(hint)


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
    """What went through a bus since it was opened. Everything but `connected` is a number of
    hints, of messages where it says so."""

    sent: int = 0
    """Acknowledged by the broker."""
    received: int = 0
    """From others."""
    waiting: int = 0
    """Not acknowledged yet."""
    dropped: int = 0
    """Never sent, because too many waited."""
    malformed: int = 0
    """Messages that are nothing that Midwatch says."""
    oversize: int = 0
    """Messages that were too long to be read."""
    reconnects: int = 0
    """How often a connection was made again."""
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


class FleetBus(Bus, Protocol):
    """A bus that is opened and closed, and that may carry more than hints."""

    @property
    def counters(self) -> BusCounters:
        """What went through it."""
        ...

    def claims(self) -> Subscription:
        """A new queue of those hints that the broker gave to this process alone of its group."""
        ...

    def departures(self) -> Departures:
        """A new queue of the nodes that the broker says have gone."""
        ...

    def say(self, status: NodeStatus) -> None:
        """What everybody shall know of this node. Never blocks and never raises."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class LocalBus:
    """The bus within one process."""

    def __init__(self) -> None:
        self._audience = Audience()

    @property
    def counters(self) -> BusCounters:
        """Nothing is sent anywhere."""
        return BusCounters()

    def publish(self, hint: Hint) -> None:
        """Tell every subscriber, if there is any."""
        self._audience.offer(hint)

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
        del status

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return
