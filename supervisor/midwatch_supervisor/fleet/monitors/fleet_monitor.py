"""The fleet monitor of `midwatch monitor`: monitors every run that no process of its own monitors.

It follows the journal once for all runs, and keeps a `RunMonitor` for each that is not over, which
acts on the attempts whose leases this monitor holds. Several monitors share the attempts; if one
dies, its leases run out and the others take them.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import CoroutineType
from typing import Any

from midwatch_monitor.bus import FleetBus, NodeGone
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalCorruptError, JournalError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    Alert,
    AttemptTransition,
    BudgetRequest,
    Change,
    Delivery,
    Escalation,
    Intervention,
    PermissionRequest,
    PlanCheck,
    Step,
)
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.fleet.monitors.leases import (
    EXPORTER,
    LEARNER,
    NOTIFIER,
    LeaderRole,
    LeaseChanges,
    Leases,
    RoleChange,
    dispatch_of,
    log_lease_changes,
)
from midwatch_supervisor.fleet.monitors.run_monitor import RelayBus, RunMonitor
from midwatch_supervisor.fleet.process import JournalOutageLog
from midwatch_supervisor.fleet.queue.dispatch import (
    dispatch,
    dispatch_once,
    no_dispatch,
)
from midwatch_supervisor.learning.learner import Learner
from midwatch_supervisor.learning.reflection_schedule import FleetReflection, learn
from midwatch_supervisor.notify.notifier import Notifier, Sender, fleet_runs
from midwatch_supervisor.telemetry.exporting import export_spans

log = logging.getLogger(__name__)

ALONE = timedelta(days=1)
"""Time without news after which an attempt without a runner is left alone: its process may have
been killed, and nobody will say so.
"""
_BREATH = 0.02
"""Seconds between two looks at the journal, however many hints there are."""
_LEAVE_SECONDS = 10.0
"""Seconds to wait at the end for a journal that does not answer."""
_DOUBT_SECONDS = 0.5
"""Seconds between two records of what the broker says about nodes."""
_SUCCEED_SECONDS = 1.0
"""Seconds between two searches for leases that ran out."""
_MATTERS = frozenset(
    kind_of(kind)
    for kind in (AttemptTransition, Step, Change, Alert, Escalation, Intervention, Delivery)
) | {kind_of(BudgetRequest), kind_of(PermissionRequest), kind_of(PlanCheck)}
"""Kinds of entries that may require monitoring a run; those of learning after its end do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChange:
    """The lease on an attempt was won or lost."""

    attempt: int
    held: bool


TellChange = Callable[[LeaseChange | RoleChange], None]


