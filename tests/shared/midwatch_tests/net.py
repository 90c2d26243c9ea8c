"""Buses, plain clients and nodes over one broker."""

import os
import sys
from asyncio import create_subprocess_exec, timeout
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiomqtt import Client, ProtocolVersion

from midwatch_monitor.bus import LocalBus, Subscription
from midwatch_monitor.bus.mqtt import MqttBus
from midwatch_monitor.bus.payload import encode_status
from midwatch_monitor.config.fleet import BrokerSettings, FleetSettings
from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_tests.broker import Broker
from midwatch_tests.nodes import node
from midwatch_tests.ports import LOOPBACK

WORDS = {"a": "the-word-of-a", "b": "the-word-of-b"}
"""The passwords of the accounts that a secure broker has."""


def status_of(name: str, *, boot: str = "1", state: NodeState = NodeState.UP) -> NodeStatus:
    """What a node says of itself."""
    made = node(name, "gpu", state=state, slots=4, busy=1)
    return replace(made, boot=boot, revision="0003")


class Net:
    """One broker, and whoever talks over it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._children: list[Process] = []

    def settings(self, **broker: Any) -> FleetSettings:
        """The settings for this broker; it is looked for often while it is away."""
        knobs: dict[str, Any] = {"url": self.broker.url, "max_wait_seconds": 0.2, **broker}
        return FleetSettings(broker=BrokerSettings(**knobs))

    @asynccontextmanager
    async def bus(
        self,
        name: str,
        *,
        connected: bool = True,
        word: str = "",
        settings: Any = None,
        **more: Any,
    ) -> AsyncGenerator[MqttBus]:
        """A bus of that name, usually once it is connected."""
        environ = {"MIDWATCH_BROKER_PASSWORD": word or WORDS.get(name, "")}
        made = MqttBus(settings or self.settings(), name=name, environ=environ, **more)
        async with made as bus:
            if connected:
                await self.until(lambda: bus.counters.connected)
            yield bus

    @asynccontextmanager
    async def client(self, name: str | None = None) -> AsyncGenerator[Client]:
        """A plain client, with the account of that name."""
        async with Client(
            LOOPBACK,
            self.broker.port,
            username=name,
            password=WORDS.get(name or ""),
            protocol=ProtocolVersion.V5,
        ) as client:
            yield client

    async def node(self, name: str, **broker: Any) -> Process:
        """A process that is a node, connected."""
        words = (
            self.settings(**broker).model_dump_json(),
            encode_status(status_of(name)).decode(),
            name,
        )
        child = await create_subprocess_exec(
            *(sys.executable, "-m", "midwatch_tests.lone", *words),
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[1]),
                "MIDWATCH_BROKER_PASSWORD": WORDS["a"],
            },
            stdin=PIPE,
            stdout=PIPE,
        )
        self._children.append(child)
        assert child.stdout is not None
        assert await child.stdout.readline() == b"up\n"
        return child

    async def until(self, happened: Callable[[], bool], seconds: float = 120) -> None:
        """Wait for something to be true."""
        nothing = LocalBus().subscribe()
        async with timeout(seconds):
            while not happened():
                await nothing.wait(0.005)

    async def entries(self, hints: Subscription, count: int) -> list[int]:
        """The entries of so many hints, and of those that came with the last of them."""
        heard: list[int] = []
        async with timeout(120):
            while len(heard) < count:
                heard += [each.entry for each in await hints.wait()]
        return heard

    async def end(self) -> None:
        """End the processes that were started."""
        for child in self._children:
            if child.returncode is None:
                child.kill()
                await child.wait()
