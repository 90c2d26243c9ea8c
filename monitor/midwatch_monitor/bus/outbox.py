"""The hints that wait to be sent, and those that the broker has not acknowledged yet."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from midwatch_monitor.records import Hint


class Outbox:
    """Bounded: the oldest make room, and are counted. Belongs to the thread of one event loop."""

    def __init__(self, capacity: int) -> None:
        self._hints: deque[Hint] = deque(maxlen=capacity)
        self._capacity = capacity
        self._news = asyncio.Event()
        self.dropped = 0
        """Hints that were never sent."""

    def __len__(self) -> int:
        return len(self._hints)

    def put(self, hint: Hint) -> None:
        """Let a hint wait, in place of the oldest if there is no room."""
        if len(self._hints) == self._capacity:
            self.dropped += 1
        self._hints.append(hint)
        self._news.set()

    def put_back(self, hints: Sequence[Hint]) -> None:
        """Let hints wait again that were taken and not sent: they are older than all others."""
        room = self._capacity - len(self._hints)
        self.dropped += max(0, len(hints) - room)
        self._hints.extendleft(reversed(hints[max(0, len(hints) - room) :]))
        self.ring()

    def ring(self) -> None:
        """Wake whoever waits, though there may be nothing."""
        self._news.set()

    async def wait(self) -> None:
        """Until there is something, or somebody rings."""
        await self._news.wait()

    def take(self) -> list[Hint]:
        """All that waits, oldest first."""
        self._news.clear()
        hints = list(self._hints)
        self._hints.clear()
        return hints


def by_attempt(hints: Iterable[Hint]) -> dict[int | None, list[Hint]]:
    """The hints of each attempt, in their order."""
    groups: dict[int | None, list[Hint]] = {}
    for hint in hints:
        group = groups.get(hint.attempt)
        if group is None:
            group = groups[hint.attempt] = []
        group.append(hint)
    return groups


class InFlight:
    """What is under way over one connection. Belongs to the thread of one event loop."""

    def __init__(self, *, failed: Callable[[], None]) -> None:
        """`failed` is called when one has failed: from then on `fewer` raises why."""
        self._hints: dict[asyncio.Future[None], Sequence[Hint]] = {}
        self._landed = asyncio.Event()
        self._failed = failed
        self._error: BaseException | None = None
        self.waiting = 0
        """Hints that are under way."""
        self.sent = 0
        """Hints that the broker has."""

    def add(self, flight: asyncio.Future[None], hints: Sequence[Hint]) -> None:
        """One more is under way; the future is done once the broker has it."""
        self._hints[flight] = hints
        self.waiting += len(hints)
        flight.add_done_callback(self._land)

    def _land(self, flight: asyncio.Future[None]) -> None:
        error = None if flight.cancelled() else flight.exception()
        hints = self._hints.get(flight)
        if hints is None:
            return  # nobody waits for it any more
        if error is None:
            del self._hints[flight]
            self.waiting -= len(hints)
            self.sent += len(hints)
        else:
            self._error = self._error or error
            self._failed()
        self._landed.set()

    async def fewer(self, limit: int) -> None:
        """Until fewer hints than that are under way. Raises what one of them failed with."""
        while self._error is None and self.waiting >= limit:
            self._landed.clear()
            await self._landed.wait()
        if self._error is not None:
            raise self._error

    def end(self) -> list[Hint]:
        """Wait for none any more; the hints in them, oldest first, that the broker may not have."""
        for flight in self._hints:
            flight.cancel()
        lost = [hint for hints in self._hints.values() for hint in hints]
        self._hints.clear()
        self._error, self.waiting = None, 0
        return lost