class FleetMonitor:
    """One monitor of a journal."""

    def __init__(
        self,
        journal: Journal,
        *,
        location: str,
        bus: FleetBus,
        settings: Settings,
        holder: str,
        clock: Clock,
        tell: TellChange,
        senders: Mapping[str, Sender] | None = None,
    ) -> None:
        """Monitor the journal at `location` as `holder`; call `tell` with each change.

        `senders` deliver messages to the people in the settings. The settings are this monitor's
        own: each run is judged and decided by those it began with.
        """
        self._journal = journal
        self._location = location
        self._bus = bus
        self._settings = settings
        self._holder = holder
        self._clock = clock
        self._tell = tell
        self._senders = senders or {}
        self._lease_seconds = settings.fleet.lease_seconds
        self._dispatching = dispatch_of(settings.fleet.name)
        self._monitor_leases = MonitorLeases(journal, clock=clock)
        self._relay = RelayBus(bus)
        self._calibrator = Calibrator(journal)
        self._hindsight = FleetReflection(journal, clock=clock)
        self._leases = Leases(
            self._monitor_leases,
            holder=holder,
            lease_seconds=self._lease_seconds,
            seconds=asyncio.get_running_loop().time,
        )
        self._after: int | None = None
        self._runs: dict[int, RunMonitor] = {}
        self._strange: set[int] = set()
        """Runs that cannot be read here; other monitors watch them."""
        self._new: set[int] = set()
        """New attempts that nobody has tried to take yet."""
        self._claimed: set[int] = set()
        """Attempts that the broker assigned to this monitor."""
        self._stale: set[int] = set()
        """Claims that have lasted for a round and match no attempt here; dropped after the next."""
        self._failing: dict[str, str] = {}
        """The errors of works that failed last time, by name."""
        self._outage_log = JournalOutageLog("the monitor", journal.name)

    @property
    def runs(self) -> frozenset[int]:
        """Ids of the runs that it monitors at present."""
        return frozenset(self._runs)

    async def run(self) -> None:
        """Monitor until canceled, then release all leases."""
        works = [
            self._follow_hints(),
            self._keep_renewing(),
            self._pass_on_claims(),
            self._pass_on_departures(),
        ]
        works += [post.keep() for post in self._leader_roles()]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop_monitors()

    async def _stop_monitors(self) -> None:
        """Let running looks end, and release all leases; give up if the journal does not answer."""
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                await asyncio.gather(*(watch.stop() for watch in self._runs.values()))
                await self._release_leases()
        except TimeoutError:
            log.warning("the leases will expire: the journal does not answer")

    async def once(self) -> None:
        """Look at everything once. Raises JournalError."""
        await self._open_unfinished(start=False)
        for watch in self._runs.values():
            await watch.look()
        await self._end_leases()
        if await self._take_post(LEARNER):
            await self._learn_once()
        if not no_dispatch(self._location) and await self._take_post(self._dispatching):
            fleet = self._settings.fleet
            await dispatch_once(self._journal, self._location, settings=fleet, clock=self._clock)
        if self._senders and await self._take_post(NOTIFIER):
            notifier = self._new_notifier()
            await notifier.finish()
            await notifier.close()
        await self._release_leases()

    async def _take_post(self, name: str) -> bool:
        taken = await self._monitor_leases.take_post(
            name, holder=self._holder, seconds=self._lease_seconds
        )
        return taken is not None

    async def _release_leases(self) -> None:
        try:
            await self._leases.release()
            for name in (LEARNER, NOTIFIER, EXPORTER, self._dispatching):
                await self._monitor_leases.release_post(name, holder=self._holder)
        except JournalError as error:  # leases run out by themselves
            log.warning("the leases will expire: %s", error)

    async def _log_errors(self, work: "CoroutineType[Any, Any, None]") -> None:
        """Run work; if it fails, log that once, and let it be tried again later."""
        name = work.__name__
        try:
            await work
        except JournalError as error:  # it may last all night, while other works succeed
            known = name in self._failing or str(error) in self._failing.values()
            known = known or self._outage_log.away
            log.log(logging.DEBUG if known else logging.WARNING, "cannot monitor now: %s", error)
            self._failing[name] = str(error)
        except Exception:  # a failure here must not stop the work
            log.exception("the monitor failed and will try again")
        else:
            self._failing.pop(name, None)

    # -- what is new -----------------------------------------------------------------------

    async def _follow_hints(self) -> None:
        async with self._bus.subscribe() as hints:
            while True:
                await self._log_errors(self._read_news())
                await asyncio.sleep(_BREATH)
                await hints.wait(self._settings.monitor.poll_seconds)

    async def _read_news(self) -> None:
        if self._after is None:
            await self._open_unfinished(start=True)
        news = await self._outage_log.of(self._monitor_leases.news(self._after or 0))
        for run, hints in news.hints.items():
            if run not in self._runs and any(hint.kind in _MATTERS for hint in hints):
                self._new |= await self._open_run(run, start=True)
            if run in self._runs:
                self._new |= self._runs[run].hear(hints)
            self._relay.hand_on(hints)
        self._after = news.last
        await self._take_new()
        for watch in self._runs.values():
            watch.tick()

    async def _take_new(self) -> None:
        """Take new attempts that are for this monitor; after a failure they are tried again."""
        new = frozenset(self._new)
        given = self._mine_of(new)
        await self._take_attempts(given)
        self._claimed -= given
        self._new -= new

    async def _open_unfinished(self, *, start: bool) -> None:
        """Find unfinished runs, and take their free attempts."""
        after = await self._journal.last_id()
        for run in await self._monitor_leases.unfinished(since=self._clock() - ALONE):
            if run not in self._runs:
                await self._open_run(run, start=start)
        self._after = after
        await self._update_leases()

    async def _open_run(self, run: int, *, start: bool) -> set[int]:
        """Monitor a run; return its attempts that need that."""
        if run in self._strange:
            return set()
        try:
            tasks = await self._journal.tasks(run)
            watch = RunMonitor(
                self._journal,
                await self._journal.run(run),
                bus=self._bus,
                guards=self._leases,
                calibrator=self._calibrator,
                clock=self._clock,
                embedded=all(task.embedded for task in tasks),
            )
            await watch.begin()
        except (JournalTooNewError, JournalCorruptError) as error:  # other runs can still be read
            log.error("run %d cannot be monitored here: %s", run, error)
            self._strange.add(run)
            return set()
        self._runs[run] = watch
        if start:
            watch.start()
        return set(watch.monitor.unfinished)

    def _mine_of(self, new: Collection[int]) -> set[int]:
        """Return attempts to take now: those the broker assigned; without one, all new ones."""
        if not self._bus.counters.connected:
            return set(new)
        return self._claimed & self._unfinished_attempts.union(new)

    async def _pass_on_claims(self) -> None:
        async with self._bus.claims() as claims:
            while True:
                said = {hint.attempt for hint in await claims.wait()}
                self._claimed |= {each for each in said if each is not None}

    async def _pass_on_departures(self) -> None:
        async with self._bus.departures() as departures:
            while gone := await departures.wait():
                await self._log_errors(self._doubt_nodes(set(gone)))
                # Limits writes to the journal if somebody floods the broker.
                await asyncio.sleep(_DOUBT_SECONDS)

    async def _doubt_nodes(self, gone: set[NodeGone]) -> None:
        """Record what the broker says about nodes that seem alive."""
        nodes = Nodes(self._journal)
        for status in await nodes.starts():
            told = NodeGone(name=status.name, boot=status.boot) in gone
            if told and not status.state.gone and status.doubted_at is None:
                await nodes.doubt(status.name, status.boot)

    # -- leases ----------------------------------------------------------------------------

    @property
    def _unfinished_attempts(self) -> set[int]:
        return {id for watch in self._runs.values() for id in watch.monitor.unfinished}

    async def _keep_renewing(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._lease_seconds / 3
            await self._log_errors(self._renew_once())
            while (left := due - loop.time()) > 0:
                await asyncio.sleep(min(left, _SUCCEED_SECONDS))
                await self._log_errors(self._take_over_expired())

    async def _renew_once(self) -> None:
        await self._update_leases()
        # A claim may come before its attempt is read, or while a round waits for the journal.
        self._claimed -= self._stale
        self._stale = set(self._claimed)

    async def _take_over_expired(self) -> None:
        """Take over attempts from monitors that do not renew their leases."""
        await self._pass_on_changes(
            await self._leases.take_over_expired(self._unfinished_attempts), late=True
        )

    async def _update_leases(self) -> None:
        """Renew leases, take free ones, and end those of finished attempts and runs."""
        await self._take_attempts(self._unfinished_attempts)
        await self._end_leases()
        for run, watch in list(self._runs.items()):
            if await self._done_with(watch) and self._runs.get(run) is watch:
                await self._close_run(run)

    async def _done_with(self, watch: RunMonitor) -> bool:
        """Whether a run needs no monitor any more. Not if news arrives during the check."""
        now = self._clock()
        if watch.embedded and watch.heard_at < now - ALONE:
            return True
        quiet = now - timedelta(seconds=self._lease_seconds)
        return watch.heard_at < quiet and await watch.over() and watch.heard_at < quiet

    async def _take_attempts(self, attempts: Collection[int]) -> None:
        if attempts:
            await self._pass_on_changes(await self._leases.take(attempts))

    async def _pass_on_changes(self, changes: LeaseChanges, *, late: bool = False) -> None:
        """Tell each run monitor what it has won, and log what changed hands."""
        for watch in self._runs.values():
            watch.catch_up(changes.won)
        for id in sorted(changes.lost):
            self._tell(LeaseChange(attempt=id, held=False))
        for id in sorted(changes.won):
            self._tell(LeaseChange(attempt=id, held=True))
        await log_lease_changes(Nodes(self._journal), changes, late=late)

    async def _end_leases(self) -> None:
        """End the leases of attempts that are over and judged."""
        done = {id for watch in self._runs.values() for id in watch.monitor.finished}
        await self._leases.finish(done)

    async def _close_run(self, run: int) -> None:
        watch = self._runs.pop(run)
        self._leases.forget(watch.known)  # before another monitor of the run can take them again
        await watch.stop()

    # -- roles -----------------------------------------------------------------------------

    def _new_learner(self) -> Learner:
        return Learner(self._journal, settings=self._settings, clock=self._clock, bus=self._relay)

    async def _keep_learning(self) -> None:
        seconds = self._settings.monitor.tick_seconds
        await learn(self._new_learner(), self._hindsight, seconds=seconds)

    async def _learn_once(self) -> None:
        learner = self._new_learner()
        await learner.study_all()
        await self._hindsight.look(learner)

    async def _keep_dispatching(self) -> None:
        await dispatch(
            self._journal,
            self._location,
            bus=self._relay,
            settings=self._settings.fleet,
            clock=self._clock,
        )

    def _new_notifier(self) -> Notifier:
        return Notifier(
            self._journal,
            settings=self._settings.notify,
            senders=self._senders,
            grown=fleet_runs(self._journal, self._monitor_leases, self._clock),
            clock=self._clock,
        )

    async def _keep_notifying(self) -> None:
        notifier = self._new_notifier()
        try:
            await notifier.run(self._relay, self._settings.monitor.poll_seconds)
        finally:
            await notifier.close()

    async def _keep_exporting(self) -> None:
        telemetry = self._settings.telemetry
        async with export_spans(telemetry, self._journal, bus=self._bus):
            await asyncio.get_running_loop().create_future()

    def _leader_roles(self) -> list[LeaderRole]:
        works = {LEARNER: self._keep_learning}
        if self._senders:
            works[NOTIFIER] = self._keep_notifying
        if not no_dispatch(self._location):
            works[self._dispatching] = self._keep_dispatching
        if self._settings.telemetry.endpoint:
            works[EXPORTER] = self._keep_exporting
        return [
            LeaderRole(
                name,
                work,
                take=self._take_post,
                lease_seconds=self._lease_seconds,
                tell=self._tell,
            )
            for name, work in works.items()
        ]
