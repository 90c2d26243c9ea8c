"""Whether anything is sent to a collector, and by whom."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import TelemetrySettings
from midwatch_monitor.errors import MissingExtraError
from midwatch_monitor.journal import Journal

log = logging.getLogger(__name__)


@asynccontextmanager
async def export_spans(
    settings: TelemetrySettings, journal: Journal, *, bus: Bus, run: int | None = None
) -> AsyncGenerator[None]:
    """Send what happens from now on in a run, until the end of the block.

    Without a `run`: in all that a monitor keeps. Nothing is sent where no collector is configured;
    a missing extra is said in the log, as the work is worth more than its traces.
    """
    if not settings.endpoint:
        yield
        return
    try:
        from midwatch_supervisor.telemetry.export import Export
    except ImportError:
        log.warning("%s", MissingExtraError("telemetry", "otel"))
        yield
        return
    export = Export(journal, settings, run=run, after=await journal.last_id())
    following = asyncio.create_task(export.follow(bus))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait({following})
        await export.finish()
