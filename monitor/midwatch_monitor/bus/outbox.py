"""The hints that wait to be sent."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

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
