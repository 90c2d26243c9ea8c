"""What a frame of the console takes: the fleet drawn off its model, and a DataTable after it.

Run it with `uv run python tests/benchmarks/console_frame.py [--frames 100]`. Times are CPU time of
the process, the terminal's bytes included. Every row changes before every frame. The ratios of
one run compare; milliseconds of two runs do not, because the machine's clock does not stand still.
"""

import argparse
import asyncio
import math
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, cycle, islice

from rich.text import Text
from shared import new_attempts
from textual.app import App, ComposeResult
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.widgets import DataTable

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AlertKey, AlertState, Edit, Entry, Record, Severity, Step
from midwatch_monitor.state.attempt import TREND
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console, collect_garbage_seldom
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.fleet import arrange_columns, columns
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.state.row_order import Order
from midwatch_supervisor.tui.widgets.palette import palette
from midwatch_supervisor.tui.widgets.table import fit_columns
from midwatch_tests.factories import alert, attempt, commit, reflecting, task, transition
from midwatch_tests.factories import step as made_step

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SIZE = (140, 45)
SIZES = (100, 1_000, 10_000)
KEYS = ("j", "k", "G", "g", "ctrl+d", "ctrl+u")
LETTERS = ("t", "a", "s", "k", "backspace", "backspace", "backspace", "backspace")
STEPS = 5_000
"""Steps of the attempt whose view is measured."""
SIDES = ("f3", "f4", "f5", "f7", "f8", "f2")
LOG = 1_000
STUCK = alert("cycle", Severity.CRITICAL, step=9)


def now() -> datetime:
    """One moment of the run."""
    return AT + timedelta(seconds=9)


@dataclass(frozen=True, slots=True)
class Spread:
    """CPU milliseconds of many frames."""

    times: Sequence[float]

    def at(self, share: float) -> float:
        """The time that this share of the frames does not exceed."""
        ordered = sorted(self.times)
        return ordered[math.ceil(share * len(ordered)) - 1]

    @property
    def mean(self) -> float:
        """CPU milliseconds of a frame."""
        return statistics.mean(self.times)

    def __str__(self) -> str:
        return f"p50 {self.at(0.5):6.1f}  p99 {self.at(0.99):6.1f}  worst {self.at(1):6.1f} ms"


class Fleet:
    """A board of attempts that all report, of which one in a hundred gets stuck or recovers."""

    def __init__(self, board: FleetBoard, agents: int) -> None:
        self.board = board
        self.agents = agents
        self._ids = count(1)
        for id in range(1, agents + 1):
            name = f"task-{id:05}"
            self.board.meet_task(task(id, name, title=f"Do {name}"))
            self.board.meet_attempt(attempt(id, task=id, node=f"node-{id % 8}"))
            self.fold(id, transition())

    def entry(self, id: int, record: Record) -> Entry:
        """What the journal would say of a record of one attempt."""
        return Entry(id=next(self._ids), record=record, at=AT, task=id, attempt=id)

    def fold(self, id: int, record: Record) -> None:
        """Take in a record of one attempt."""
        self.board.fold(self.entry(id, record))

    def reports(self, ids: Iterable[int], tick: int) -> list[Entry]:
        """What these attempts say of how it goes."""
        return [
            self.entry(id, reflecting(tick, (id + tick) % 101, (id * 7 + tick) % 101)) for id in ids
        ]

    def change(self, tick: int) -> None:
        """Change every row as steps would, and let one in a hundred move to another place."""
        for row in self.board.rows.values():
            state = row.state
            state.reported_progress = (row.task + tick) % 101
            state.confidences.append((row.task * 7 + tick) % 101)
            state.last_step, state.doing = tick, f"runs pytest {tick}"
        standing = AlertState.RESOLVED if tick % 2 else AlertState.FIRING
        for id in range(1, self.agents + 1, 100):
            self.fold(id, replace(STUCK, state=standing))


class Bytes(HeadlessDriver):
    """A terminal that takes every byte and shows none: headless, no bytes would be made."""

    @property
    def is_headless(self) -> bool:
        return False


class Drawn(App[int]):
    """An app that says when a frame is out."""

    def __init__(self, board: FleetBoard) -> None:
        super().__init__(driver_class=Bytes)
        self.board = board
        self.out = asyncio.Event()

    def post_display_hook(self) -> None:
        self.out.set()


