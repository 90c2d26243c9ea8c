"""Those who are called: a webhook and a mail server on loopback that keep what they are sent.

The webhook takes what is sent to ntfy as well.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from midwatch_tests.ports import LOOPBACK, free_port


@dataclass(slots=True, kw_only=True)
class Receiver:
    """What was received."""

    port: int
    status: int = 200
    """What a webhook answers; 0 for nothing, until whoever sent it gives up."""
    signatures: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])
    """Of a mail server, whole mails."""
    times: list[datetime] = field(default_factory=list[datetime])
    """When a webhook had each body."""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/hook"

    @property
    def ntfy(self) -> str:
        """As Apprise has the URL of such a server."""
        return f"ntfy://{LOOPBACK}:{self.port}/night"

    @property
    def items(self) -> list[dict[str, Any]]:
        """What a webhook was told of, over all messages."""
        return [item for body in self.bodies for item in json.loads(body)["items"]]

    async def hook(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
        self.bodies.append(await reader.readexactly(int(fields["content-length"])))
        self.times.append(datetime.now(UTC))
        self.signatures.append(fields.get("midwatch-signature", ""))
        if not self.status:
            await reader.read()
        writer.write(f"HTTP/1.1 {self.status} So\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def mail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).strip().upper():
            if line == b"DATA":
                writer.write(b"354 go on\r\n")
                self.bodies.append(await reader.readuntil(b"\r\n.\r\n"))
            writer.write(b"221 bye\r\n" if line == b"QUIT" else b"250 ok\r\n")
            await writer.drain()
            if line == b"QUIT":
                break
        writer.close()


@asynccontextmanager
async def webhook() -> AsyncGenerator[Receiver]:
    """A webhook that takes everything."""
    receiver = Receiver(port=free_port())
    async with await asyncio.start_server(receiver.hook, LOOPBACK, receiver.port):
        yield receiver


@asynccontextmanager
async def mail_server() -> AsyncGenerator[Receiver]:
    """A mail server that takes every mail."""
    receiver = Receiver(port=free_port())
    async with await asyncio.start_server(receiver.mail, LOOPBACK, receiver.port):
        yield receiver
