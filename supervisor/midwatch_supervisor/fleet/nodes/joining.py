"""A node joins a fleet: everything that it needs is opened, and closed again."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from midwatch_agents.left_processes import end_leftovers_below
from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import find_walls
from midwatch_monitor.bus import bus_for
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_supervisor.fleet.nodes.cleaning import Cleaner, cleaned
from midwatch_supervisor.fleet.nodes.holding import Holding
from midwatch_supervisor.fleet.nodes.identity import Identity
from midwatch_supervisor.fleet.nodes.node import Node, status_of
from midwatch_supervisor.fleet.nodes.turn import Machine, take_turn
from midwatch_supervisor.fleet.queue.dispatch import Dispatcher
from midwatch_supervisor.fleet.queue.queue import Handout
from midwatch_supervisor.fleet.queue.unfinished_runs import UnfinishedRuns
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_tools.watch import now

ALIVE_BEATS = 3
"""A name is taken as long as its node was heard within so many beats."""


@asynccontextmanager
async def joined(
    journal: Journal,
    location: str,
    who: Identity,
    *,
    home: Path,
    settings: Settings,
    environ: Mapping[str, str],
    holding: Holding | None = None,
) -> AsyncGenerator[Node]:
    """A node on the journal at `location`, ready to run, that works below `home`.

    `holding` is told what it has in hand.

    Raises as `find_walls` and `Handout.open` do, and UsageError where its name is taken.
    """
    fleet = settings.fleet
    walls = await find_walls(settings.run.sandbox)
    status = status_of(who, slots=fleet.slots, labels=fleet.labels, fleet=fleet.name)
    async with AsyncExitStack() as stack:
        handout = await _opened(stack, location, fleet.name)
        nodes, dockets = Nodes(journal, fleet=fleet.name), UnfinishedRuns(journal)
        clock = await stack.enter_async_context(journal_clock(journal, now))
        # Before the broker hears of us: it would let go of who bears the name already.
        bus = bus_for(fleet, name=who.name, status=status, environ=environ)
        await nodes.enter(status, alive_seconds=ALIVE_BEATS * fleet.beat_seconds)
        await end_leftovers_below(home / "work")  # of a start of this node that was killed
        await stack.enter_async_context(bus)
        depot = SnapshotStore(
            journal=journal, home=home, node=who.name, settings=fleet, clock=clock
        )
        cleaner = Cleaner(journal=journal, depot=depot, home=home, clock=clock)
        await stack.enter_async_context(cleaned(cleaner))
        machine = Machine(
            journal=journal,
            bus=bus,
            settings=settings,
            identity=who,
            home=home,
            walls=walls,
            breakers=Breakers(settings.provider),
            dockets=dockets,
            depot=depot,
            clock=clock,
        )
        dispatcher = Dispatcher(
            journal, handout, nodes, settings=fleet, clock=clock, dockets=dockets
        )
        yield Node(
            status,
            take=(holding or Holding()).around(partial(take_turn, machine)),
            nodes=nodes,
            bus=bus,
            handout=handout,
            dispatcher=dispatcher,
            settings=fleet,
            journal=journal.name,
        )


async def _opened(stack: AsyncExitStack, location: str, fleet: str) -> Handout:
    """The queues of a fleet, until the stack ends."""
    handout = await Handout.open(location, fleet=fleet)
    stack.push_async_callback(handout.close)
    return handout
