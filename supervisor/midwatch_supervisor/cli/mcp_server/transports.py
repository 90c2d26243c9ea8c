"""Transports of a server: the standard streams, or HTTP with a token."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from midwatch_supervisor.cli.inspect.web import Page
from midwatch_supervisor.cli.output import write_line

PATH = "/mcp"
_END_SECONDS = 3


def _handle_signals(end: Callable[[], object], *signs: signal.Signals) -> None:
    if threading.current_thread() is threading.main_thread():
        for sign in signs:
            asyncio.get_running_loop().add_signal_handler(sign, end)


async def serve_stdio(server: Server[Any] | MCPServer[Any]) -> None:
    """Serve one client until it closes its end, or until SIGTERM.

    The thread that reads standard input may hold the process a while longer: threads cannot be
    canceled.
    """
    told = asyncio.Event()
    _handle_signals(told.set, signal.SIGTERM)
    work = [asyncio.create_task(_serve_streams(server)), asyncio.create_task(told.wait())]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in work:
            each.cancel()
    if work[0].done() and not work[0].cancelled():
        work[0].result()


async def _serve_streams(server: Server[Any] | MCPServer[Any]) -> None:
    if isinstance(server, MCPServer):
        await server.run_stdio_async()
        return
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class AccessCheck:
    """Refuses requests without the token, for another host name, or from a web page."""

    def __init__(self, application: ASGIApp, page: Page) -> None:
        self._application = application
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(Headers(scope=scope))
        await (refusal or self._application)(scope, receive, send)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._page.is_at(host):
            return PlainTextResponse("another name leads to this server\n", 421)
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("pages of other addresses are not served\n", 403)
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._page.knows(token.strip()):
            return None
        bearer = {"WWW-Authenticate": "Bearer"}
        return PlainTextResponse("the bearer token is missing or wrong\n", 401, bearer)


def application(server: MCPServer[Any], page: Page) -> ASGIApp:
    """Return the application behind its access check."""
    door = TransportSecuritySettings(
        enable_dns_rebinding_protection=False
    )  # `AccessCheck` checks every request
    inner = server.streamable_http_app(streamable_http_path=PATH, transport_security=door)
    return AccessCheck(inner, page)


async def serve_http(server: MCPServer[Any], page: Page) -> None:
    """Serve clients with the token until told to stop. Raises UsageError if it cannot listen."""
    family = socket.AF_INET6 if ":" in page.host else socket.AF_INET
    try:
        listening = socket.create_server((page.host, page.port), family=family)
    except (OSError, UnicodeError) as error:
        raise page.refusal(error) from error
    config = uvicorn.Config(
        application(server, page),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_END_SECONDS,
        ws="none",
    )
    serving = uvicorn.Server(config)
    # It handles signals only once it has started, and re-raises them at its end.
    _handle_signals(lambda: setattr(serving, "should_exit", True), signal.SIGTERM, signal.SIGINT)
    with listening:
        token = f"the token of {page.source}" if page.source else page.token
        page.announce(f"MCP is at {page.origin}{PATH}, with `Authorization: Bearer` and {token}")
        await serving.serve([listening])
    write_line("MCP is no longer served")
