"""A monitor over the run of an attempt that is at work."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_tests.monitored import Monitored


@pytest.fixture
async def recorder(claim: Callable[..., Awaitable[Recorder]]) -> Recorder:
    recorder = await claim()
    await recorder.record(working_transition())
    return recorder


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def make_monitor(
    journal: Journal, bus: LocalBus, at: datetime, settings: Settings
) -> Callable[..., Monitor]:
    """Makes a monitor; `make_monitor(bus=…)` gives it something else than the fixtures."""

    def build(**other: Any) -> Monitor:
        made: dict[str, Any] = {"journal": journal, "bus": bus, "settings": settings, "run": 1}
        made |= {"clock": lambda: at, **other}
        return Monitor(**made)

    return build


@pytest.fixture
def monitor(make_monitor: Callable[..., Monitor]) -> Monitor:
    return make_monitor()


@pytest.fixture
def scene(
    journal: Journal,
    recorder: Recorder,
    monitor: Monitor,
    make_monitor: Callable[..., Monitor],
    write: Callable[..., Awaitable[int]],
) -> Monitored:
    return Monitored(
        journal=journal, recorder=recorder, monitor=monitor, watching=make_monitor, write=write
    )
