"""Events a second the whole way: JSON, validated, judged, stored, acknowledged by a broker.

Run it with `uv run python tests/benchmarks/ingest.py [--json] [--quick] [--pairs 9] [--kind KIND]`.
Everything is real: the recorder with all rules, the journal in SQLite, `MqttBus`, a mosquitto with
the shipped configuration. Attempts of 300 events send them 100 at a time, 4 attempts at once; a
round ends when the broker has acknowledged (QoS 1) the hint of the last event and of every alert.

The naive way validates each event, adds it to an `AsyncSession` (aiosqlite), commits, and awaits a
publish (QoS 1); it judges nothing. aiosqlite takes every statement to a thread and back, and a
commit has several, so it is not the quickest that one would write naively: `naive_thread` does the
same with a plain `Session` in one call of `asyncio.to_thread` for each event, which is about twice
as fast. Both figures are printed; `whole_by_naive` is the one that the goal names. `bare` is
`sqlite3.executemany` of rows that are ready, in transactions of 100, with the same tables; it does
nothing else. All have WAL and `synchronous` NORMAL. Ratios of one run compare; rates of two runs do
not, because the machine's clock does not stand still.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import aiomqtt
from pydantic import TypeAdapter
from shared import BareSqlite, arguments, bus, client, compared, new_attempts, rates, show
from sqlalchemy import create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, registry

from midwatch_monitor.bus.mqtt import MqttBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of, record_json
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Attempt, Event, Step
from midwatch_supervisor.run.launch import collect_garbage_seldom
from midwatch_tests.broker import Broker
from midwatch_tests.rounds import Rounds, Way, alternate
from midwatch_tests.workload import AT, MIX, Workload

GROUP, LENGTH, AT_ONCE = 100, 300, 4
EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON")
Kind = Callable[[Workload], Iterator[Step]]
KINDS: dict[str, Kind] = {
    "mixed": Workload.mixed,
    "steps": Workload.steps,
    "checkpoints": Workload.checkpoints,
}
_seeds = count(1)


def sent(kind: Kind, events: int) -> list[bytes]:
    """One attempt's events as JSON."""
    steps = islice(kind(Workload(next(_seeds))), events)
    return [EVENTS.dump_json(step, exclude_none=True) for step in steps]


class Whole:
    """The product's way."""

    def __init__(self, journal: Journal, bus: MqttBus) -> None:
        self._journal = journal
        self._bus = bus
        self._stored = 0

    async def rate(self, kind: Kind, attempts: int) -> float:
        """Events a second of so many attempts, made in turns by 4 workers."""
        made = await new_attempts(self._journal, attempts)
        work = [(await self._claim(each), sent(kind, LENGTH)) for each in made]
        began = time.perf_counter()
        rest = iter(work)
        await asyncio.gather(*(self._follow(rest) for _ in range(AT_ONCE)))
        while self._bus.counters.sent < self._stored:  # noqa: ASYNC110
            await asyncio.sleep(0.0002)
        seconds = time.perf_counter() - began
        if self._bus.counters.dropped:
            raise RuntimeError("hints were dropped")
        return attempts * LENGTH / seconds

    async def _claim(self, attempt: Attempt) -> Recorder:
        return await Recorder.claim(
            journal=self._journal,
            bus=self._bus,
            attempt=attempt,
            settings=Settings(),
            holder="benchmark",
            clock=lambda: AT,
        )

    async def _follow(self, work: Iterator[tuple[Recorder, Sequence[bytes]]]) -> None:
        for recorder, lines in work:
            for begin in range(0, len(lines), GROUP):
                group = lines[begin : begin + GROUP]
                events = [EVENTS.validate_json(line) for line in group]
                entries = await recorder.record(*events)
                self._stored += len(entries)


class Row:
    """A row of the log, as an object-relational mapper has it."""

    def __init__(self, **values: object) -> None:
        for name, value in values.items():
            setattr(self, name, value)


registry().map_imperatively(Row, tables.entry)


