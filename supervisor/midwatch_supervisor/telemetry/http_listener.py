"""A small HTTP server for other programs, beside the work in the same event loop."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from midwatch_monitor.errors import UsageError

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, also once it is unpacked."""


@asynccontextmanager
async def serve(host: str, port: int, route: web.RouteDef) -> AsyncGenerator[int]:
    """Serve until the end of the block, at the port that is given; 0 takes a free one.

    Raises UsageError where it cannot listen there.
    """
    application = web.Application(client_max_size=MAX_BODY)
    application.add_routes([route])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, UnicodeError) as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error}") from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
