"""What several benchmarks share: an attempt, the bare driver, connections, and how figures look."""

import argparse
import asyncio
import json
import socket
import sqlite3
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiomqtt

from midwatch_monitor.bus.mqtt import MqttBus
from midwatch_monitor.config.fleet import BrokerSettings, FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from midwatch_tests.factories import AT, WHOSE
from midwatch_tests.rounds import Rounds

NODELAY = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
COLUMNS = "at, kind, task, attempt, seq, body"
Row = tuple[object, ...]


async def new_attempts(journal: Journal, number: int = 1) -> list[Attempt]:
    """The attempts of a new run at so many tasks."""
    run = await journal.add_run(source="benchmark", settings="{}", at=AT)
    made: list[Attempt] = []
    for at in range(number):
        name = f"task-{at}"
        task = await journal.add_task(run=run.id, name=name, title=name, spec="{}", at=AT)
        made.append(await journal.add_attempt(task=task.id, number=1, at=AT, **WHOSE))
    return made


class BareSqlite:
    """The driver alone, in a file that a journal has made: a transaction for each group of rows."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            self.connection.execute(f"PRAGMA {pragma}")
        self._insert = f"INSERT INTO entry ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"

    def store(self, rows: Sequence[Row]) -> None:
        """Store a group."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(self._insert, rows)
        self.connection.execute("COMMIT")


def client(port: int, *, nodelay: bool = True) -> aiomqtt.Client:
    """A plain connection; without Nagle's algorithm, as the bus has it, unless that is said."""
    return aiomqtt.Client(
        "127.0.0.1",
        port,
        protocol=aiomqtt.ProtocolVersion.V5,
        socket_options=NODELAY if nodelay else None,
    )


@asynccontextmanager
async def bus(port: int, name: str, **settings: int) -> AsyncGenerator[MqttBus]:
    """The product's bus, connected."""
    broker = BrokerSettings.model_validate({"url": f"mqtt://127.0.0.1:{port}", **settings})
    async with MqttBus(FleetSettings(broker=broker), name=name, environ={}) as opened:
        while not opened.counters.connected:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        yield opened


def rates(where: str, rounds: Rounds) -> dict[str, object]:
    """Each way's rate, and how fast the machine was."""
    figures = {f"{where}_{way}_per_second": round(rounds.rate(way)) for way in rounds.rates}
    speeds = [round(each, 3) for each in rounds.calibration]
    return {f"{where}_calibration_us": speeds, **figures}


def compared(where: str, rounds: Rounds, way: str, *others: str) -> dict[str, object]:
    """A way's ratio to others: the median, and the range."""
    figures: dict[str, object] = {}
    for other in others:
        middle, low, high = (round(each, 2) for each in rounds.ratio(way, other))
        name = f"{where}_{way}_by_{other}"
        figures |= {name: middle, f"{name}_range": [low, high]}
    return figures


def arguments(about: str | None, **numbers: int) -> argparse.ArgumentParser:
    """What every benchmark is told: some numbers, and how to print."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true", help="one line")
    return parser


def show(figures: Mapping[str, object], *, as_json: bool) -> None:
    """Print the figures."""
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name}: {value}")
