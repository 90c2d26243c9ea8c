"""The attempts that one monitor holds: leases in the journal, and how long they can be trusted."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from midwatch_monitor.journal.fleet.watches import Watches

_NONE = 0
"""No lease has this incarnation, so that what carries it is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grip:
    """A lease that one has."""

    incarnation: int
    until: float
    """By this process's own clock that never goes back; no later than in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What was held at one moment; it still runs out by itself."""

    seconds: Callable[[], float]
    grips: Mapping[int, _Grip] = field(default_factory=dict[int, _Grip])

    def holds(self, attempt: int) -> bool:
        """Whether the lease on an attempt has not run out."""
        grip = self.grips.get(attempt)
        return grip is not None and self.seconds() < grip.until

    def guard_of(self, attempt: int) -> int:
        """The incarnation of the lease on an attempt; where there is none, one that is refused."""
        grip = self.grips.get(attempt)
        return _NONE if grip is None else grip.incarnation

    def now(self) -> "Held":
        """It does not change."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnover:
    """What changed hands."""

    won: frozenset[int] = frozenset()
    """Held from now on: what was missed until now is to be looked at."""
    lost: frozenset[int] = frozenset()
    """Held until now, and now by another."""


class Leases:
    """The leases of one monitor. While the journal cannot be reached, they run out here too."""

    def __init__(
        self, watches: Watches, *, holder: str, lease_seconds: float, seconds: Callable[[], float]
    ) -> None:
        """Lease for `lease_seconds` at a time; `seconds` is a clock that never goes back."""
        self._watches = watches
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._seconds = seconds
        self._held = Held(seconds=seconds)

    def holds(self, attempt: int) -> bool:
        """Whether this monitor may act on an attempt now."""
        return self._held.holds(attempt)

    def guard_of(self, attempt: int) -> int:
        """The incarnation of the lease on an attempt; where there is none, one that is refused."""
        return self._held.guard_of(attempt)

    def now(self) -> Held:
        """What is held at this moment."""
        return self._held

    async def take(self, attempts: Collection[int]) -> Turnover:
        """Renew or take what can be had of these. Raises JournalError."""
        until = self._seconds() + self._lease_seconds
        taken = await self._watches.take(attempts, holder=self._holder, seconds=self._lease_seconds)
        before = self._held
        kept = {id: grip for id, grip in before.grips.items() if id not in set(attempts)}
        new = {id: _Grip(incarnation=each, until=until) for id, each in taken.items()}
        self._held = Held(seconds=self._seconds, grips=kept | new)
        # One that had run out here was not acted upon meanwhile, though nobody else took it.
        same = {id for id, each in taken.items() if before.guard_of(id) == each}
        return Turnover(
            won=frozenset(taken) - {id for id in same if before.holds(id)},
            lost=frozenset(before.grips.keys() & set(attempts) - taken.keys()),
        )

    async def succeed(self, attempts: Collection[int]) -> Turnover:
        """Take those of these whose holder did not renew them in time. Raises JournalError."""
        others = [each for each in attempts if each not in self._held.grips]
        return await self.take(await self._watches.run_out(others))

    async def finish(self, attempts: Collection[int]) -> None:
        """Nobody needs to hold these any more. Raises JournalError."""
        mine = [each for each in attempts if each in self._held.grips]
        if mine:
            await self._watches.finish(mine, holder=self._holder)
            self.forget(mine)

    def forget(self, attempts: Collection[int]) -> None:
        """Act on these no more, and let their leases run out."""
        gone = set(attempts)
        grips = {id: grip for id, grip in self._held.grips.items() if id not in gone}
        self._held = Held(seconds=self._seconds, grips=grips)

    async def release(self) -> None:
        """Let others take everything at once. Raises JournalError."""
        self._held = Held(seconds=self._seconds)
        await self._watches.release(holder=self._holder)
