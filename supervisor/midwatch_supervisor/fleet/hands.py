"""The turns that a node has in hand, as many as it has slots."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from midwatch_monitor.errors import JournalError
from midwatch_supervisor.fleet.handout import Handout, Ticket
from midwatch_supervisor.fleet.turn import Outcome

log = logging.getLogger(__name__)

FULL_SECONDS = 1.5
"""After how long a turn is offered again for which a node had no slot."""
FAILED_SECONDS = 5.0
"""The same after a turn in which something broke."""

Take = Callable[[int], Awaitable[Outcome]]
"""Runs the attempts of a task, by its id."""


class Hands:
    """Runs turns side by side, one for a task, and gives back what it has no slot for."""

    def __init__(
        self, take: Take, handout: Handout, *, slots: int, changed: Callable[[], None]
    ) -> None:
        """`changed` is called when a turn has begun or ended."""
        self._take = take
        self._handout = handout
        self._slots = slots
        self._changed = changed
        self._turns: dict[int, asyncio.Future[Outcome]] = {}
        self._closed = False

    @property
    def busy(self) -> int:
        """How many turns are in hand."""
        return len(self._turns)

    def close(self) -> None:
        """Take no more turns; those in hand go on."""
        self._closed = True

    async def do(self, ticket: Ticket, labels: Sequence[str]) -> str:
        """Do a turn; what it came to, for those who look at DBOS's own list."""
        await self._end_older(ticket.task)
        if self._closed or len(self._turns) >= self._slots:
            await self._offer_again(ticket, labels, FULL_SECONDS)
            return "given back: no slot"
        turn = self._turns[ticket.task] = asyncio.ensure_future(self._take(ticket.task))
        self._changed()
        try:
            # Not awaited itself: who cancels the turn does not mean to cancel this.
            await asyncio.wait({turn})
        finally:
            turn.cancel()
            if self._turns.get(ticket.task) is turn:
                del self._turns[ticket.task]
            self._changed()
        if turn.cancelled():
            return "given back"
        if turn.result() is Outcome.FAILED:
            await self._offer_again(ticket, labels, FAILED_SECONDS)
        return turn.result().value

    async def _end_older(self, task: int) -> None:
        """A turn of the same task that was taken from us and comes back: the older one ends."""
        while (older := self._turns.get(task)) is not None:
            older.cancel()
            await asyncio.wait({older})
            await asyncio.sleep(0)

    async def _offer_again(self, ticket: Ticket, labels: Sequence[str], seconds: float) -> None:
        try:
            await self._handout.hand_out(ticket.next, labels=labels, delay_seconds=seconds)
        except JournalError as error:  # whoever looks next hands it out, only sooner
            log.warning("a turn of task %s could not be given back: %s", ticket.task, error)

    async def drop(self) -> None:
        """Cancel all turns in hand, and wait until they have ended. They are resumable."""
        turns = set(self._turns.values())
        for turn in turns:
            turn.cancel()
        if turns:
            await asyncio.wait(turns)

    async def rest(self) -> None:
        """Wait until no turn is in hand."""
        while turns := set(self._turns.values()):
            await asyncio.wait(turns)
            await asyncio.sleep(0)
