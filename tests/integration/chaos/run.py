"""Three nodes, two monitors, sixty attempts, and everything that can be killed is killed in turn.

Run it with `uv run python tests/integration/chaos/run.py [--json] [--minutes 4] [--attempts 60]
[--seed 1]`. It starts a PostgreSQL and a mosquitto of its own on loopback, ends all that it has
started, and prints what the journal says afterwards. It exits with 0 only if every attempt ended
once and nothing was lost, doubled or left out; else it names the folder with the logs.
"""

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "stage"))

from inquest import evidence, write_down
from players import Backdrop, Player, command, sweep
from scenery import LOST_AFTER, build, pace
from storm import Cast, Operator, Storm

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.nodes import Nodes
from midwatch_monitor.words import Escalation, EscalationState, NodeState, TaskState
from midwatch_stage.aftermath import Counts, counted
from midwatch_stage.broker import Broker
from midwatch_stage.database import Database

NODES, MONITORS = 3, 2
START_SECONDS = 90.0
"""For the nodes to begin."""
SHARE = 0.6
"""Of the time in which things go wrong."""
GRACE_SECONDS = 180.0
"""For work that is not over in its time; a machine may do much else."""
SETTLE_SECONDS = 15.0
"""After the last task is over, for what the monitors have still to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    counts: Counts
    kills: dict[str, int]
    cuts: int
    hints: dict[str, int]
    exits: dict[str, list[int]]
    """Codes with which a process ended that nobody killed."""
    acts: int
    left: int
    """Processes that had to be ended afterwards."""
    seconds: float

    @property
    def right(self) -> bool:
        """Whether all is as it must be."""
        return not self.counts.faults and self.counts.completed == self.counts.tasks


def main(words: Sequence[str] | None = None) -> int:
    """Run, and print what came of it."""
    given = _arguments().parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="midwatch-chaos-"))
    try:
        outcome = asyncio.run(_run(folder, given))
    except BaseException:
        sys.stderr.write(f"the logs are in {folder}\n")
        raise
    sys.stdout.write(_as_json(outcome) if given.json else _as_text(outcome))
    if outcome.right and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        sys.stderr.write(f"the logs are in {folder}\n")
    return 0 if outcome.right else 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument(
        "--minutes",
        type=float,
        default=4.0,
        help=f"how long, about; what is not over by then is waited for {GRACE_SECONDS:g} s at most",
    )
    parser.add_argument("--attempts", type=int, default=60, help="tasks")
    parser.add_argument("--seed", type=int, default=1, help="of what goes wrong, and when")
    parser.add_argument("--quiet-weather", action="store_true", help="nothing goes wrong")
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    return parser


async def _run(folder: Path, given: argparse.Namespace) -> Outcome:
    """Everything from the first server to the last count. An interruption ends it in order."""
    task = asyncio.current_task()
    assert task is not None
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    began = time.monotonic()
    for name in ("logs", "marks"):
        (folder / name).mkdir()
    pause = pace(attempts=given.attempts, nodes=NODES, seconds=60.0 * given.minutes)
    tasks = build(folder, attempts=given.attempts, pause=pause)
    async with AsyncExitStack() as stack:
        database = await asyncio.to_thread(Database.start)
        stack.push_async_callback(asyncio.to_thread, database.stop)
        broker = await asyncio.to_thread(Broker.start, folder / "broker")
        stack.push_async_callback(asyncio.to_thread, broker.stop)
        url = await asyncio.to_thread(database.create, "chaos")
        backdrop = Backdrop(folder=folder, journal=url, database=database.port, broker=broker.port)
        journal = await stack.enter_async_context(await Journal.open(url))
        await command(backdrop, "submit", str(tasks), "--config", str(folder / "midwatch.yaml"))
        play = Play(journal=journal, backdrop=backdrop, given=given)
        async with AsyncExitStack() as stage:
            players = await play.enter(stage)
            cast = Cast(
                nodes=players[:NODES], monitors=players[NODES:], database=database, broker=broker
            )
            storm, operator = await play.act(cast)
        left = sweep(backdrop)
        found = await evidence(journal, backdrop.marks)
        write_down(found, folder / "journal.txt")
        return Outcome(
            counts=counted(found),
            kills=dict(storm.kills),
            cuts=storm.cuts,
            hints=_hints(players),
            exits={each.name: each.exits for each in players if each.exits},
            acts=operator.acts,
            left=left,
            seconds=time.monotonic() - began,
        )


@dataclass(slots=True, kw_only=True)
class Play:
    """The processes, while they are alive."""

    journal: Journal
    backdrop: Backdrop
    given: argparse.Namespace
    over: bool = False
    """Whether all tasks are."""

    async def enter(self, stage: AsyncExitStack) -> list[Player]:
        """Start all nodes, then all monitors; they are dead when the stage is left."""
        stage.callback(sweep, self.backdrop)
        config = str(self.backdrop.folder / "midwatch.yaml")
        names = [f"node-{at + 1}" for at in range(NODES)]
        names += [f"monitor-{at + 1}" for at in range(MONITORS)]
        players = [
            Player(
                name,
                self.backdrop,
                *(name.partition("-")[0], "--name", name, "--config", config),
                seed=1000 * self.given.seed + at,
            )
            for at, name in enumerate(names)
        ]
        for player in players:
            await stage.enter_async_context(player)
        return players

    async def act(self, cast: Cast) -> tuple[Storm, Operator]:
        """Let the storm blow, then wait until all is over, and no longer than is allowed."""
        seconds = 60.0 * self.given.minutes
        storm = Storm(
            cast=cast,
            chance=random.Random(self.given.seed),
            calm=min(5.0, max(1.5, seconds / 40)),
            cut_seconds=2 * LOST_AFTER,
            say=self._say,
        )
        operator = Operator(
            journal=self.journal,
            chance=random.Random(self.given.seed + 1),
            every=max(2.0, seconds / 40),
        )
        await self._until(self._all_there, START_SECONDS)
        self._say("all nodes are there")
        working = asyncio.create_task(operator.work())
        blowing = asyncio.create_task(self._blow(storm, SHARE * seconds))
        try:
            await self._until(self._over, seconds + GRACE_SECONDS, meanwhile=blowing)
            self._say("all tasks are over" if self.over else "it takes too long")
            await blowing
            await self._until(self._settled, SETTLE_SECONDS)
        finally:
            for task in (working, blowing):
                task.cancel()
            await asyncio.gather(working, blowing, return_exceptions=True)
        return storm, operator

    async def _blow(self, storm: Storm, seconds: float) -> None:
        if not self.given.quiet_weather:
            await storm.blow(seconds, lambda: self.over)
            self._say("the storm is over")

    async def _until(
        self,
        happened: Callable[[], Awaitable[bool]],
        seconds: float,
        *,
        meanwhile: "asyncio.Task[None] | None" = None,
    ) -> None:
        """Wait until it is so, while the database comes and goes; no longer than is allowed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if meanwhile is not None and meanwhile.done():
                meanwhile.result()
            with suppress(JournalError):
                if await happened():
                    return
            await asyncio.sleep(0.5)

    async def _all_there(self) -> bool:
        nodes = await Nodes(self.journal).all()
        return sum(node.state is NodeState.UP for node in nodes) == NODES

    async def _over(self) -> bool:
        last: dict[int, bool] = {}
        async for entry in self.journal.all_entries(kinds=(TaskState,)):
            if isinstance(entry.record, TaskState):
                last[entry.task] = entry.record.lifecycle.over
        self.over = len(last) >= self.given.attempts and all(last.values())
        return self.over

    async def _settled(self) -> bool:
        """Whether nothing waits for a monitor any more."""
        open_: set[int] = set()
        async for entry in self.journal.all_entries(kinds=(Escalation,)):
            record = entry.record
            if isinstance(record, Escalation):
                closed = record.state is EscalationState.CLOSED
                (open_.discard if closed else open_.add)(record.id)
        return not open_

    def _say(self, text: str) -> None:
        if not self.given.json:
            sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")