class Naive:
    """One session, one commit and one awaited publish for each event."""

    def __init__(self, path: Path, client: aiomqtt.Client) -> None:
        self._client = client
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        event.listen(self._engine.sync_engine, "connect", _set_up)
        self._seq = count(1)

    async def store(self, row: Row) -> int:
        """Commit it; its id."""
        async with AsyncSession(self._engine, expire_on_commit=False) as session:
            session.add(row)
            await session.commit()
            return vars(row)["id"]

    async def rate(self, kind: Kind, events: int) -> float:
        """Events a second."""
        lines = sent(kind, events)
        began = time.perf_counter()
        for line in lines:
            step = EVENTS.validate_json(line)
            body = EVENTS.dump_json(step).decode()
            row = Row(at=AT, kind="step", task=1, attempt=1, seq=next(self._seq), body=body)
            id_ = await self.store(row)
            payload = json.dumps({"entry": id_, "kind": "step", "task": 1, "attempt": 1})
            await self._client.publish("naive/1", payload, qos=1)
        return events / (time.perf_counter() - began)

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.dispose()


class NaiveThread(Naive):
    """The same, with the work on the database in a thread."""

    def __init__(self, path: Path, client: aiomqtt.Client) -> None:
        super().__init__(path, client)
        self._plain = create_engine(f"sqlite:///{path}")
        event.listen(self._plain, "connect", _set_up)

    async def store(self, row: Row) -> int:
        """Commit it; its id."""
        return await asyncio.to_thread(self._store, row)

    def _store(self, row: Row) -> int:
        with Session(self._plain, expire_on_commit=False) as session:
            session.add(row)
            session.commit()
            return vars(row)["id"]

    async def close(self) -> None:
        """Close the connections."""
        self._plain.dispose()
        await super().close()


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


class Bare:
    """The driver alone."""

    def __init__(self, path: Path) -> None:
        self.driver = BareSqlite(path)
        self._seq = count(1)

    async def rate(self, kind: Kind, events: int) -> float:
        """Rows a second; what it stores is ready."""
        at = f"{AT:%Y-%m-%d %H:%M:%S.%f}"
        steps = islice(kind(Workload(next(_seeds))), events)
        rows = [(at, kind_of(Step), 1, 1, next(self._seq), record_json(step)) for step in steps]
        began = time.perf_counter()
        for begin in range(0, events, GROUP):
            self.driver.store(rows[begin : begin + GROUP])
        return events / (time.perf_counter() - began)


async def prepared(path: Path) -> Path:
    """A file with a journal's tables, a task and an attempt."""
    async with await Journal.open(path) as journal:
        await new_attempts(journal)
    return path


async def race(folder: Path, broker: Broker, kind: Kind, pairs: int, size: int) -> Rounds:
    """All ways for one kind of events; `size` is the number of attempts in a round."""
    bare = Bare(await prepared(folder / "bare.db"))
    async with (
        await Journal.open(folder / "whole.db") as journal,
        bus(broker.port, "benchmark", max_waiting=100_000) as connected,
        client(broker.port) as plain,
    ):
        ours = Whole(journal, connected)
        naive = Naive(await prepared(folder / "naive.db"), plain)
        thread = NaiveThread(await prepared(folder / "naive_thread.db"), plain)
        ways: dict[str, Way] = {
            "naive": lambda: naive.rate(kind, 20 * size),
            "naive_thread": lambda: thread.rate(kind, 20 * size),
            "bare": lambda: bare.rate(kind, LENGTH * size),
            "whole": lambda: ours.rate(kind, size),
        }
        rounds = await alternate(ways, pairs)
        await naive.close()
        await thread.close()
    bare.driver.connection.close()
    return rounds


async def measure(pairs: int, size: int, kinds: Sequence[str]) -> dict[str, object]:
    """The figures of these kinds of events."""
    collect_garbage_seldom()
    figures: dict[str, object] = {"pairs": pairs, "mix": MIX}
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "broker") as broker:
        for name in kinds:
            place = Path(folder) / name
            place.mkdir()
            rounds = await race(place, broker, KINDS[name], pairs, size)
            figures |= rates(name, rounds)
            figures |= compared(name, rounds, "whole", "naive", "naive_thread", "bare")
    return figures


def main() -> None:
    """Measure, and print."""
    parser = arguments(__doc__, pairs=9)
    parser.add_argument("--quick", action="store_true", help="a smoke run: its figures say little")
    parser.add_argument("--kind", choices=KINDS, help="only these events; else all kinds")
    given = parser.parse_args()
    pairs, size = (1, 4) if given.quick else (given.pairs, 20)
    kinds = [given.kind] if given.kind else list(KINDS)
    show(asyncio.run(measure(pairs, size, kinds)), as_json=given.json)


if __name__ == "__main__":
    main()
