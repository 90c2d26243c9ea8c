"""The messages of an agent's process, as lines of JSON. What is no message is passed over."""

import asyncio
import json
import logging
from typing import Any

log = logging.getLogger(__name__)

LONGEST = 32 * 2**20
"""Bytes of a line; a longer one is dropped, so that no agent can fill the memory."""


class LineTransport:
    """One message a line, over the pipes of a process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """`reader` has `LONGEST` as its limit."""
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. Raises ConnectionError where the agent is gone."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; `None` at the end."""
        while line := await self._line():
            try:
                message = json.loads(line)
            except ValueError:  # some agents print a greeting or a warning
                log.debug("an agent wrote a line that is no JSON")
                continue
            if isinstance(message, dict):
                return message  # pyright: ignore[reportUnknownVariableType]
        return None

    async def _line(self) -> bytes:
        while True:
            try:
                return await self._reader.readline()
            except ValueError:  # the rest of it, which comes next, is no JSON either
                log.warning("an agent wrote a line of more than %d bytes; it is dropped", LONGEST)

    async def close(self) -> None:
        """Close its input: most agents end by that."""
        self._writer.close()