def _hints(players: Sequence[Player]) -> dict[str, int]:
    tallies = [player.broker.tally for player in players]
    return {
        "seen": sum(each.seen for each in tallies),
        "dropped": sum(each.dropped for each in tallies),
        "repeated": sum(each.repeated for each in tallies),
        "reordered": sum(each.reordered for each in tallies),
    }


def _figures(outcome: Outcome) -> dict[str, object]:
    counts = outcome.counts
    return {
        "attempts": counts.attempts,
        "ended_once": counts.ended_once,
        "doubled": len(counts.doubled),
        "lost_interventions": len(counts.lost_interventions),
        "doubled_interventions": len(counts.doubled_interventions),
        "sequence_gaps": len(counts.sequence_gaps),
        "kills": sum(outcome.kills.values()),
        "killed": outcome.kills,
        "cuts": outcome.cuts,
        "hints": outcome.hints,
        "tasks": counts.tasks,
        "completed": counts.completed,
        "unended": len(counts.unended),
        "restarted": counts.restarted,
        "moved": counts.moved,
        "escalated": counts.alerted,
        "interventions": counts.interventions,
        "delivered": counts.delivered,
        "operator_acts": outcome.acts,
        "exits": outcome.exits,
        "seconds": round(outcome.seconds, 1),
    }


def _as_json(outcome: Outcome) -> str:
    return f"{json.dumps(_figures(outcome))}\n"


def _as_text(outcome: Outcome) -> str:
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in _figures(outcome).items()]
    lines += [f"WRONG: {fault}" for fault in outcome.counts.faults]
    lines.append("all is right" if outcome.right else "not all is right")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
