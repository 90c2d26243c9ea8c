"""A collector of another maker, Phoenix, takes the spans for what they are."""

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import TelemetrySettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt
from midwatch_stage.command import write
from midwatch_stage.factories import alert, ended, step, transition
from midwatch_stage.ports import LOOPBACK, free_port
from midwatch_supervisor.telemetry.exporting import export_spans

pytestmark = pytest.mark.skipif(
    shutil.which("phoenix") is None,
    reason="there is no `phoenix` on the PATH: uv tool install arize-phoenix",
)


@asynccontextmanager
async def phoenix(folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """Who asks it what it has; it keeps it in that folder."""
    port = free_port()
    own = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_HOST": LOOPBACK,
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
    }
    process = await asyncio.create_subprocess_exec(
        *("phoenix", "serve"), env={**os.environ, **own}, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", trust_env=False) as asks:
            yield asks
    finally:
        process.terminate()
        await process.wait()


async def answered(asks: httpx.AsyncClient, path: str) -> httpx.Response:
    """The first answer to a question that is no error."""
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(300):
        while True:
            try:
                answer = await asks.get(path)
            except httpx.TransportError:
                pass
            else:
                if answer.is_success:
                    return answer
            await nothing.wait(0.5)


async def kept(asks: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """The spans that it has, once there are so many."""
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(300):
        while True:
            spans = (await answered(asks, "/v1/projects/default/spans?limit=100")).json()["data"]
            if len(spans) >= count:
                return spans
            await nothing.wait(0.5)


async def test_it_shows_an_attempt_as_an_agent_with_its_calls_below_and_alerts_on_it(
    journal: Journal, attempt: Attempt, at: datetime, tmp_path: Path
) -> None:
    async with phoenix(tmp_path / "phoenix") as asks:
        await answered(asks, "/healthz")
        settings = TelemetrySettings(endpoint=str(asks.base_url))
        async with export_spans(settings, journal, bus=LocalBus(), run=1):
            await write(journal, attempt, at, transition(), step(1, tool="bash", output="secret"))
            await write(journal, attempt, at, alert("cycle"), ended())
        spans = {each["name"]: each for each in await kept(asks, 2)}
    whole, call = spans["invoke_agent coder"], spans["execute_tool bash"]
    assert (whole["span_kind"], call["span_kind"]) == ("AGENT", "TOOL")
    assert call["parent_id"] == whole["context"]["span_id"]
    assert [each["attributes"]["midwatch.rule"] for each in whole["events"]] == ["cycle"]
    assert "secret" not in str(spans)
