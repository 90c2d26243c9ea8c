"""An attempt at work under a monitor that looks when a test says so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Escalation, Record
from midwatch_monitor.watched_attempt import WatchedAttempt
from midwatch_tests.factories import delivery
from midwatch_tests.reading import records_of

T = TypeVar("T")


@dataclass(kw_only=True)
class Monitored:
    """The attempt's recorder, the monitor, and the journal between them."""

    journal: Journal
    recorder: Recorder
    monitor: Monitor
    watching: Callable[..., Monitor]
    """Makes another monitor; `watching(bus=…)` gives it something else than the fixtures."""
    write: Callable[..., Awaitable[int]]
    """Commits records as another process would, and answers the id of the last."""

    async def hear(self, *records: Record) -> None:
        """Something happens, and the monitor looks."""
        if records:
            await self.recorder.record(*records)
        await self.monitor.look()

    async def told(self, *records: Record) -> int:
        """Another process writes, and the monitor looks; answers the id of the last record."""
        id = await self.write(*records)
        await self.monitor.look()
        return id

    async def delivered(self, *before: Record, then: tuple[Record, ...] = ()) -> int:
        """The last of these records, an intervention, is written and delivered; answers its id."""
        id = await self.write(*before)
        await self.hear(delivery(id), *then)
        return id

    async def records(self, kind: type[T]) -> list[T]:
        """What the journal holds of a kind, in its order."""
        return await records_of(self.journal, kind)

    async def last_escalation(self) -> Escalation:
        """The newest record of an escalation."""
        return (await self.records(Escalation))[-1]

    @property
    def view(self) -> WatchedAttempt:
        """The attempt as the monitor sees it."""
        view = self.monitor.view(self.recorder.attempt.id)
        assert view is not None
        return view
