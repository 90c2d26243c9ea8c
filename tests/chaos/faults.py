"""What goes wrong, in turn: every kind of process is killed, a node is cut off; a person acts."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from fleet_members import FleetMember

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Attempt, AttemptTransition, Change, Lifecycle
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_tests.proxy import Cut
from midwatch_tests.verdict import Outage


class Server(Protocol):
    """A server that can be killed, with its data left as they are. Blocks."""

    def kill(self) -> None: ...

    def restart(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What may be killed or cut off."""

    nodes: Sequence[FleetMember]
    monitors: Sequence[FleetMember]
    database: Server
    broker: Server


@dataclass(slots=True, kw_only=True)
class FaultInjector:
    """Makes things go wrong, one after the other. What it takes down, it puts up again."""

    targets: Targets
    chance: random.Random
    mean_pause: float
    """Seconds between one thing that goes wrong and the next, on average."""
    cut_seconds: float
    """How long a node is cut off; longer than it takes to be given up."""
    say: Callable[[str], None]
    kills: Counter[str] = field(default_factory=Counter[str])
    cuts: int = 0
    outages: list[Outage] = field(default_factory=list[Outage])

    async def inject(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Let things go wrong in turn, for so long or until all is over.

        What has begun to go wrong by then is put right again.
        """
        end = asyncio.get_running_loop().time() + seconds
        acts: list[Callable[[], Awaitable[None]]] = []
        while asyncio.get_running_loop().time() < end and not is_over():
            await self._pause(self.mean_pause)
            acts = acts or self._round()
            await acts.pop(0)()

    def _round(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._kill_node,
            self._kill_monitor,
            self._kill_broker,
            self._kill_database,
            lambda: self._cut_off(Cut.HOLD),
            self._kill_node,
            self._kill_both_monitors,
            lambda: self._cut_off(Cut.REFUSE),
        ]

    async def _pause(self, mean: float) -> None:
        await asyncio.sleep(self.chance.uniform(0.5 * mean, 1.5 * mean))

    async def _kill_node(self) -> None:
        await self._kill("node", [self.chance.choice(self.targets.nodes)])

    async def _kill_monitor(self) -> None:
        await self._kill("monitor", [self.chance.choice(self.targets.monitors)])

    async def _kill_both_monitors(self) -> None:
        await self._kill("monitor", self.targets.monitors)

    async def _kill(self, what: str, members: Sequence[FleetMember]) -> None:
        for member in members:
            if await member.process.kill():
                self.kills[what] += 1
                self.say(f"killed {member.name}")
        await self._pause(0.5 * self.mean_pause)
        for member in members:
            member.process.start()

    async def _kill_broker(self) -> None:
        await self._kill_server("broker", self.targets.broker)

    async def _kill_database(self) -> None:
        await self._kill_server("database", self.targets.database)

    async def _kill_server(self, what: str, server: Server) -> None:
        began = time.monotonic()
        await asyncio.to_thread(server.kill)
        self.kills[what] += 1
        self.say(f"killed the {what}")
        try:
            await self._pause(0.5 * self.mean_pause)
        finally:
            await asyncio.to_thread(server.restart)
        if what == "database":
            self.outages.append(Outage(began=began, ended=time.monotonic()))

    async def _cut_off(self, how: Cut) -> None:
        node = self.chance.choice(self.targets.nodes)
        self.say(f"cut off {node.name} ({how})")
        self.cuts += 1
        began = time.monotonic()
        await node.cut_off(how)
        try:
            await asyncio.sleep(self.cut_seconds)
        finally:
            await node.restore()
            self.outages.append(Outage(began=began, ended=time.monotonic(), process=node.name))
            self.say(f"let {node.name} back")


@dataclass(slots=True, kw_only=True)
class Operator:
    """Somebody who talks to workers, holds one now and then, and lets those go on that wait."""

    journal: Journal
    chance: random.Random
    every: float
    """Seconds between two acts, on average."""
    acts: int = 0

    async def work(self) -> None:
        """Act until cancelled. While the database is away nothing can be said."""
        operator = OperatorActions(self.journal, author="chaos")
        while True:
            await asyncio.sleep(self.chance.uniform(0.5 * self.every, 1.5 * self.every))
            with suppress(JournalError):
                await self._act(operator)

    async def _act(self, operator: OperatorActions) -> None:
        standing = await self._unfinished_attempts()
        parked = [each for each, state in standing if state is Lifecycle.INPUT_REQUIRED]
        for attempt in parked:
            await operator.act(attempt, Action.RESUME, "Go on as you think best.")
            self.acts += 1
        working = [each for each, state in standing if state is Lifecycle.WORKING]
        if working:
            action = self.chance.choices((Action.NUDGE, Action.PAUSE), weights=(3, 1))[0]
            await operator.act(self.chance.choice(working), action, "Mind the tests.")
            self.acts += 1

    async def _unfinished_attempts(self) -> list[tuple[Attempt, Lifecycle]]:
        """The attempts that are not over, and where they stand."""
        last: dict[int, Lifecycle] = {}
        async for entry in self.journal.all_entries(kinds=(AttemptTransition, Change)):
            record = entry.record
            if entry.attempt is not None and isinstance(record, AttemptTransition | Change):
                last[entry.attempt] = record.lifecycle or last[entry.attempt]
        going = {id: state for id, state in last.items() if not state.over}
        return [(each, going[each.id]) for each in await self.journal.attempts_with(going)]
