"""A small HTTP server for other programs: requests of bounded size, answered by the event loop."""

import asyncio
import socket
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from midwatch_monitor.errors import UsageError

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, also once it is unpacked."""
_MOST_AT_ONCE = 8
_PATIENCE = 10.0
"""Seconds that a client may be silent in the middle of a request."""
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What somebody asks."""

    method: str
    host: str
    """As which this was asked for, without a port."""
    path: str
    """Without a query."""
    type: str
    """Of the body, in small letters and without parameters."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What is answered."""

    status: int = 200
    type: str = "text/plain; charset=utf-8"
    body: bytes = b""


Answering = Callable[[HttpRequest], Awaitable[HttpAnswer]]


@asynccontextmanager
async def serving(host: str, port: int, answering: Answering) -> AsyncGenerator[int]:
    """Serve until the end of the block, at the port that is given; 0 takes a free one.

    Raises UsageError where it cannot listen there.
    """
    loop = asyncio.get_running_loop()

    def ask(request: HttpRequest) -> HttpAnswer:
        asked = asyncio.run_coroutine_threadsafe(_answered(answering, request), loop)
        try:
            return asked.result(_ANSWER_SECONDS)
        except (TimeoutError, CancelledError):
            asked.cancel()
            return HttpAnswer(status=503)

    try:
        server = _Server((host, port), ask)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen at {host}:{port}: {error}") from error
    serving = asyncio.create_task(asyncio.to_thread(server.serve_forever, 0.1))
    try:
        yield server.server_address[1]
    finally:
        await asyncio.to_thread(server.shutdown)
        await serving
        server.server_close()


async def _answered(answering: Answering, request: HttpRequest) -> HttpAnswer:
    return await answering(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, at: tuple[str, int], ask: Callable[[HttpRequest], HttpAnswer]) -> None:
        self.ask = ask
        self._places = BoundedSemaphore(_MOST_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
        super().__init__(at, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    server_version = "midwatch"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self._body()
        answer = HttpAnswer(status=413)
        if body is not None:
            assert isinstance(self.server, _Server)
            answer = self.server.ask(
                HttpRequest(
                    method=self.command,
                    host=self.headers.get("Host", "").rpartition(":")[0],
                    path=self.path.partition("?")[0],
                    type=self.headers.get_content_type(),
                    body=body,
                )
            )
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _body(self) -> bytes | None:
        """The body, unpacked; `None` for one that is too long, or cannot be read."""
        length = self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            sent = self._chunks()
        elif length.isdecimal() and int(length) <= MAX_BODY:
            sent = self.rfile.read(int(length))
        else:
            return None
        if sent is None or self.headers.get("Content-Encoding", "identity") != "gzip":
            return sent
        unpacking = zlib.decompressobj(31)
        try:
            found = unpacking.decompress(sent, MAX_BODY + 1)
        except zlib.error:
            return None
        return found if len(found) <= MAX_BODY else None

    def _chunks(self) -> bytes | None:
        found = b""
        while size := int(self.rfile.readline(20).partition(b";")[0], 16):
            if size < 0 or len(found) + size > MAX_BODY:
                return None
            found += self.rfile.read(size)
            self.rfile.readline(20)
        return found

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: who asked what is nobody's business."""
