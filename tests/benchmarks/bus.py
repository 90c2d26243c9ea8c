"""Events a second through `MqttBus`, against one awaited aiomqtt publish for each event.

Run it with `uv run python tests/benchmarks/bus.py [--json] [--pairs 9]`. Publisher and subscriber
are processes of their own, the broker is a mosquitto with the shipped configuration; both ways use
QoS 1 and the same connection options, and their rounds alternate. A round lasts from before the
first event is published until the last of them is a `Hint` at the subscriber. Ratios of one run
compare; rates of two runs do not, because the machine's clock does not stand still.
"""

import asyncio
import gc
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from shared import arguments, bus, client, compared, rates, show

from midwatch_monitor.records import Hint
from midwatch_tests.broker import Broker
from midwatch_tests.rounds import alternate

ATTEMPTS = 4
"""As many as one node runs at once by default."""
PLAIN, BATCHED = 2_000, 200_000
"""Events of one round: each takes about half a second."""
AHEAD = 5_000
"""Hints that a publisher lets wait at most; the bus would begin to drop at twice as many."""


def happened(events: int) -> list[Hint]:
    """What a publisher tells in a round."""
    hints = [
        Hint(entry=number, kind="step", task=7, attempt=1 + number % ATTEMPTS, step=number)
        for number in range(events)
    ]
    gc.freeze()  # they are not the garbage of what is measured
    return hints


async def plain_publisher(port: int, pipe: Connection) -> None:
    """Publish each event by itself."""
    async with client(port) as connected:
        pipe.send("ready")
        while events := await asyncio.to_thread(pipe.recv):
            hints = happened(events)
            pipe.send(time.monotonic())
            for each in hints:
                said = {"entry": each.entry, "kind": each.kind, "task": each.task}
                payload = json.dumps({**said, "attempt": each.attempt, "step": each.step})
                await connected.publish(f"plain/{each.attempt}", payload, qos=1)


async def plain_subscriber(port: int, pipe: Connection) -> None:
    """Take each event by itself."""
    async with client(port) as connected:
        await connected.subscribe("plain/+", qos=1)
        pipe.send("ready")
        messages = aiter(connected.messages)
        while events := await asyncio.to_thread(pipe.recv):
            got = [Hint(**json.loads((await anext(messages)).payload)) for _ in range(events)]
            pipe.send((time.monotonic(), {each.entry for each in got} == set(range(events))))


async def until(happened: Callable[[], bool]) -> None:
    """Let the loop go on until something is so."""
    while not happened():  # noqa: ASYNC110
        await asyncio.sleep(0.0005)


async def batched_publisher(port: int, pipe: Connection) -> None:
    """Publish by the bus, never faster than it can send."""
    async with bus(port, "publisher", max_waiting=50_000) as opened:
        pipe.send("ready")
        while events := await asyncio.to_thread(pipe.recv):
            hints = happened(events)
            pipe.send(time.monotonic())
            for start in range(0, events, AHEAD):
                for each in hints[start : start + AHEAD]:
                    opened.publish(each)
                await until(lambda: opened.counters.waiting < AHEAD)


async def batched_subscriber(port: int, pipe: Connection) -> None:
    """Take what the bus gives, all that is there at once."""
    async with bus(port, "subscriber", max_waiting=50_000) as opened, opened.subscribe() as hints:
        pipe.send("ready")
        while events := await asyncio.to_thread(pipe.recv):
            got: list[Hint] = []
            while len(got) < events:
                got += await hints.wait()
            pipe.send((time.monotonic(), {each.entry for each in got} == set(range(events))))


Part = Callable[[int, Connection], Coroutine[None, None, None]]


def run(part: Part, port: int, pipe: Connection) -> None:
    """The whole of a process."""
    asyncio.run(part(port, pipe))


class Side:
    """A publisher and a subscriber that wait for rounds."""

    def __init__(self, port: int, subscriber: Part, publisher: Part, events: int) -> None:
        self._events = events
        self._pipes: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for part in (subscriber, publisher):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=run, args=(part, port, theirs), daemon=True
            )
            process.start()
            self._processes.append(process)
            self._pipes.append(ours)
            ours.recv()

    async def rate(self) -> float:
        """Events a second in one round."""
        return await asyncio.to_thread(self._rate)

    def _rate(self) -> float:
        subscriber, publisher = self._pipes
        subscriber.send(self._events)
        publisher.send(self._events)
        began = publisher.recv()
        if not subscriber.poll(60):
            raise RuntimeError("not all events arrived")
        ended, whole = subscriber.recv()
        if not whole:
            raise RuntimeError("events were lost or repeated")
        return self._events / (ended - began)

    def end(self) -> None:
        """Let both processes leave."""
        for pipe in self._pipes:
            pipe.send(0)
        for process in self._processes:
            process.join(10)


async def measure(pairs: int) -> dict[str, object]:
    """The medians of alternating rounds."""
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        plain = Side(broker.port, plain_subscriber, plain_publisher, PLAIN)
        batched = Side(broker.port, batched_subscriber, batched_publisher, BATCHED)
        rounds = await alternate({"plain": plain.rate, "batched": batched.rate}, pairs)
        plain.end()
        batched.end()
    return {**rates("bus", rounds), **compared("bus", rounds, "batched", "plain")}


if __name__ == "__main__":
    given = arguments(__doc__, pairs=9).parse_args()
    show(asyncio.run(measure(given.pairs)), as_json=given.json)
