"""A small HTTP server for other programs, beside the work in the same event loop."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError

from midwatch_monitor.errors import UsageError

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, also once it is unpacked."""

log = logging.getLogger(__name__)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether the server is to say it: of a request that cannot be read, a line will do.

    It logs a traceback, which is of the sender's making, and would stand across the console.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, web.RequestPayloadError):  # who reads the body says so
        return False
    if isinstance(error, HttpProcessingError):
        record.msg, record.args = "a request cannot be read: %s", (error.message.split("\n")[0],)
        record.exc_info = None
    return True


log.addFilter(_is_ours)


@asynccontextmanager
async def serve(host: str, port: int, route: web.RouteDef) -> AsyncGenerator[int]:
    """Serve until the end of the block, at the port that is given; 0 takes a free one.

    Raises UsageError where it cannot listen there.
    """
    application = web.Application(client_max_size=MAX_BODY)
    application.add_routes([route])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1, logger=log)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, UnicodeError) as error:
            raise UsageError(f"cannot listen at {host}:{port}: {error}") from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
