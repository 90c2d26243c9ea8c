"""Rows a second through `Journal.commit` in groups of 100, beside the bare driver, in turns.

Run it with `uv run python tests/benchmarks/journal.py [--json] [--quick] [--pairs 9]
[--postgres URL]`. The rows are steps and checkpoints as agents send them. In SQLite everybody has
WAL, `synchronous` NORMAL and the same tables, and the bare `executemany` is given rows that are
ready, in transactions of 100; the journal is given records, which must become JSON first
(`bare_json` is the bare way with that). `one` is one commit of 100 drafts,
awaited before the next; `together` is 100 commits of one draft each, submitted at the same time.

In PostgreSQL a single insert is a transaction of its own with `synchronous_commit` on. Without a
URL a server is started which does not wait for the disk: there a single insert is as fast as can
be, and the ratio as low. Ratios of one run compare; rates of two runs do not, because the machine's
clock does not stand still.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import psycopg
from shared import COLUMNS, BareSqlite, Row, arguments, compared, new_attempts, rates, show

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of, record_json
from midwatch_monitor.records import Attempt, Commit, Step
from midwatch_supervisor.run.launch import collect_garbage_seldom
from midwatch_tests.database import Database, create_database, drop_database, programs
from midwatch_tests.factories import commit
from midwatch_tests.rounds import Rounds, alternate
from midwatch_tests.workload import AT, MIX, Workload

GROUP = 100


class Events:
    """Steps, with the numbers of their rows."""

    def __init__(self) -> None:
        self._steps = list(islice(Workload(1).mixed(), 8 * GROUP))
        self._seq = 0

    def groups(self, number: int) -> Iterator[list[tuple[int, Step]]]:
        """So many groups of 100."""
        for _ in range(number):
            first, self._seq = self._seq, self._seq + GROUP
            begin = first % len(self._steps)
            yield list(enumerate(self._steps[begin : begin + GROUP], first + 1))


class Stored:
    """The journal's side: an attempt and its current incarnation."""

    def __init__(self, journal: Journal, attempt: Attempt, incarnation: int) -> None:
        self._journal = journal
        self._attempt = attempt
        self._incarnation = incarnation
        self._events = Events()

    @classmethod
    async def begin(cls, journal: Journal) -> "Stored":
        """In a journal that is new."""
        [made] = await new_attempts(journal)
        return cls(journal, made, await journal.claim(made.id, holder="benchmark", at=AT))

    def _commit(self, numbered: Sequence[tuple[int, Step]]) -> Commit:
        (first, _), *_ = numbered
        steps = [step for _, step in numbered]
        return commit(self._attempt, *steps, seq=first, incarnation=self._incarnation)

    async def one(self, groups: int) -> float:
        """Rows a second, a commit of 100 drafts each."""
        commits = [self._commit(group) for group in self._events.groups(groups)]
        began = time.perf_counter()
        for each in commits:
            await self._journal.commit(each)
        return groups * GROUP / (time.perf_counter() - began)

    async def together(self, groups: int) -> float:
        """Rows a second, 100 commits of one draft each."""
        every = [[self._commit([each]) for each in group] for group in self._events.groups(groups)]
        began = time.perf_counter()
        for commits in every:
            await asyncio.gather(*map(self._journal.commit, commits))
        return groups * GROUP / (time.perf_counter() - began)


class Bare:
    """The driver's side: the same columns, ready."""

    def __init__(self, about: Attempt, at: object) -> None:
        self._about = about
        self._at = at
        self._events = Events()

    def rows(self, groups: int) -> list[list[Row]]:
        """Rows in groups of 100."""
        return [self._rows(group) for group in self._events.groups(groups)]

    def _rows(self, group: Sequence[tuple[int, Step]]) -> list[Row]:
        about = (self._at, kind_of(Step), self._about.task, self._about.id)
        return [(*about, seq, record_json(step)) for seq, step in group]


class BareFile(Bare):
    """Of a file of its own that a journal has made."""

    def __init__(self, path: Path, about: Attempt) -> None:
        super().__init__(about, f"{AT:%Y-%m-%d %H:%M:%S.%f}")
        self.driver = BareSqlite(path)

    async def many(self, groups: int) -> float:
        """Rows a second by `executemany`."""
        ready = self.rows(groups)
        began = time.perf_counter()
        for rows in ready:
            self.driver.store(rows)
        return groups * GROUP / (time.perf_counter() - began)

    async def json(self, groups: int) -> float:
        """Rows a second where the records must become JSON too."""
        began = time.perf_counter()
        for group in self._events.groups(groups):
            self.driver.store(self._rows(group))
        return groups * GROUP / (time.perf_counter() - began)


