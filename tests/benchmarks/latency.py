"""From a checkpoint on one node to its alert in another process, and what the defaults would make
of that.

Run it with `uv run python tests/benchmarks/latency.py [--json] [--rounds 5] [--rate 500]`. Each
checkpoint is judged and stored by the real recorder in a journal in a file, and the time ends where
the other process has the hint that names the alert's rule, severity and state. Checkpoints come at
random moments, `rate` a second. Rounds of all ways alternate, the first of each is not counted, and
every round makes its connections anew, as nodes do that start. The ways:

- ours: `MqttBus`, and a mosquitto with the shipped configuration
- defaults: the same recorder, the same broker without `set_tcp_nodelay`, and aiomqtt as it comes,
  one publish per event (its default QoS is 0; also with our QoS 1)
- bare: no checkpoint, no rule, no journal; one aiomqtt publish (QoS 1) to one subscriber, with
  Nagle's algorithm off on both sides

Ratios of one run compare; milliseconds of two runs do not.
"""

import asyncio
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import aiomqtt
from shared import arguments, bus, client, new_attempts, show

from midwatch_monitor.bus import Bus, LocalBus, Subscription
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Alert, Hint
from midwatch_tests.broker import Broker
from midwatch_tests.factories import reflecting

ALERT = "low_confidence warning firing"
FIRING = " firing"
Times = dict[int, float]
"""When an entry was known, by the clock that all processes of the machine share."""
Began = dict[int, tuple[float, float]]
"""When what led to an entry began, and when it was stored."""


class PlainBus:
    """One aiomqtt publish for each hint, as one writes it without a thought for batches."""

    def __init__(self, client: aiomqtt.Client, qos: int) -> None:
        self._client = client
        self._qos = qos
        self._sending: set[asyncio.Task[None]] = set()

    def publish(self, hint: Hint) -> None:
        """Send it by itself."""
        said = {"entry": hint.entry, "kind": hint.kind, "step": hint.step, "note": hint.note}
        sending = asyncio.create_task(
            self._client.publish("plain/1", json.dumps(said), qos=self._qos)
        )
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """Nobody here listens."""
        return LocalBus().subscribe(attempt)


@asynccontextmanager
async def plain(port: int, *, nodelay: bool = False) -> AsyncGenerator[aiomqtt.Client]:
    """A connection as aiomqtt makes it, or without Nagle's algorithm."""
    async with client(port, nodelay=nodelay) as opened:
        opened.pending_calls_threshold = 10_000  # it would warn
        yield opened


async def moments(count: int, rate: float) -> AsyncGenerator[int]:
    """So many numbers, at random moments."""
    chance = random.Random(count)
    due = asyncio.get_running_loop().time()
    for number in range(count):
        due += chance.expovariate(rate)
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        yield number


async def record(over: Bus, folder: Path, count: int, rate: float) -> Began:
    """Checkpoints of low and of high confidence in turn: each first one fires an alert."""
    settings = Settings.model_validate({"rules": {"low_confidence": {"cooldown": 0}}})
    began: Began = {}
    async with await Journal.open(folder / "journal.db") as journal:
        [attempt] = await new_attempts(journal)
        recorder = await Recorder.claim(
            journal=journal,
            bus=over,
            attempt=attempt,
            settings=settings,
            holder="h",
            clock=lambda: datetime.now(UTC),
        )
        async for number in moments(count, rate):
            step = reflecting(1, 10, confidence=90 if number % 2 else 10)
            start = time.monotonic()
            entries = await recorder.record(step)
            for entry in entries:
                if isinstance(entry.record, Alert) and entry.record.firing:
                    began[entry.id] = start, time.monotonic()
    return began


async def ours_sends(port: int, folder: Path, count: int, rate: float) -> Began:
    """Our way, the node."""
    async with bus(port, "node") as opened:
        return await record(opened, folder, count, rate)


async def ours_hears(port: int, pipe: Connection) -> Times:
    """Our way, the other process."""
    known: Times = {}

    async def listen(hints: Subscription) -> None:
        while True:
            for hint in await hints.wait():
                if hint.note.endswith(FIRING):
                    known[hint.entry] = time.monotonic()

    async with bus(port, "other") as opened, opened.subscribe() as hints:
        await until_enough(listen(hints), pipe)
    return known


async def until_enough(listening: Coroutine[None, None, None], pipe: Connection) -> None:
    """Listen until the sender is done."""
    task = asyncio.create_task(listening)
    pipe.send("ready")
    await asyncio.to_thread(pipe.recv)
    task.cancel()
    await asyncio.wait({task})


async def plain_sends(port: int, folder: Path, count: int, rate: float, *, qos: int) -> Began:
    """The defaults, the node."""
    async with plain(port) as client:
        began = await record(PlainBus(client, qos), folder, count, rate)
        await asyncio.sleep(0.2)  # for what is under way
        return began


