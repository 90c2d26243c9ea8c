"""The local socket at which the hooks of agents ask Midwatch."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from midwatch_monitor.errors import JournalError, StaleIncarnationError, UsageError
from midwatch_supervisor.sessions.session_watch import SessionWatch

log = logging.getLogger(__name__)

_LONGEST = 9 * 1024 * 1024
"""Bytes of one line; a hook sends less."""
_PATIENCE = 2.0
"""Seconds for a hook to say what it wants, and that it has its answer."""


@asynccontextmanager
async def listen_for_hooks(at: Path, watch: SessionWatch) -> AsyncGenerator[None]:
    """Answer hooks until the end of the block, in a folder of the user's own.

    Raises UsageError where another process listens there already.
    """
    _take_place(at)
    under_way = set[asyncio.Task[None]]()

    def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_attend(reader, writer, watch))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    server = await asyncio.start_unix_server(attend, at, limit=_LONGEST)
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*under_way)
        await asyncio.to_thread(at.unlink, missing_ok=True)


def _take_place(at: Path) -> None:
    """Remove the socket of a process that is gone."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(at))
        except OSError:
            with suppress(FileNotFoundError):
                at.unlink()
            return
    raise UsageError(
        "another `midwatch attach` watches the sessions of this user already; `midwatch watch` "
        "shows what it sees"
    )


async def _attend(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watch: SessionWatch
) -> None:
    """Answer one hook; what was said counts as delivered once the hook says that it has it."""
    try:
        async with asyncio.timeout(_PATIENCE):
            line = await reader.readline()
        heard = await watch.hear(line)
        text = "" if heard is None else heard[1].text
        writer.write(json.dumps({"print": text}).encode() + b"\n")
        await writer.drain()
        if heard is None or not text:
            return
        session, reply = heard
        async with asyncio.timeout(_PATIENCE):
            has_it = await reader.readline()
        if has_it:
            await session.note_delivery(reply)
    except (OSError, TimeoutError, ValueError, JournalError, StaleIncarnationError) as error:
        log.warning("a hook was not answered: %s", error)
    finally:
        writer.close()
