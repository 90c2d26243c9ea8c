"""The interventions that are due for one attempt, read from the journal."""

from midwatch_monitor.bus import Bus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Delivery, Intervention
from midwatch_monitor.state.intervention import Interventions

WAITS = frozenset({Action.ASK_OPERATOR, Action.PAUSE})
"""What an attempt waits at until a person speaks."""


class Inbox:
    """What has been issued for an attempt and not yet arrived.

    It reads the journal, so an act of another process arrives without any bus; the bus only makes
    it sooner.
    """

    def __init__(self, journal: Journal, bus: Bus, attempt: int, *, poll_seconds: float) -> None:
        self._journal = journal
        self._bus = bus
        self._attempt = attempt
        self._poll_seconds = poll_seconds
        self._after = 0
        self._interventions = Interventions()

    async def due(self) -> tuple[tuple[int, Intervention], ...]:
        """The interventions to deliver now, by journal id, oldest first."""
        while page := await self._journal.entries(
            self._after, attempt=self._attempt, kinds=(Intervention, Delivery)
        ):
            for entry in page:
                self._interventions.fold(entry)
            self._after = page[-1].id
        return tuple((each.id, each.intervention) for each in self._interventions.on_their_way)

    @property
    def answered(self) -> bool:
        """Whether a word that ends the waiting is due, by what was last read."""
        return self._interventions.ends_waiting

    async def wait(self) -> tuple[tuple[int, Intervention], ...]:
        """Wait until an operator's word ends the waiting, and return all that is due then.

        What was said before the pause does not end it.
        """
        async with self._bus.subscribe(self._attempt) as hints:
            while True:
                due = await self.due()
                if self.answered:
                    return due
                await hints.wait(self._poll_seconds)