class BarePostgres(Bare):
    """Of a database of its own that a journal has made."""

    def __init__(self, url: str, about: Attempt) -> None:
        super().__init__(about, AT)
        plain = url.replace("postgresql+psycopg://", "postgresql://")
        self.connection = psycopg.connect(plain, autocommit=True)
        self.connection.execute("SET synchronous_commit TO on")
        self._insert = f"INSERT INTO entry ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)".encode()

    async def single(self, groups: int) -> float:
        """Rows a second, each in a transaction of its own."""
        ready = [row for rows in self.rows(groups) for row in rows]
        began = time.perf_counter()
        for row in ready:
            self.connection.execute(self._insert, row)
        return len(ready) / (time.perf_counter() - began)

    async def many(self, groups: int) -> float:
        """Rows a second by `executemany`."""
        ready = self.rows(groups)
        began = time.perf_counter()
        for rows in ready:
            with self.connection.transaction(), self.connection.cursor() as cursor:
                cursor.executemany(self._insert, rows)
        return groups * GROUP / (time.perf_counter() - began)


@asynccontextmanager
async def opened(place: str | Path) -> AsyncGenerator[Stored]:
    """A new journal there, whose transactions hold no more than one group."""
    async with await Journal.open(place, max_batch=GROUP) as journal:
        yield await Stored.begin(journal)


async def sqlite(folder: Path, pairs: int, groups: int) -> Rounds:
    """All ways into a file."""
    async with await Journal.open(folder / "bare.db") as journal:
        [about] = await new_attempts(journal)
    bare = BareFile(folder / "bare.db", about)
    async with opened(folder / "one.db") as one, opened(folder / "together.db") as together:
        ways = {
            "bare": lambda: bare.many(groups),
            "bare_json": lambda: bare.json(groups),
            "one": lambda: one.one(groups),
            "together": lambda: together.together(groups),
        }
        rounds = await alternate(ways, pairs)
    bare.driver.connection.close()
    return rounds


async def postgres(url: str, names: Sequence[str], pairs: int, groups: int) -> Rounds:
    """All ways into databases of one server, which exist and are empty."""
    base = url.rpartition("/")[0]
    places = [f"{base}/{name}" for name in names]
    async with await Journal.open(places[0]) as journal:
        [about] = await new_attempts(journal)
    bare = BarePostgres(places[0], about)
    async with opened(places[1]) as one, opened(places[2]) as together:
        ways = {
            "single": lambda: bare.single(max(1, groups // 10)),
            "many": lambda: bare.many(groups),
            "one": lambda: one.one(groups),
            "together": lambda: together.together(groups),
        }
        rounds = await alternate(ways, pairs)
    bare.connection.close()
    return rounds


async def server(url: str | None, pairs: int, groups: int) -> Rounds:
    """All ways into PostgreSQL: in new databases of the server at a URL, or of one of our own."""
    names = [f"benchmark_{time.time_ns()}_{number}" for number in range(3)]
    if url is not None:
        for name in names:
            await asyncio.to_thread(create_database, url, name)
        try:
            return await postgres(url, names, pairs, groups)
        finally:
            for name in names:
                await asyncio.to_thread(drop_database, url, name)
    database = await asyncio.to_thread(Database.start, durable=True)
    try:
        for name in names:
            await asyncio.to_thread(database.create, name)
        return await postgres(database.url, names, pairs, groups)
    finally:
        await asyncio.to_thread(database.stop)


async def measure(pairs: int, groups: int, url: str | None) -> dict[str, object]:
    """All figures."""
    collect_garbage_seldom()
    with tempfile.TemporaryDirectory() as folder:
        file = await sqlite(Path(folder), pairs, groups)
    figures: dict[str, object] = {"events": MIX, "pairs": pairs, "group": GROUP}
    figures |= rates("sqlite", file) | compared("sqlite", file, "one", "bare", "bare_json")
    figures |= compared("sqlite", file, "together", "bare")
    if programs() is not None or url is not None:
        stored = await server(url, pairs, groups)
        figures |= rates("postgres", stored)
        for way in ("many", "one", "together"):
            figures |= compared("postgres", stored, way, "single")
    return figures


def main() -> None:
    """Measure, and print."""
    parser = arguments(__doc__, pairs=9)
    parser.add_argument("--quick", action="store_true", help="a smoke run: its figures say little")
    parser.add_argument("--postgres", metavar="URL", help="a server that may make databases")
    given = parser.parse_args()
    pairs, groups = (1, 10) if given.quick else (given.pairs, 50)
    show(asyncio.run(measure(pairs, groups, given.postgres)), as_json=given.json)


if __name__ == "__main__":
    main()
