"""Monitors one run that no process of its own monitors, as part of a fleet monitor."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from datetime import datetime
from typing import Any

from midwatch_agents.model_retries import Breakers
from midwatch_monitor.bus import Bus, LocalBus, Subscription
from midwatch_monitor.config.settings import Settings, settings_of
from midwatch_monitor.errors import UsageError
from midwatch_monitor.guards import Guards
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.records import Hint, Run, Task
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.run.task_agents import TaskAgents

log = logging.getLogger(__name__)

MonitorWork = Callable[[], Coroutine[Any, Any, None]]


class RelayBus:
    """A bus that publishes to everybody, but passes on only selected hints to its subscribers."""

    def __init__(self, everybody: Bus) -> None:
        self._everybody = everybody
        self._here = LocalBus()

    def publish(self, hint: Hint) -> None:
        """Publish to everybody; subscribers here get it with the next news from the journal."""
        self._everybody.publish(hint)

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """Subscribe to the hints that are handed on, or to those about one attempt."""
        return self._here.subscribe(attempt)

    def hand_on(self, hints: Collection[Hint]) -> None:
        """Pass hints on to the subscribers here."""
        for hint in hints:
            self._here.publish(hint)


class RunMonitor:
    """The monitor and the supervisor of one run, with the run's own settings.

    They act where the guards allow. On their own they read the journal only at each tick; the fleet
    monitor, which follows the whole journal, tells them when there is something new.
    """

    def __init__(
        self,
        journal: Journal,
        run: Run,
        *,
        bus: Bus,
        guards: Guards,
        calibrator: Calibrator,
        clock: Callable[[], datetime],
        embedded: bool,
    ) -> None:
        """Call `begin` first. Raises JournalTooNewError if the run's settings cannot be read."""
        self._journal = journal
        self._run = run
        self._relay = RelayBus(bus)
        self._settings = _settings_of(run)
        self._breakers = Breakers(self._settings.provider)
        self._clock = clock
        self._looked = clock()
        self._working: asyncio.Task[None] | None = None
        self._stopped = False
        self.embedded = embedded
        """Whether it has no task file, so that no runner ends its attempts."""
        self.attempts: set[int] = set()
        """All attempts named in hints."""
        self.heard_at = self._looked
        """When something new was last heard about it."""
        self.monitor = Monitor(
            journal=journal,
            bus=self._relay,
            settings=self._settings,
            run=run.id,
            clock=clock,
            guards=guards,
        )
        self.supervision = Supervision(
            journal=journal,
            bus=self._relay,
            settings=self._settings,
            run=run.id,
            clock=clock,
            guards=guards,
            hire=self._supervisor_for,
            calibrator=calibrator,
        )

    async def begin(self) -> None:
        """Read the journal's entries. Raises JournalError."""
        await self.monitor.look()
        self.attempts |= self.known

    @property
    def known(self) -> set[int]:
        """All attempts of the run, from hints or from the journal: either may come first."""
        return self.attempts | self.monitor.attempts

    async def look(self) -> None:
        """Look at everything once, and answer what is open."""
        await self.monitor.try_to_look(everything=True)
        await self.supervision.settle()
        await self.monitor.try_to_look(everything=True)

    def start(self) -> None:
        """Follow the run until `stop`."""
        self._working = asyncio.create_task(self._follow_run())

    async def _follow_run(self) -> None:
        await side_by_side(
            self.monitor.run,
            self.supervision.run,
            what=f"the monitor of run {self._run.id}",
            pause_seconds=self._settings.monitor.tick_seconds,
            stopped=lambda: self._stopped,
        )

    async def stop(self) -> None:
        """Let a running look end, and do nothing more."""
        self._stopped = True
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait({self._working})

    def hear(self, hints: Collection[Hint]) -> set[int]:
        """Note that there is something new in the run; return the attempts that are new."""
        self.heard_at = self._clock()
        self._relay.hand_on(hints)
        said = {hint.attempt for hint in hints}
        new = {each for each in said if each is not None} - self.attempts
        self.attempts |= new
        return new

    def catch_up(self, attempts: Collection[int]) -> None:
        """Catch up on these attempts of the run, whose leases were just won."""
        if mine := self.known.intersection(attempts):
            self.monitor.touch(mine)
            self._wake_monitor()

    def tick(self) -> None:
        """Look, if time alone can show something new."""
        now = self._clock()
        if self.monitor.due(self._looked, now):
            self._wake_monitor()
        self._looked = now

    def _wake_monitor(self) -> None:
        self._relay.hand_on((Hint(entry=0, kind="lease"),))

    async def over(self) -> bool:
        """Whether nothing more can follow: every task is over, every attempt judged."""
        if self.monitor.unfinished:
            return False
        return all(self.monitor.ended(task.id) for task in await self._journal.tasks(self._run.id))

    def _supervisor_for(self, task: Task) -> Supervisor:
        """Return the supervisor of a task, with the model of its task file if it can be built."""
        assignment = assignment_of(task)
        if assignment is not None:
            agents = TaskAgents(
                assignment, settings=self._settings, breakers=self._breakers, built=False
            )
            try:
                return agents.supervisor
            except UsageError as error:  # no API key or no package here
                log.warning("the policy decides about task %s: %s", task.name, error)
        return Supervisor(None, self._settings.supervisor)


async def side_by_side(
    *works: MonitorWork, what: str, pause_seconds: float, stopped: Callable[[], bool]
) -> None:
    """Run these until canceled. If one fails, all are restarted after a pause.

    They retry by themselves, so a failure is a bug. Set `stopped` before cancelling this: until
    Python 3.13 a task group loses a cancellation that comes while it ends because one of its tasks
    has failed.
    """
    while not stopped():
        try:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(work())
        except Exception:
            log.exception("%s failed and will be restarted", what)
            if not stopped():
                await asyncio.sleep(pause_seconds)


def _settings_of(run: Run) -> Settings:
    """Return the settings that the run began with, but polling only at each tick."""
    settings = settings_of(run)  # other settings would judge and decide differently
    seldom = settings.monitor.model_copy(update={"poll_seconds": settings.monitor.tick_seconds})
    return settings.model_copy(update={"monitor": seldom})