async def plain_hears(port: int, pipe: Connection, *, qos: int, nodelay: bool = False) -> Times:
    """The defaults, the other process."""
    known: Times = {}

    async def listen(client: aiomqtt.Client) -> None:
        async for message in client.messages:
            said = json.loads(message.payload)
            if str(said["note"]).endswith(FIRING):
                known[said["entry"]] = time.monotonic()

    async with plain(port, nodelay=nodelay) as client:
        await client.subscribe("plain/1", qos=qos)
        await until_enough(listen(client), pipe)
    return known


async def bare_sends(port: int, folder: Path, count: int, rate: float) -> Began:
    """No more than a publish."""
    del folder
    began: Began = {}
    async with plain(port, nodelay=True) as client:
        async for number in moments(count // 2, rate / 2):
            now = time.monotonic()
            began[number] = now, now
            said = {"entry": number, "kind": "alert", "step": number, "note": ALERT}
            await client.publish("plain/1", json.dumps(said), qos=1)
    return began


Sends = Callable[[int, Path, int, float], Coroutine[None, None, Began]]
Hears = Callable[[int, Connection], Coroutine[None, None, Times]]
WAYS: dict[str, tuple[Sends, Hears, bool]] = {
    "ours": (ours_sends, ours_hears, True),
    "defaults": (partial(plain_sends, qos=0), partial(plain_hears, qos=0), False),
    "defaults_qos_1": (partial(plain_sends, qos=1), partial(plain_hears, qos=1), False),
    "bare": (bare_sends, partial(plain_hears, qos=1, nodelay=True), True),
}
"""Who sends, who hears, and whether the broker sets TCP_NODELAY."""


def send(sends: Sends, port: int, pipe: Connection, count: int, rate: float) -> None:
    """The whole of a sending process."""
    with tempfile.TemporaryDirectory() as folder:
        pipe.send(asyncio.run(sends(port, Path(folder), count, rate)))


def hear(hears: Hears, port: int, pipe: Connection) -> None:
    """The whole of a hearing process."""
    pipe.send(asyncio.run(hears(port, pipe)))


def seconds(
    way: str, brokers: dict[bool, Broker], count: int, rate: float
) -> list[tuple[float, float]]:
    """How long each alert of one round took, and how long to store it."""
    sends, hears, nodelay = WAYS[way]
    port = brokers[nodelay].port
    spawn = multiprocessing.get_context("spawn")
    ears, theirs = multiprocessing.Pipe()
    hearing = spawn.Process(target=hear, args=(hears, port, theirs), daemon=True)
    hearing.start()
    ears.recv()
    mouth, its = multiprocessing.Pipe()
    sending = spawn.Process(target=send, args=(sends, port, its, count, rate), daemon=True)
    sending.start()
    began: Began = mouth.recv()
    time.sleep(0.3)
    ears.send("enough")
    known: Times = ears.recv()
    for process in (sending, hearing):
        process.join(10)
    if missing := began.keys() - known.keys():
        raise RuntimeError(f"{way}: {len(missing)} of {len(began)} alerts never arrived")
    return [(known[entry] - start, stored - start) for entry, (start, stored) in began.items()]


def percentile(values: Sequence[float], share: int) -> float:
    """In milliseconds."""
    return round(statistics.quantiles(values, n=100)[share - 1] * 1e3, 2)


def measure(rounds: int, count: int, rate: float) -> dict[str, float]:
    """Percentiles over all rounds of each way."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(Path(folder) / "ours") as ours,
        Broker(Path(folder) / "default", nodelay=False) as default,
    ):
        brokers = {True: ours, False: default}
        for number in range(rounds + 1):
            for way in (list(WAYS), list(reversed(WAYS)))[number % 2]:
                taken = seconds(way, brokers, count, rate)
                if number:
                    found[way] += taken
    figures: dict[str, float] = {"rounds": rounds, "alerts": len(found["ours"])}
    for way, values in found.items():
        figures[f"{way}_p50_ms"] = percentile([whole for whole, _ in values], 50)
        figures[f"{way}_p99_ms"] = percentile([whole for whole, _ in values], 99)
    figures["ours_stored_p50_ms"] = percentile([stored for _, stored in found["ours"]], 50)
    figures["p99_defaults_to_ours"] = round(figures["defaults_p99_ms"] / figures["ours_p99_ms"], 1)
    figures["p50_ours_to_bare"] = round(figures["ours_p50_ms"] / figures["bare_p50_ms"], 2)
    return figures


if __name__ == "__main__":
    given = arguments(__doc__, rounds=5, checkpoints=500, rate=500).parse_args()
    show(measure(given.rounds, given.checkpoints, given.rate), as_json=given.json)
