"""The queue of a fleet's turns, without DBOS."""

from collections.abc import Iterable
from datetime import datetime

from midwatch_monitor.records import Run
from midwatch_supervisor.fleet.queue.queue import QueuedTurn, TurnUnderWay


class QueueInMemory:
    """A queue that keeps its turns in a list, and notes what it was told."""

    fleet = "night"

    def __init__(self) -> None:
        self.turns: list[TurnUnderWay] = []
        self.queued: list[tuple[str, tuple[str, ...]]] = []
        self.offered: list[tuple[QueuedTurn, float]] = []
        """Turns that were handed out, and with what delay."""
        self.put_back: list[QueuedTurn] = []
        self.ended: list[str] = []

    async def under_way(self) -> list[TurnUnderWay]:
        return self.turns

    async def last_numbers(self, run: Run) -> dict[int, int]:
        return {each.ticket.task: each.ticket.number for each in self.turns}

    async def hand_out(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), delay_seconds: float = 0.0
    ) -> None:
        self.turns.append(TurnUnderWay(ticket=ticket))
        self.offered.append((ticket, delay_seconds))
        self.queued.append((str(ticket), tuple(labels)))

    async def rescue(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), holder: str = ""
    ) -> bool:
        if holder and TurnUnderWay(ticket=ticket, holder=holder) not in self.turns:
            return False
        self.turns = [each for each in self.turns if each.ticket != ticket]
        self.queued.append((str(ticket), tuple(labels)))
        self.put_back.append(ticket)
        return True

    async def drop(self, ticket: QueuedTurn) -> None:
        self.turns = [each for each in self.turns if each.ticket != ticket]
        self.ended.append(str(ticket))

    async def forget(self, before: datetime) -> None:
        self.forgotten = before