class Cells(App[int]):
    """The same rows in a DataTable; only the cells that are visible are ever updated."""

    def __init__(self, board: FleetBoard) -> None:
        super().__init__(driver_class=Bytes)
        self._board = board
        self._table: DataTable[Text] = DataTable()
        self.out = asyncio.Event()

    def post_display_hook(self) -> None:
        self.out.set()

    def compose(self) -> ComposeResult:
        yield self._table

    def on_mount(self) -> None:
        self._colours = palette(self.get_css_variables())
        self._columns = fit_columns(arrange_columns(columns(now, self._board), "need"), SIZE[0] - 2)
        for column, width in self._columns:
            self._table.add_column(column.title, width=width, key=column.title)
        for row in self._board.rows.values():
            self._table.add_row(*self._cells(row), key=str(row.attempt))

    def _cells(self, row: Row) -> list[Text]:
        return [self._colours.assemble([column.draw(row)]) for column, _ in self._columns]

    def draw(self) -> None:
        """Update cell by cell what is on the screen."""
        for row in islice(self._board.rows.values(), SIZE[1] - 2):
            for (column, _), cell in zip(self._columns, self._cells(row), strict=True):
                self._table.update_cell(str(row.attempt), column.title, cell)


class Lines(Console):
    """The console itself, whose board is filled by hand."""

    def __init__(self, journal: Journal) -> None:
        bus = LocalBus()
        feed = Feed(journal, run=None, bus=bus, poll_seconds=60, hertz=10)
        super().__init__(feed, OperatorActions(journal, author="ann", bus=bus), now=now)
        self.driver_class = Bytes
        self.out = asyncio.Event()

    def post_display_hook(self) -> None:
        self.out.set()

    def draw(self) -> None:
        """What the console does after each batch."""
        self.panes.refresh_board()


Shown = Lines | Cells


async def clocked(app: Shown, act: Callable[[], Awaitable[None]]) -> float:
    """CPU milliseconds of an act and of the frame that shows it."""
    app.out.clear()
    began = time.process_time()
    await act()
    await app.out.wait()
    return (time.process_time() - began) * 1000


async def frames(app: Shown, change: Callable[[int], None], how_many: int) -> Spread:
    """What a frame takes; the change before it is not counted. The first frames warm up."""

    async def draw() -> None:
        app.draw()

    times: list[float] = []
    for tick in range(how_many + 5):
        change(tick)
        times.append(await clocked(app, draw))
    return Spread(times[5:])


async def keys(app: Lines, pilot: Pilot[int], which: Sequence[str], how_many: int) -> Spread:
    """What a key takes until its effect is on the screen."""
    times = [
        await clocked(app, partial(pilot.press, key)) for key in islice(cycle(which), how_many)
    ]
    return Spread(times)


async def logged(app: Lines, fleet: Fleet, how_many: int) -> Spread:
    """What a tick with many new lines takes in the stream of checkpoints, folding included."""
    times: list[float] = []
    for tick in range(how_many + 5):
        entries = fleet.reports((1 + n % fleet.agents for n in range(LOG)), tick)

        async def hear(entries: list[Entry] = entries) -> None:
            for entry in entries:
                app.board.fold(entry)
            app.draw()

        times.append(await clocked(app, hear))
    return Spread(times[5:])


async def piloted(app: Shown, body: Callable[[Pilot[int]], Awaitable[None]]) -> None:
    """Run an app on a terminal of bytes, and leave it when the body is done."""

    async def drive(pilot: Pilot[int]) -> None:
        try:
            await pilot.pause()
            await body(pilot)
        finally:
            app.exit()

    await app.run_async(size=SIZE, auto_pilot=drive)  # pyright: ignore[reportArgumentType]


@dataclass(kw_only=True)
class Figures:
    """What was measured with one number of agents."""

    agents: int
    frame: Spread = Spread(())
    key: Spread = Spread(())
    letter: Spread = Spread(())
    jump: Spread = Spread(())
    log: Spread = Spread(())
    table: Spread = Spread(())
    fold: float = 0.0
    """Microseconds of an entry."""
    weight: float = 0.0
    """KiB of an agent, the order of the lines included."""

    def __str__(self) -> str:
        return "\n".join(
            (
                f"{self.agents} agents",
                f"  frame, all rows changed        {self.frame}",
                f"  DataTable, visible cells       {self.table}",
                f"  from a key to its effect       {self.key}",
                f"  from a letter of the filter    {self.letter}",
                f"  from a letter of a jump        {self.jump}",
                f"  {LOG} log lines and a frame     {self.log}",
                f"  share of a core at 10 frames a second {self.frame.mean / 100:.0%}",
                f"  {self.fold:.1f} us an entry, {self.weight:.1f} KiB an agent",
            )
        )


