"""An attempt at work, for a monitor to look after."""

from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor.recorder import Recorder, working_transition


@pytest.fixture
async def recorder(claim: Callable[..., Awaitable[Recorder]]) -> Recorder:
    recorder = await claim()
    await recorder.record(working_transition())
    return recorder
