"""What one monitor of all does at a time: learn, call people, hand out tasks, send telemetry."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from midwatch_monitor.bus import Bus, Subscription
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import JournalError, MidwatchError, MissingExtraError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.recorder import Clock

if TYPE_CHECKING:
    from midwatch_supervisor.fleet.queue.dispatch import Dispatcher

log = logging.getLogger(__name__)

LEARNER = "learner"
NOTIFIER = "notifier"
EXPORTER = "telemetry"
_LOOK_SECONDS = 1.0
"""How often tasks are handed out without a hint."""
_BREATH = 0.25
"""Seconds between two looks, however many hints there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """A post was taken or left."""

    name: str
    held: bool


class RoleLeases(Protocol):
    """Who gives a post to one of those that ask; see `Watches`."""

    async def take_post(self, name: str, *, holder: str, seconds: float) -> int | None: ...


class LeaderRole:
    """One post: taken whenever nobody has it, and left when another does."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        watches: RoleLeases,
        holder: str,
        lease_seconds: float,
        tell: Callable[[RoleChange], None],
    ) -> None:
        """Do `work` while the post is held; where it ends or fails, it is begun again."""
        self._name = name
        self._work = work
        self._watches = watches
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._tell = tell
        self._working: asyncio.Task[None] | None = None
        self._until = 0.0
        self._loop = asyncio.get_running_loop()
        self._expiry: asyncio.TimerHandle | None = None

    async def keep(self) -> None:
        """Take, renew and leave the post, until cancelled."""
        try:
            while True:
                began = self._loop.time()
                if await self._held():
                    self._begin()
                else:
                    if self._working is not None:
                        log.warning("%s is left to others: its lease ran out", self._name)
                    await self._leave()
                passed = self._loop.time() - began
                await asyncio.sleep(max(0.0, self._lease_seconds / 3 - passed))
        finally:
            await self._leave()

    async def _held(self) -> bool:
        """Whether the post is this process's; without an answer, until the lease has run out."""
        began = self._loop.time()
        left = self._until - began if self._working else self._lease_seconds
        try:
            async with asyncio.timeout(left):
                taken = await self._watches.take_post(
                    self._name, holder=self._holder, seconds=self._lease_seconds
                )
        except (TimeoutError, JournalError) as error:
            log.debug("the post %s cannot be renewed: %s", self._name, error)
            return self._loop.time() < self._until
        self._until = began + self._lease_seconds if taken else 0.0
        return taken is not None

    def _begin(self) -> None:
        if self._working is None:
            self._tell(RoleChange(name=self._name, held=True))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._try())
        # A process that was stopped for longer than its lease finds this before its work goes on.
        self._expire(self._loop.call_at(self._until, self._working.cancel))

    def _expire(self, expiry: asyncio.TimerHandle | None) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = expiry

    async def _try(self) -> None:
        try:
            await self._work()
        except MidwatchError as error:
            log.warning("%s stops for now: %s", self._name, error)
        except Exception:  # the watch may fail; the work must not
            log.exception("%s failed and is begun again", self._name)

    async def _leave(self) -> None:
        if self._working is None:
            return
        self._expire(None)
        self._working.cancel()
        await asyncio.wait({self._working})
        self._working = None
        self._tell(RoleChange(name=self._name, held=False))


def dispatch_of(fleet: str) -> str:
    """The post of handing out in a fleet; several fleets may share a journal."""
    return f"dispatch {fleet}"


def no_dispatch(location: str) -> str:
    """Why nothing can be handed out from a journal; empty where it can."""
    from midwatch_supervisor.fleet.queue.queue import system_url

    try:
        system_url(location)
        if find_spec("dbos") is None:
            raise MissingExtraError("to hand out tasks", "fleet")
    except UsageError as error:
        return str(error)
    return ""


@asynccontextmanager
async def _dispatcher(
    journal: Journal, location: str, settings: FleetSettings, clock: Clock
) -> AsyncGenerator["Dispatcher"]:
    """A dispatcher of a fleet, with its queues open. Raises as `TurnQueue.open`."""
    from midwatch_supervisor.fleet.queue.dispatch import Dispatcher
    from midwatch_supervisor.fleet.queue.queue import TurnQueue

    turn_queue = await TurnQueue.open(location, fleet=settings.name)
    try:
        nodes = Nodes(journal, fleet=settings.name)
        yield Dispatcher(journal, turn_queue, nodes, settings=settings, clock=clock)
    finally:
        await turn_queue.close()


async def dispatch(
    journal: Journal, location: str, *, bus: Bus, settings: FleetSettings, clock: Clock
) -> None:
    """Hand out tasks, once a second and on hints, until cancelled. Raises as `TurnQueue.open`."""
    async with (
        _dispatcher(journal, location, settings, clock) as dispatcher,
        bus.subscribe() as hints,
    ):
        trouble = ""
        while True:
            trouble = await _look(dispatcher.look(), trouble)
            await asyncio.sleep(_BREATH)
            await called(hints, _LOOK_SECONDS - _BREATH)


async def called(hints: Subscription, seconds: float) -> None:
    """Wait for a hint of what may let a task go on, so many seconds at most."""
    from midwatch_supervisor.fleet.queue.ready_tasks import KINDS

    kinds = {kind_of(kind) for kind in KINDS}
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not hints.closed:
                if any(hint.kind in kinds for hint in await hints.wait()):
                    return


async def _look(look: Coroutine[Any, Any, None], trouble: str) -> str:
    """Look; why that failed, which is told where it was not the `trouble` before."""
    try:
        await look
    except JournalError as error:  # the next look tries again
        if not trouble:
            log.warning("nothing is handed out at present: %s", error)
        return str(error)
    return ""


async def dispatch_once(
    journal: Journal, location: str, *, settings: FleetSettings, clock: Clock
) -> None:
    """Hand out what can go on now. Raises as `TurnQueue.open` and `Dispatcher.look`."""
    async with _dispatcher(journal, location, settings, clock) as dispatcher:
        await dispatcher.look()