async def figures(agents: int, how_many: int) -> Figures:
    """Measure the console and then the DataTable with the same rows."""
    found = Figures(agents=agents, weight=weight(agents))
    async with await Journal.open(":memory:") as journal:
        app = Lines(journal)
        fleet = Fleet(app.board, agents)
        found.fold = folding(fleet)

        async def console(pilot: Pilot[int]) -> None:
            app.draw()
            collect_garbage_seldom()  # as the console does at its start
            found.frame = await frames(app, fleet.change, how_many)
            found.key = await keys(app, pilot, KEYS, how_many)
            await pilot.press("slash")
            found.letter = await keys(app, pilot, LETTERS, how_many)
            await pilot.press("escape", "colon")
            found.jump = await keys(app, pilot, LETTERS, how_many)
            await pilot.press("escape", "2")
            found.log = await logged(app, fleet, how_many)

        await piloted(app, console)
    cells = Cells(app.board)

    async def table(pilot: Pilot[int]) -> None:
        del pilot
        collect_garbage_seldom()
        found.table = await frames(cells, fleet.change, how_many)

    await piloted(cells, table)
    return found


def folding(fleet: Fleet) -> float:
    """Microseconds that an entry takes, where every attempt reports more often than is kept."""
    spent = 0.0
    for tick in range(TREND + 1):
        entries = fleet.reports(range(1, fleet.agents + 1), tick)
        began = time.process_time()
        for entry in entries:
            fleet.board.fold(entry)
        spent += time.process_time() - began
    return spent / ((TREND + 1) * fleet.agents) * 1_000_000


def weight(agents: int) -> float:
    """KiB of memory that an agent takes, with a full trend."""
    tracemalloc.start()
    fleet = Fleet(FleetBoard(), agents)
    order = Order()
    order.move(fleet.board.take_moved()[0])
    folding(fleet)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / agents / 1024


def step(number: int) -> Step:
    """One of the steps of a long attempt: every fifth is a checkpoint, every seventh fails."""
    if number % 5 == 0:
        return reflecting(number, number % 101, 60, notes=f"Half of {number}.")
    edits = (Edit(path=f"src/part_{number}.py"),) if number % 3 == 0 else ()
    return made_step(
        number,
        "edit_file" if edits else "run_command",
        args=f'{{"command": "pytest tests/test_{number}.py"}}',
        edits=edits,
        ok=number % 7 != 0,
        output=f"tests/test_{number}.py {'.' * 1_000} ✓ all of them have passed",
    )


async def long_attempt(journal: Journal) -> int:
    """Store an attempt of many steps, some with alerts; its id."""
    [made] = await new_attempts(journal)
    records: list[Record] = [transition()]
    for number in range(1, STEPS + 1):
        records.append(step(number))
        if number % 100 == 0:
            subject = AlertKey(rule="cycle", subject=str(number))
            records.append(replace(STUCK, key=subject, step=number))
    await journal.commit(commit(made, *records))
    return made.id


async def searching(how_many: int) -> str:
    """Measure the view of one long attempt: its lines, its sides, and a search in them."""
    said: list[str] = [f"an attempt of {STEPS} steps"]
    async with await Journal.open(":memory:") as journal:
        id = await long_attempt(journal)
        app = Lines(journal)

        async def view(pilot: Pilot[int]) -> None:
            while id not in app.board.rows:
                await pilot.pause()
            collect_garbage_seldom()
            app.open_attempt(app.board.rows[id])
            await pilot.pause()
            while isinstance(app.screen, AttemptScreen) and app.screen.reading:
                await pilot.pause()
            for what, which, before in (
                ("from a key to its effect", KEYS, ()),
                ("from a key to another side", SIDES, ()),
                ("from a letter of the search", LETTERS, ("slash",)),
                ("to the next match", ("n", "n", "N"), ("escape", "slash", *"half", "enter")),
                (
                    "to the next one of failures",
                    ("n", "n", "N"),
                    ("escape", "slash", *"py is:failed", "enter"),
                ),
            ):
                await pilot.press(*before)
                said.append(f"  {what:<30} {await keys(app, pilot, which, how_many)}")

        await piloted(app, view)
    return "\n".join(said)


async def measure(how_many: int) -> None:
    """Print the figures of every size, and how they compare."""
    print(await searching(how_many), flush=True)
    measured: list[Figures] = []
    for agents in SIZES:
        found = await figures(agents, how_many)
        print(found, flush=True)
        measured.append(found)
    few, many = measured[0], measured[-1]
    ratio = many.frame.at(0.5) / few.frame.at(0.5)
    print(f"frame({many.agents}) / frame({few.agents}), p50: {ratio:.2f}")
    for found in measured:
        ratio = found.table.at(0.5) / found.frame.at(0.5)
        print(f"DataTable / console at {found.agents} agents, p50: {ratio:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100)
    asyncio.run(measure(parser.parse_args().frames))
