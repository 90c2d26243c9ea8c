"""The leases of one monitor: on attempts, and on roles that only one monitor has.

Roles are learning, notifying people, handing out tasks and sending telemetry. Leases are stored in
the journal, and each is trusted only until it runs out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from midwatch_monitor.errors import JournalError, MidwatchError
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_supervisor.present.numbers import list_names

log = logging.getLogger(__name__)

LEARNER = "learner"
NOTIFIER = "notifier"
EXPORTER = "telemetry"
_NONE = 0
"""No lease has this incarnation, so writes that carry it are refused."""
_MOST_NAMED = 10
"""Attempts named in one line of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lease:
    """A lease that this monitor has."""

    incarnation: int
    until: float
    """When it runs out, by this process's monotonic clock; not later than in the journal."""


class HeldLeases:
    """The leases at one moment; each still runs out by itself."""

    def __init__(self, seconds: Callable[[], float], leases: Mapping[int, _Lease]) -> None:
        self._seconds = seconds
        self._leases = leases

    def holds(self, attempt: int) -> bool:
        """Whether the lease on an attempt has not run out."""
        lease = self._leases.get(attempt)
        return lease is not None and self._seconds() < lease.until

    def guard_of(self, attempt: int) -> int:
        """Return the incarnation of an attempt's lease; without a lease, one that is refused."""
        lease = self._leases.get(attempt)
        return _NONE if lease is None else lease.incarnation

    def now(self) -> "HeldLeases":
        """Return the leases as they are now."""
        return HeldLeases(self._seconds, self._leases)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChanges:
    """Leases that changed hands."""

    won: frozenset[int] = frozenset()
    """Held from now on; what happened before must be caught up on."""
    lost: frozenset[int] = frozenset()
    """Held until now, and now held by another monitor."""


class Leases(HeldLeases):
    """The leases of one monitor. If the journal cannot be reached, they run out here too."""

    def __init__(
        self,
        monitor_leases: MonitorLeases,
        *,
        holder: str,
        lease_seconds: float,
        seconds: Callable[[], float],
    ) -> None:
        """Lease for `lease_seconds` at a time; `seconds` is a monotonic clock."""
        super().__init__(seconds, {})
        self._leases: Mapping[int, _Lease] = {}
        self._monitor_leases = monitor_leases
        self._holder = holder
        self._lease_seconds = lease_seconds

    async def take(self, attempts: Collection[int]) -> LeaseChanges:
        """Renew or take the leases of these attempts, where possible. Raises JournalError."""
        until = self._seconds() + self._lease_seconds
        taken = await self._monitor_leases.take(
            attempts, holder=self._holder, seconds=self._lease_seconds
        )
        before = self.now()
        lost = frozenset(self._leases.keys() & set(attempts) - taken.keys())
        self.forget(attempts)
        new = {id: _Lease(incarnation=each, until=until) for id, each in taken.items()}
        self._leases = {**self._leases, **new}
        # A lease that had run out here counts as won, because it was not acted upon meanwhile.
        same = {id for id, each in taken.items() if before.guard_of(id) == each}
        return LeaseChanges(
            won=frozenset(taken) - {id for id in same if before.holds(id)},
            lost=lost,
        )

    async def take_over_expired(self, attempts: Collection[int]) -> LeaseChanges:
        """Take those attempts whose holder did not renew its lease in time. Raises JournalError."""
        others = [each for each in attempts if each not in self._leases]
        return await self.take(await self._monitor_leases.run_out(others))

    async def finish(self, attempts: Collection[int]) -> None:
        """End the leases of attempts that need no monitor any more. Raises JournalError."""
        mine = [each for each in attempts if each in self._leases]
        if mine:
            await self._monitor_leases.finish(mine, holder=self._holder)
            self.forget(mine)

    def forget(self, attempts: Collection[int]) -> None:
        """Stop acting on these attempts, and let their leases run out."""
        gone = set(attempts)
        self._leases = {id: lease for id, lease in self._leases.items() if id not in gone}

    async def release(self) -> None:
        """Release all leases at once. Raises JournalError."""
        self._leases = {}
        await self._monitor_leases.release(holder=self._holder)


async def log_lease_changes(nodes: Nodes, changes: LeaseChanges, *, late: bool) -> None:
    """Log what was lost, and what was won from a monitor that was `late` to renew its leases.

    Raises JournalError.
    """
    won = changes.won if late else frozenset[int]()
    if not (changes.lost or won):
        return
    known = await nodes.named(changes.lost | won)

    def names(attempts: Collection[int]) -> str:
        found = [known[id].name if id in known else f"attempt {id}" for id in sorted(attempts)]
        return list_names(found, _MOST_NAMED)

    if changes.lost:
        log.warning("another monitor has taken over: %s", names(changes.lost))
    if won:
        log.info("taken over from a monitor that did not renew its leases: %s", names(won))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """A role was taken or left."""

    name: str
    held: bool


class LeaderRole:
    """One role: taken whenever nobody has it, and left when another monitor has it."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        take: Callable[[str], Awaitable[bool]],
        lease_seconds: float,
        tell: Callable[[RoleChange], None],
    ) -> None:
        """Run `work` while the role is held; restart it if it ends or fails.

        `take` takes or renews a role for `lease_seconds`, and returns whether it is ours.
        """
        self._name = name
        self._work = work
        self._take = take
        self._lease_seconds = lease_seconds
        self._tell = tell
        self._working: asyncio.Task[None] | None = None
        self._until = 0.0
        self._loop = asyncio.get_running_loop()
        self._expiry: asyncio.TimerHandle | None = None

    async def keep(self) -> None:
        """Take, renew and leave the role, until canceled."""
        try:
            while True:
                began = self._loop.time()
                if await self._take_lease():
                    self._start_work()
                else:
                    if self._working is not None:
                        log.warning("the role %s was given up: its lease ran out", self._name)
                    await self._stop_work()
                passed = self._loop.time() - began
                await asyncio.sleep(max(0.0, self._lease_seconds / 3 - passed))
        finally:
            await self._stop_work()

    async def _take_lease(self) -> bool:
        """Whether this process has the role; without an answer, until its lease has run out."""
        began = self._loop.time()
        left = self._until - began if self._working else self._lease_seconds
        try:
            async with asyncio.timeout(left):
                taken = await self._take(self._name)
        except (TimeoutError, JournalError) as error:
            log.debug("the role %s cannot be renewed: %s", self._name, error)
            return self._loop.time() < self._until
        self._until = began + self._lease_seconds if taken else 0.0
        return taken

    def _start_work(self) -> None:
        if self._working is None:
            self._tell(RoleChange(name=self._name, held=True))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._log_errors())
        # Cancels the work even if this process was suspended for longer than its lease.
        self._set_expiry(self._loop.call_at(self._until, self._working.cancel))

    def _set_expiry(self, expiry: asyncio.TimerHandle | None) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = expiry

    async def _log_errors(self) -> None:
        try:
            await self._work()
        except MidwatchError as error:
            log.warning("%s stops for now: %s", self._name, error)
        except Exception:  # a failure here must not stop the work
            log.exception("%s failed and will be restarted", self._name)

    async def _stop_work(self) -> None:
        if self._working is None:
            return
        self._set_expiry(None)
        self._working.cancel()
        await asyncio.wait({self._working})
        self._working = None
        self._tell(RoleChange(name=self._name, held=False))


def dispatch_of(fleet: str) -> str:
    """Return the role of handing out tasks in a fleet; several fleets may share a journal."""
    return f"dispatch {fleet}"
