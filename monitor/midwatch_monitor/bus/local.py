"""The bus within one process, and what every bus is to those who speak and listen on it."""

import asyncio
from collections import deque
from types import TracebackType
from typing import Protocol, Self

from midwatch_monitor.words import Hint

CAPACITY = 1_000
"""Hints that wait for one subscriber; beyond that the oldest is dropped."""


class Subscription:
    """One subscriber's queue of hints. Belongs to the thread of one event loop."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._hints: deque[Hint] = deque(maxlen=capacity)
        self._news = asyncio.Event()
        self._closed = False
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Hints lost because nobody took them in time."""
        return self._dropped

    @property
    def closed(self) -> bool:
        """Whether no more hints will come."""
        return self._closed

    def offer(self, hint: Hint) -> None:
        """Queue a hint, in place of the oldest if there is no room."""
        if self._closed:
            return
        if len(self._hints) == self._hints.maxlen:
            self._dropped += 1
        self._hints.append(hint)
        self._news.set()

    async def wait(self, seconds: float | None = None) -> list[Hint]:
        """All hints that are there, else the next one; empty after `seconds` or once closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return []
        hints = list(self._hints)
        self._hints.clear()
        if not self._closed:
            self._news.clear()
        return hints

    def close(self) -> None:
        """Take no more hints, and wake whoever waits."""
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

    async def __anext__(self) -> Hint:
        while not self._hints:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._hints.popleft()


class Bus(Protocol):
    """Anything that carries hints."""

    def publish(self, hint: Hint) -> None:
        """Tell every subscriber. Never blocks and never raises."""
        ...

    def subscribe(self) -> Subscription:
        """A new queue that gets every hint from now on, until it is closed."""
        ...


class LocalBus:
    """The bus within one process."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []

    def publish(self, hint: Hint) -> None:
        """Tell every subscriber, if there is any."""
        self._subscriptions = [each for each in self._subscriptions if not each.closed]
        for subscription in self._subscriptions:
            subscription.offer(hint)

    def subscribe(self) -> Subscription:
        """A new queue that gets every hint from now on, until it is closed."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        return subscription
