"""A node: takes turns of tasks, reports that it is alive, and leaves without losing work."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from midwatch_agents.left_processes import end_leftovers_below
from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import find_sandbox
from midwatch_monitor.bus import FleetBus, bus_for
from midwatch_monitor.cancellation import meanwhile
from midwatch_monitor.config.fleet import MISSED_BEATS, FleetSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, MidwatchError, ReplacedError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock, now
from midwatch_monitor.journal.core.tables import REVISION
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_supervisor.fleet.nodes.cleaning import Cleaner
from midwatch_supervisor.fleet.nodes.turn import NodeResources, Take, TurnEnded, TurnPool, take_turn
from midwatch_supervisor.fleet.process import Identity, JournalOutageLog
from midwatch_supervisor.fleet.queue.dispatch import Dispatcher, UnfinishedRuns
from midwatch_supervisor.fleet.queue.queue import TurnQueue, TurnReceiver
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
"""Minimum number of seconds between two looks."""
_LEAVE_SECONDS = 10.0
"""Seconds that DBOS gets to record that the last turns have ended."""


def status_of(
    who: Identity, *, slots: int, labels: Sequence[str], fleet: str = "midwatch"
) -> NodeStatus:
    """Return the status of a node that starts. The journal sets the times."""
    at = datetime.now(UTC)
    return NodeStatus(
        name=who.name,
        boot=who.boot,
        state=NodeState.UP,
        slots=slots,
        busy=0,
        labels=tuple(sorted(set(labels))),
        version=version("midwatch"),
        revision=REVISION,
        started_at=at,
        beat_at=at,
        fleet=fleet,
    )


class Node:
    """Takes turns until it is told to stop."""

    def __init__(
        self,
        status: NodeStatus,
        *,
        take: Take,
        nodes: Nodes,
        bus: FleetBus,
        turn_queue: TurnQueue,
        dispatcher: Dispatcher,
        settings: FleetSettings,
        ended: Callable[[TurnEnded], None],
    ) -> None:
        """Call `ended` with the outcome of each turn."""
        self._outage_log = JournalOutageLog(status.name, nodes.journal.name)
        self._status = status
        self._nodes = nodes
        self._bus = bus
        self._dispatcher = dispatcher
        self._settings = settings
        self._turn_pool = TurnPool(
            take,
            turn_queue,
            slots=status.slots,
            changed=self._watch_changes,
            heard=self._beat_is_recent,
            stands=self._is_not_lost,
            ended=ended,
        )
        self._reception = TurnReceiver(
            self._turn_pool.do, holder=status.holder, fleet=settings.name
        )
        self._heard_at = 0.0
        """When the journal last accepted our heartbeat, by the loop's clock."""
        self._news = asyncio.Event()
        self._leave = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def in_hand(self) -> frozenset[int]:
        """Ids of the tasks whose turns it is running."""
        return self._turn_pool.tasks

    def stop(self) -> None:
        """Take no more turns, and let running ones end; a second call gives them back at once."""
        (self._hurry if self._leave.is_set() else self._leave).set()

    async def run(self, location: str, *, ready: Callable[[], None]) -> None:
        """Take turns from the journal at that location until `stop`; call `ready` once.

        The node must have entered the journal. Raises ReplacedError if another process takes its
        name.
        """
        helpers: list[asyncio.Task[None]] = []
        self._heard_at = asyncio.get_running_loop().time()
        try:
            await self._reception.open(
                location, labels=self._status.labels, slots=self._status.slots
            )
            helpers = [
                asyncio.create_task(self._keep_beating()),
                asyncio.create_task(self._drop_after_outage()),
                asyncio.create_task(self._look_now_and_then()),
            ]
            ready()
            stopped = asyncio.create_task(self._leave.wait())
            await asyncio.wait({stopped, helpers[0]}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
        finally:
            try:
                await self._drain_turns()
            finally:
                for helper in helpers:
                    helper.cancel()
                results = await asyncio.gather(*helpers, return_exceptions=True)
                await self._say_goodbye()
        for result in results:
            if isinstance(result, Exception):
                raise result

    # -- leaving ---------------------------------------------------------------------------

    async def _drain_turns(self) -> None:
        """Let running turns end within `drain_seconds`, and give back the rest."""
        name, busy, most = self._status.name, self._turn_pool.busy, self._settings.drain_seconds
        waits = f" and waits at most {most:g} s for those running ({busy})" if busy else ""
        log.info("%s takes no more turns%s", name, waits)
        self._turn_pool.close()
        self._status = replace(self._status, state=NodeState.DRAINING)
        self._watch_changes()
        resting = asyncio.create_task(self._turn_pool.rest())
        hurried = asyncio.create_task(self._hurry.wait())
        closing = asyncio.create_task(
            self._reception.close(seconds=most + _LEAVE_SECONDS if self._turn_pool.busy else 0)
        )
        try:
            await asyncio.wait(
                {resting, hurried}, timeout=most, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hurried.cancel()
            await self._turn_pool.drop()
            await closing

    async def _say_goodbye(self) -> None:
        """Report that this node is gone, and hand out what it gave back."""
        self._status = replace(self._status, state=NodeState.DOWN, busy=0)
        try:
            await self._send_heartbeat()
            await self._dispatcher.look()
        except MidwatchError as error:
            log.warning("%s could not report that it left: %s", self._status.name, error)

    # -- heartbeats ------------------------------------------------------------------------

    def _watch_changes(self) -> None:
        self._status = replace(self._status, busy=self._turn_pool.busy)
        self._bus.announce(self._status)
        self._news.set()

    async def _keep_beating(self) -> None:
        """Send heartbeats until canceled. Raise ReplacedError if another process has our name."""
        while True:
            try:
                before = await self._outage_log.of(self._send_heartbeat())
            except JournalError as error:
                log.debug("%s could not send its heartbeat: %s", self._status.name, error)
            else:
                self._heard_at = asyncio.get_running_loop().time()
                if before is None:
                    self._hurry.set()
                    raise ReplacedError(f"another process is node {self._status.name} now")
                if before is NodeState.LOST:
                    log.warning(
                        "%s was declared lost; it gives back its running turns (%d)",
                        *(self._status.name, self._turn_pool.busy),
                    )
                    await self._turn_pool.drop()
            await asyncio.sleep(self._settings.beat_seconds)

    def _beat_is_recent(self) -> bool:
        """Whether the last heartbeat is too recent for others to consider this node lost."""
        silent = asyncio.get_running_loop().time() - self._heard_at
        return silent <= MISSED_BEATS * self._settings.beat_seconds

    async def _is_not_lost(self) -> bool:
        """Whether, according to the journal, this start of the node is not lost."""
        return any(
            each.holder == self._status.holder and not each.state.gone
            for each in await self._nodes.starts()
        )

    async def _send_heartbeat(self) -> NodeState | None:
        return await self._nodes.beat(
            *(self._status.name, self._status.boot),
            busy=self._status.busy,
            state=self._status.state,
        )

    async def _drop_after_outage(self) -> None:
        """Drop running turns if the journal was unreachable for so long that others have them."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._settings.beat_seconds)
            if (
                clock() - self._heard_at > self._settings.lost_after_seconds
                and self._turn_pool.busy
            ):
                log.warning(
                    "%s cannot reach the journal; other nodes take over its work", self._status.name
                )
                await self._turn_pool.drop()

    async def _look_now_and_then(self) -> None:
        """Hand out what our turns made possible, or everything if no monitor does it."""
        while True:
            self._news.clear()
            try:
                await self._dispatcher.look()
            except MidwatchError as error:
                level = logging.DEBUG if self._outage_log.away else logging.WARNING
                log.log(level, "%s could not hand out turns: %s", self._status.name, error)
            except Exception:  # must not stop the node
                log.exception("%s could not hand out turns", self._status.name)
            # Many turns may end at once, and DBOS records their ends a little later.
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                async with asyncio.timeout(self._settings.lost_after_seconds / 3):
                    await self._news.wait()
            except TimeoutError:
                continue


ALIVE_BEATS = 3
"""Heartbeats that a node may miss before its name is free."""


@asynccontextmanager
async def open_node(
    journal: Journal,
    location: str,
    who: Identity,
    *,
    home: Path,
    settings: Settings,
    environ: Mapping[str, str],
    ended: Callable[[TurnEnded], None] = lambda _: None,
) -> AsyncGenerator[Node]:
    """Yield a node on the journal at `location`, ready to run, that works below `home`.

    `ended` is called with the outcome of each turn. Raises as `find_sandbox` and `TurnQueue.open`
    do, and UsageError if its name is taken.
    """
    fleet, name = settings.fleet, who.name
    sandbox_kind = await find_sandbox(settings.run.sandbox)
    status = status_of(who, slots=fleet.slots, labels=fleet.labels, fleet=fleet.name)
    async with AsyncExitStack() as stack:
        turn_queue = await TurnQueue.open(location, fleet=fleet.name)
        await stack.enter_async_context(turn_queue)
        nodes, unfinished = Nodes(journal, fleet=fleet.name), UnfinishedRuns(journal)
        clock = await stack.enter_async_context(journal_clock(journal, now))
        # Before connecting to the broker, which would drop a client of the same name.
        bus = bus_for(fleet, name=name, status=status, environ=environ)
        await nodes.enter(status, alive_seconds=ALIVE_BEATS * fleet.beat_seconds)
        await end_leftovers_below(home / "work")  # left by a start of this node that was killed
        await stack.enter_async_context(bus)
        store = SnapshotStore(journal=journal, home=home, node=name, settings=fleet, clock=clock)
        cleaner = Cleaner(journal=journal, snapshot_store=store, home=home, clock=clock)
        await stack.enter_async_context(meanwhile(cleaner.run()))
        machine = NodeResources(
            journal=journal,
            bus=bus,
            settings=settings,
            identity=who,
            home=home,
            sandbox_kind=sandbox_kind,
            breakers=Breakers(settings.provider),
            unfinished_runs=unfinished,
            snapshot_store=store,
            clock=clock,
        )
        yield Node(
            status,
            take=partial(take_turn, machine),
            nodes=nodes,
            bus=bus,
            turn_queue=turn_queue,
            dispatcher=Dispatcher(
                journal, turn_queue, nodes, settings=fleet, clock=clock, unfinished_runs=unfinished
            ),
            settings=fleet,
            ended=ended,
        )
