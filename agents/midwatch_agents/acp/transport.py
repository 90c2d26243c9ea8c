"""JSON-RPC messages, one per line. Anything else is skipped."""

import asyncio
import json
import logging
from typing import Any

log = logging.getLogger(__name__)

LONGEST = 32 * 2**20
"""Longest line, in bytes; a longer one is dropped, so that no agent can fill the memory."""


class LineTransport:
    """One message per line, over pipes or a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """`reader` must have `LONGEST` as its limit."""
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. Raises ConnectionError if the other side has closed."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; `None` at the end."""
        while True:
            try:
                if not (line := await self._reader.readline()):
                    return None
                message = json.loads(line)
            except (ValueError, RecursionError) as error:  # a greeting, or longer than `LONGEST`
                log.warning("a line that is not a message is ignored: %s", error)
                continue
            if isinstance(message, dict):
                return message  # pyright: ignore[reportUnknownVariableType]

    async def close(self) -> None:
        """Close the agent's input, which ends most agents."""
        self._writer.close()
