"""A chaos run, from the first server to the last count."""

import asyncio
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from faults import FaultInjector, Operator, Targets
from fleet_members import (
    LOST_AFTER,
    FleetMember,
    Surroundings,
    answer_pause,
    kill_leftover_commands,
    run_command,
    write_project,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart
from sqlalchemy import Connection, select

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_tests.aftermath import Evidence, Mark, counted
from midwatch_tests.broker import Broker
from midwatch_tests.database import Database
from midwatch_tests.verdict import Findings, unexpected_exits

NODES, MONITORS = 3, 2
QUIET_SECONDS = 120.0
"""Work of which nothing was recorded for so long has stopped. The longest pause that is meant to be
is a tenth of it: a node that is cut off until it is given up, and the start of another."""
MOVES: tuple[type[r.Record], ...] = (
    *(r.Step, r.AttemptTransition, r.TaskTransition, r.Acceptance),
    *(r.Escalation, r.Decision),
)
"""What is recorded as work gets on. What a person says is none: lost work is spoken to as well."""
LATE = "the time is up, and work still gets on"
START_SECONDS = 300.0
"""For the nodes to begin, at most."""
SHARE = 0.6
"""Of the time in which things go wrong."""
LONGEST = 10.0
"""Work that gets on is waited for, until it has taken so many times as long as it should …"""
LONGEST_SECONDS = 300.0
"""… and so long besides."""
STOP_SECONDS = 90.0
"""For a node to leave in order, which takes 7 s by its configuration."""
READ_SECONDS = 120.0
"""For what is read from the journal in the end."""
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for."""

    attempts: int
    seconds: float
    seed: int
    quiet: bool
    """Whether nothing is said meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    findings: Findings
    kills: dict[str, int]
    cuts: int
    hints: dict[str, int]
    acts: int
    seconds: float


@dataclass(slots=True)
class Progress:
    """How far the work has got by the journal."""

    journal: Journal
    nodes: Nodes
    up: int = 0
    """Nodes."""
    over: dict[int, bool] = field(default_factory=dict[int, bool])
    """By task."""
    open: set[int] = field(default_factory=set[int])
    """Escalations that a monitor has still to see to."""
    _last: int = 0

    async def read_nodes(self) -> bool:
        """Whether another one has come up."""
        before = self.up
        self.up = sum(node.state is r.NodeState.UP for node in await self.nodes.all())
        return self.up > before

    async def read(self) -> bool:
        """Whether work has got on since."""
        before = self._last
        async for entry in self.journal.all_entries(before, kinds=MOVES):
            self._last, record = entry.id, entry.record
            if isinstance(record, r.TaskTransition):
                self.over[entry.task] = record.lifecycle.over
            if isinstance(record, r.Escalation):
                closed = record.state is r.EscalationState.CLOSED
                (self.open.discard if closed else self.open.add)(record.id)
        return self._last > before


@dataclass(slots=True, kw_only=True)
class ChaosRun:
    """The servers, the processes, and what becomes of them."""

    folder: Path
    plan: Plan
    members: list[FleetMember] = field(default_factory=list[FleetMember])
    injector: FaultInjector | None = None
    operator: Operator | None = None
    ending: bool = False
    """Whether nothing more is to go wrong."""
    left: int = 0
    """Processes of workers that outlived all nodes."""

    async def perform(self) -> Outcome:
        """All of it. Whatever happens, what was started has ended when this returns or raises."""
        began, failure, found = time.monotonic(), "", Evidence(tasks=[], attempts=[], entries=[])
        async with AsyncExitStack() as stack:
            try:
                found = await self._gather_evidence(stack)
            except Exception as error:  # a run that fails is reported like any other
                traceback.print_exc()
                failure = f"{type(error).__name__}: {error}"
        return self._outcome(found, failure, seconds=time.monotonic() - began)

    async def _gather_evidence(self, stack: AsyncExitStack) -> Evidence:
        surroundings, journal = await self._prepare(stack)
        try:
            late = await self._act(journal)
        finally:
            await asyncio.gather(*(each.process.stop(STOP_SECONDS) for each in self.members))
            self.left = kill_leftover_commands(surroundings)
        self._say("all processes have ended")
        async with asyncio.timeout(READ_SECONDS):
            found = await read_evidence(journal, surroundings.marks, late=late)
        write_log(found, self.folder / "journal.txt")
        return found

    def _outcome(self, found: Evidence, failure: str, *, seconds: float) -> Outcome:
        kept = [member.process for member in self.members]
        outages = self.injector.outages if self.injector else ()
        exits = {each.name: unexpected_exits(each.name, each.exits, outages) for each in kept}
        return Outcome(
            findings=Findings(
                counts=counted(found),
                exits={name: codes for name, codes in exits.items() if codes},
                ended=[each.name for each in kept if each.stubborn],
                left=self.left,
                failure=failure,
            ),
            kills=dict(self.injector.kills if self.injector else Counter[str]()),
            cuts=self.injector.cuts if self.injector else 0,
            hints=_hints(self.members),
            acts=self.operator.acts if self.operator else 0,
            seconds=seconds,
        )

    async def _prepare(self, stack: AsyncExitStack) -> tuple[Surroundings, Journal]:
        """Start the servers, submit the tasks, start all nodes and all monitors."""
        for name in ("logs", "marks"):
            (self.folder / name).mkdir()
        plan = self.plan
        pause = answer_pause(attempts=plan.attempts, nodes=NODES, seconds=plan.seconds)
        tasks = write_project(self.folder, attempts=plan.attempts, pause=pause)
        database = await asyncio.to_thread(Database.start)
        stack.push_async_callback(asyncio.to_thread, database.stop)
        broker = await asyncio.to_thread(Broker, self.folder / "broker")
        stack.push_async_callback(asyncio.to_thread, broker.stop)
        url = await asyncio.to_thread(database.create, "chaos")
        surroundings = Surroundings(
            folder=self.folder, journal=url, database=database.port, broker=broker.port
        )
        journal = await stack.enter_async_context(await Journal.open(url))
        await run_command(
            surroundings, "submit", str(tasks), "--config", f"{self.folder}/midwatch.yaml"
        )
        names = [("node", f"node-{at + 1}") for at in range(NODES)]
        names += [("monitor", f"monitor-{at + 1}") for at in range(MONITORS)]
        for at, (kind, name) in enumerate(names):
            member = FleetMember(kind, name, surroundings, seed=1000 * plan.seed + at)
            self.members.append(await stack.enter_async_context(member))
        nodes, monitors = self.members[:NODES], self.members[NODES:]
        self._make_injector_and_operator(
            Targets(nodes=nodes, monitors=monitors, database=database, broker=broker), journal
        )
        return surroundings, journal

    def _make_injector_and_operator(self, targets: Targets, journal: Journal) -> None:
        plan = self.plan
        self.injector = FaultInjector(
            targets=targets,
            chance=random.Random(plan.seed),
            mean_pause=min(5.0, max(1.5, plan.seconds / 40)),
            cut_seconds=2 * LOST_AFTER,
            say=self._say,
        )
        self.operator = Operator(
            journal=journal, chance=random.Random(plan.seed + 1), every=max(2.0, plan.seconds / 40)
        )

    async def _act(self, journal: Journal) -> bool:
        """Inject the faults, then wait until all is over; whether work still got on then."""
        assert self.operator is not None
        progress = Progress(journal, Nodes(journal))
        await self._wait(progress.read_nodes, lambda: progress.up == NODES, START_SECONDS)
        self._say(f"{progress.up} nodes are there")
        working = asyncio.create_task(self.operator.work())
        injecting = asyncio.create_task(self._inject_faults(SHARE * self.plan.seconds))

        def is_over() -> bool:
            if injecting.done():
                injecting.result()
            return len(progress.over) >= self.plan.attempts and all(progress.over.values())

        try:
            why = await self._wait(progress.read, is_over)
            self._say(why or "all tasks are over")
            self.ending = True
            await injecting
            if not why:
                await self._wait(progress.read, lambda: not progress.open)
        finally:
            # The injector is not cancelled: what it has taken down it puts up again.
            self.ending = True
            working.cancel()
            await asyncio.gather(working, injecting, return_exceptions=True)
        return why == LATE

    async def _inject_faults(self, seconds: float) -> None:
        assert self.injector is not None
        await self.injector.inject(seconds, lambda: self.ending)
        self._say("nothing more goes wrong")

    async def _wait(
        self,
        look: Callable[[], Awaitable[bool]],
        done: Callable[[], bool],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> str:
        """Look again and again, while the database comes and goes, until it is done.

        As long as each look finds something new, it goes on. Answers why it is not done, if so.
        """
        began = moved = time.monotonic()
        while True:
            with suppress(JournalError):
                if await look():
                    moved = time.monotonic()
            if done():
                return ""
            now = time.monotonic()
            if now - moved > quiet_seconds:
                return f"nothing has moved for {quiet_seconds:g} s"
            if now - began > LONGEST * self.plan.seconds + LONGEST_SECONDS:
                return LATE
            await asyncio.sleep(_LOOK_SECONDS)

    def _say(self, text: str) -> None:
        if not self.plan.quiet:
            sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")


def _hints(members: Sequence[FleetMember]) -> dict[str, int]:
    tallies = [member.broker.tally for member in members]
    return {
        "seen": sum(each.seen for each in tallies),
        "dropped": sum(each.dropped for each in tallies),
        "repeated": sum(each.repeated for each in tallies),
        "reordered": sum(each.reordered for each in tallies),
    }


# -- what is left in the end, read from the journal and from the marks -----------------------------


async def read_evidence(journal: Journal, marks: Path, *, late: bool) -> Evidence:
    """All of it."""
    tasks = [task for run in await journal.runs() for task in await journal.tasks(run.id)]
    attempts = [each for task in tasks for each in await journal.attempts(task.id)]
    return Evidence(
        tasks=tasks,
        attempts=attempts,
        entries=[entry async for entry in journal.all_entries()],
        incarnations=await journal.read(_incarnations),
        prompts={each.id: await _prompts(journal, each.id) for each in attempts},
        marks=_marks(marks, tasks, attempts),
        late=late,
    )


def write_log(evidence: Evidence, file: Path) -> None:
    """Write the whole log for people who look for what went wrong, an entry a line."""
    with file.open("w") as lines:
        for each in evidence.entries:
            place = f"{each.id} {each.at:%H:%M:%S.%f} task={each.task} attempt={each.attempt}"
            lines.write(f"{place} seq={each.seq} {each.record!r}\n")


def _incarnations(connection: Connection) -> dict[int, int]:
    lease = tables.lease
    rows = connection.execute(select(lease.c.attempt, lease.c.incarnation))
    return {row.attempt: row.incarnation for row in rows}


async def _prompts(journal: Journal, attempt: int) -> list[str]:
    return [
        str(part.content)
        for each in await journal.messages(attempt)
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def _marks(
    folder: Path, tasks: Sequence[r.Task], attempts: Sequence[r.Attempt]
) -> Mapping[int, list[Mark]]:
    """By attempt. A log is called as its worktree is: the task and the attempt's number."""
    names = {task.id: task.name for task in tasks}
    found: dict[int, list[Mark]] = {}
    for attempt in attempts:
        log = folder / f"{names[attempt.task]}-{attempt.number}.log"
        lines = log.read_text().splitlines() if log.exists() else []
        found[attempt.id] = [_mark(line) for line in lines]
    return found


def _mark(line: str) -> Mark:
    label, _, process = line.partition(" ")
    return Mark(label=label, process=process)
