"""A real mosquitto, and whoever talks over it."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from midwatch_tests.broker import Broker, program
from midwatch_tests.net import WORDS, Net


@pytest.fixture
def serve(tmp_path: Path) -> Generator[Callable[..., Broker]]:
    """Starts a broker; skipped where there is none, but not in CI."""
    if program() is None and not os.environ.get("CI"):
        pytest.skip("mosquitto is not installed here")
    started: list[Broker] = []

    def start(**given: Any) -> Broker:
        started.append(Broker(tmp_path / f"broker{len(started)}", **given))
        return started[-1]

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture
async def net(serve: Callable[..., Broker]) -> AsyncGenerator[Net]:
    """A broker that everybody may use."""
    opened = Net(serve())
    yield opened
    await opened.end()


@pytest.fixture
async def secure_net(serve: Callable[..., Broker]) -> AsyncGenerator[Net]:
    """A broker with accounts, TLS and the shipped access list."""
    if shutil.which("openssl") is None and not os.environ.get("CI"):
        pytest.skip("openssl is not installed here")
    opened = Net(serve(secure=True, accounts=WORDS))
    yield opened
    await opened.end()
