"""A small HTTP server for other programs, in the event loop of the work."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError

from midwatch_monitor.errors import UsageError

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, also after decompression."""

log = logging.getLogger(__name__)


def _is_ours(record: logging.LogRecord) -> bool:
    """Reduce the server's log of a malformed request to one line, or to none if a reader logs it.

    Its traceback is the sender's fault, and would be written across the console.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, web.RequestPayloadError):  # the reader of the body reports it
        return False
    if isinstance(error, HttpProcessingError):
        record.msg, record.args = "a request cannot be read: %s", (error.message.split("\n")[0],)
        record.exc_info = None
    return True


log.addFilter(_is_ours)


@asynccontextmanager
async def serve(host: str, port: int, route: web.RouteDef) -> AsyncGenerator[int]:
    """Serve at the given port until the end of the block; 0 takes a free one.

    Raises UsageError if it cannot listen there.
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
