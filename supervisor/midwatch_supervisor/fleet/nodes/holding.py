"""What a node has in hand, for who wants to know what it waits for before it leaves."""

import asyncio
from dataclasses import dataclass

from midwatch_supervisor.fleet.nodes.turn import Outcome
from midwatch_supervisor.fleet.nodes.turn_pool import Take


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A turn that a node had in hand, and has no more."""

    task: int
    outcome: Outcome | None
    """`None` where it was given back in the middle of the work."""


class Holding:
    """The tasks whose turns are in hand. Once it is followed, their ends are kept to be read."""

    def __init__(self) -> None:
        self._tasks: set[int] = set()
        self._ends: asyncio.Queue[TurnEnded | None] | None = None

    @property
    def tasks(self) -> frozenset[int]:
        """By their ids."""
        return frozenset(self._tasks)

    def around(self, take: Take) -> Take:
        """Take turns as `take` does, noting what is in hand meanwhile."""

        async def noted(task: int) -> Outcome:
            self._tasks.add(task)
            outcome: Outcome | None = None
            try:
                outcome = await take(task)
                return outcome
            finally:
                self._tasks.discard(task)
                if self._ends is not None:
                    self._ends.put_nowait(TurnEnded(task=task, outcome=outcome))

        return noted

    def follow(self) -> None:
        """Keep what ends from now on."""
        self._ends = self._ends or asyncio.Queue()

    def close(self) -> None:
        """Nothing more will end."""
        if self._ends is not None:
            self._ends.put_nowait(None)

    async def ended(self) -> TurnEnded | None:
        """The next end since `follow`; `None` once there will be none."""
        return None if self._ends is None else await self._ends.get()
