"""`midwatch metrics`: the figures of a journal, for Prometheus."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import JournalError, MissingExtraError
from midwatch_monitor.journal.core.clock import now
from midwatch_supervisor.cli.fleet.monitor import until_told
from midwatch_supervisor.cli.inspect.web import host_and_port
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.output import write_error, write_line
from midwatch_supervisor.telemetry.metrics import JournalMetrics

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(
    *,
    serve: Annotated[
        str | None,
        Parameter(
            help="HOST:PORT to serve them at, under /metrics, until told to stop; without a HOST "
            "at 127.0.0.1. Whoever reaches it can read them."
        ),
    ] = None,
    journal: JournalOption = None,
) -> None:
    """Print the figures of all runs in Prometheus' text format: once, or whenever it asks."""
    place = None if serve is None else host_and_port("--serve", serve)
    async with await journal_to_read(journal) as opened:
        figures = JournalMetrics(opened, clock=now)
        if place is None:
            for line in (await figures.text()).splitlines():
                write_line(line)
        else:
            await until_told(_serve(figures, *place))


async def _serve(figures: JournalMetrics, host: str, port: int) -> None:
    """Answer until cancelled. Raises UsageError where it cannot listen, and MissingExtraError."""
    try:
        from aiohttp import web

        from midwatch_supervisor.telemetry.http_listener import serve
    except ImportError as error:
        raise MissingExtraError("`metrics --serve`", "otel") from error

    async def answer(_request: web.Request) -> web.Response:
        try:
            return web.Response(body=await figures.text(), headers={"Content-Type": _TYPE})
        except JournalError as error:
            write_error(f"warning: {error}")
            return web.Response(status=503)

    async with serve(host, port, web.get("/metrics", answer)) as taken:
        at = f"[{host}]" if ":" in host else host
        write_line(f"Metrics at http://{at}:{taken}/metrics, until you press Ctrl-C")
        await asyncio.get_running_loop().create_future()
