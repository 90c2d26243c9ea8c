"""The interventions that are due for one attempt, read from the journal."""

from midwatch_monitor.bus import Bus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Actor, Delivery, DeliveryState, Intervention

WAITS = frozenset({Action.ASK_OPERATOR, Action.PAUSE})
"""What an attempt waits at until a person speaks."""

_ENDS_WAITING = frozenset({Action.NUDGE, Action.REPLAN})


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
        self._held: dict[int, Intervention] = {}
        self._open: dict[int, Intervention] = {}
        self._parked_by = 0

    async def due(self) -> tuple[tuple[int, Intervention], ...]:
        """The interventions to deliver now, by journal id, oldest first."""
        while page := await self._journal.entries(
            self._after, attempt=self._attempt, kinds=(Intervention, Delivery)
        ):
            for entry in page:
                if isinstance(entry.record, Intervention):
                    where = self._held if entry.record.needs_approval else self._open
                    where[entry.id] = entry.record
                elif isinstance(entry.record, Delivery):
                    self._stamp(entry.record)
            self._after = page[-1].id
        return tuple(sorted(self._open.items()))

    def _stamp(self, delivery: Delivery) -> None:
        id, held = delivery.intervention, self._held.pop(delivery.intervention, None)
        if delivery.state is DeliveryState.APPROVED:
            if held is not None:
                self._open[id] = held
            return
        gone = self._open.pop(id, None)
        if gone is not None and gone.action in WAITS:
            self._parked_by = max(self._parked_by, id)

    @property
    def answered(self) -> bool:
        """Whether a word that ends the waiting is due, by what was last read."""
        return any(id > self._parked_by and ends_waiting(each) for id, each in self._open.items())

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


def ends_waiting(intervention: Intervention) -> bool:
    """Whether a parked attempt goes on with it.

    What waits for a person, only one can answer; the policy resumes where none did in time.
    """
    if intervention.action is Action.RESUME:
        return intervention.by in {Actor.OPERATOR, Actor.POLICY}
    return intervention.by is Actor.OPERATOR and intervention.action in _ENDS_WAITING
