"""Decides whether spans are sent to a collector, and starts the export."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import TelemetrySettings
from midwatch_monitor.errors import MissingExtraError, UsageError
from midwatch_monitor.journal import Journal

log = logging.getLogger(__name__)
_HEADER = re.compile(r"\s*[\w!#$%&'*+.^`|~-]+[ \t]*=[ \t!#-+\x2d-:<-\[\]-~]*\s*", re.ASCII)
"""The form that the library accepts; it logs anything else verbatim."""


def headers_of(settings: TelemetrySettings, environ: Mapping[str, str]) -> str:
    """Return the headers for the collector from their environment variable; empty if none is named.

    Raises UsageError, without the value, for a variable that is not set or malformed.
    """
    name = settings.headers_env
    if not (settings.endpoint and name):
        return ""
    said = environ.get(name, "")
    if not said:
        raise UsageError(f"telemetry.headers_env: the environment variable {name} is not set")
    if not all(_HEADER.fullmatch(each) for each in said.split(",") if each.strip()):
        raise UsageError(f"telemetry.headers_env: {name} is not of the form name=value,name=value")
    return said


@asynccontextmanager
async def export_spans(
    settings: TelemetrySettings, journal: Journal, *, bus: Bus, run: int | None = None
) -> AsyncGenerator[None]:
    """Send what happens in a run from now on, until the end of the block.

    Without a `run`: in all runs that a monitor supervises. Nothing is sent if no collector is
    configured; a missing extra is only logged, since the work matters more than its traces. Raises
    what `headers_of` does.
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
