"""A few attempts that no process of their own looks after, and the monitors over them."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from midwatch_monitor.bus import BusCounters, Departures, LocalBus, Subscription
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import SupervisedBy
from midwatch_supervisor.fleet.monitors.fleet_monitor import FleetMonitor, LeaseChange
from midwatch_supervisor.fleet.monitors.leases import RoleChange
from midwatch_supervisor.notify.notifier import Sender

T = TypeVar("T")
SETTINGS = Settings(
    monitor=MonitorSettings(poll_seconds=0.02, tick_seconds=0.2, outcome_after=1),
    fleet=FleetSettings(lease_seconds=1.5),
)


class Brokered(LocalBus):
    """A bus with a broker, which a test plays."""

    def __init__(self) -> None:
        super().__init__()
        self.given = Subscription()
        self.gone = Departures()

    @property
    def counters(self) -> BusCounters:
        return BusCounters(connected=True)

    def claims(self) -> Subscription:
        return self.given

    def departures(self) -> Departures:
        return self.gone


class Fleet:
    """Attempts of runs without a process, and the monitors over them."""

    def __init__(self, journal: Journal, location: str) -> None:
        self.journal = journal
        self.watched = journal
        """The journal as the monitors have it."""
        self.location = location
        self.told: dict[str, list[LeaseChange | RoleChange]] = {}
        self.ahead = timedelta()
        """By how much its clock is ahead: it was at work for a while, which nobody waits for."""

    @property
    def now(self) -> datetime:
        """What time it is in the fleet."""
        return datetime.now(UTC) + self.ahead

    async def begin(
        self,
        spec: str = "{}",
        *,
        supervised_by: SupervisedBy = SupervisedBy.MONITOR,
        settings: str = "",
    ) -> Recorder:
        """An attempt at work, of a task in a run of its own."""
        given = settings or SETTINGS.model_dump_json()
        run = await self.journal.add_run(
            source="s", settings=given, at=self.now, supervised_by=supervised_by
        )
        task = await self.journal.add_task(
            run=run.id, name="fix", title="Fix it", spec=spec, at=self.now
        )
        return await self.follow(task.id, number=1)

    async def follow(self, task: int, *, number: int) -> Recorder:
        """An attempt at work at a task."""
        attempt = await self.journal.add_attempt(
            task=task, number=number, worker="w", model="m", node="n", workspace="", at=self.now
        )
        recorder = await Recorder.claim(
            journal=self.journal,
            bus=LocalBus(),
            attempt=attempt,
            settings=SETTINGS,
            holder="worker",
            clock=lambda: self.now,
        )
        await recorder.record(working_transition())
        return recorder

    def keeping(
        self,
        name: str,
        bus: LocalBus | None = None,
        settings: Settings = SETTINGS,
        senders: Mapping[str, Sender] | None = None,
    ) -> FleetMonitor:
        self.told[name] = []
        return FleetMonitor(
            self.watched,
            location=self.location,
            bus=bus or LocalBus(),
            settings=settings,
            holder=f"{name}:1",
            clock=lambda: self.now,
            tell=self.told[name].append,
            senders=senders,
        )

    @asynccontextmanager
    async def monitor(
        self, name: str, bus: LocalBus | None = None, settings: Settings = SETTINGS
    ) -> AsyncGenerator[FleetMonitor]:
        """A monitor at work; at the end it leaves as one that is told to."""
        keeping = self.keeping(name, bus, settings)
        work = asyncio.create_task(keeping.run())
        try:
            yield keeping
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def held(self, name: str) -> list[int]:
        """The attempts that a monitor holds, as it told; twice what it was told twice."""
        held: list[int] = []
        for each in self.told[name]:
            if isinstance(each, LeaseChange):
                others = [id for id in held if each.held or id != each.attempt]
                held = [*others, each.attempt] if each.held else others
        return sorted(held)

    async def records(self, kind: type[T]) -> list[T]:
        return [each async for each in self._all(kind)]

    async def _all(self, kind: type[T]) -> AsyncGenerator[T]:
        async for entry in self.journal.all_entries():
            if isinstance(entry.record, kind):
                yield entry.record

    async def until(self, happened: Callable[[], bool | Awaitable[bool]]) -> None:
        """Wait for something to be true; two minutes at most."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(120):
            while not (now if isinstance(now := happened(), bool) else await now):
                await nothing.wait(0.01)

    async def until_told(self, kind: type[object], count: int = 1) -> None:
        async def there() -> bool:
            return len(await self.records(kind)) >= count

        await self.until(there)


def uncoded(text: str) -> str:
    """What a model is told, without the codes that are drawn for each attempt and each prompt."""
    return re.sub(r"(\[midwatch) [0-9a-f]{8}|\b(data)-[0-9a-f]{8}", r"\1\2", text)
