"""A queue that forgets the oldest: what every listener on a bus holds."""

import asyncio
from collections import deque
from collections.abc import Collection
from types import TracebackType
from typing import Generic, Self, TypeVar

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
