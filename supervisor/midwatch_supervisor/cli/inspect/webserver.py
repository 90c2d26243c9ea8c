"""The server of `watch --web`: access control, and one console process for each browser."""

import asyncio
import secrets
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from types import MappingProxyType

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.inspect.web import Page
from midwatch_supervisor.cli.interrupts import run_until_first

_BROWSER = web.RequestKey("browser", str)
_ATTEMPT = r"/attempt/{attempt:\d{1,18}}"
"""Page that opens one attempt, as messages link to it."""
_LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
"""What browsers send when a link in a mail or a chat was followed; they send no cookie then."""
RequireAttempt = Callable[[int], Awaitable[object]]
WebHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    # Load nothing from other sites, send them nothing, and let no other page embed this one.
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# Only pages of this address send the cookie. A redirect would still count as coming from the page
# that held the link, and the browser would withhold the cookie: hence a page that leads on.
_ENTER = '<!doctype html><meta http-equiv="refresh" content="0;url={}"><title>Midwatch</title>'
_NO_TOKEN = "open the address that `midwatch watch --web` printed\n"
_WRONG_NAME = "open it by the name or address that `midwatch watch --web` printed\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on consoles."""

    consoles: int = 8
    """Largest number of consoles; each is a process, and a browser has one."""
    heartbeat_seconds: float = 10.0
    """Interval of pings; a browser that is silent for one and a half intervals is gone."""
    grace_seconds: float = 3.0
    """How long a console may take to end by itself."""


@dataclass(slots=True)
class _Place:
    """What one browser has open."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    newest: web.Request | None = None
    shown: web.Request | None = None
    waiting: int = 0


class WebServer(Server):
    """textual-serve with access control, a page without inline scripts or styles, and no output."""

    def __init__(
        self,
        command: Sequence[str],
        page: Page,
        limits: Limits | None = None,
        *,
        environ: Mapping[str, str] = MappingProxyType({}),
        require_attempt: RequireAttempt | None = None,
    ) -> None:
        """Start the command for each browser, with `environ` added to its environment.

        `require_attempt` raises UsageError if there is no such attempt.
        """
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "", host=page.host, port=page.port, title="Midwatch"
        )
        self._words = command
        self._environ = environ
        self._page = page
        self._limits = limits or Limits()
        self._require_attempt = require_attempt
        self._places: dict[str, _Place] = {}

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._let_in])
        app.add_routes(
            [
                web.get("/", self.handle_index),
                web.get(_ATTEMPT, self.handle_index),
                web.get("/ws", self.handle_websocket),
                web.get(f"/ws{_ATTEMPT}", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
            ]
        )
        app.on_response_prepare.append(_seal)
        app.on_shutdown.append(self._end_all)
        return app

    # -- access ----------------------------------------------------------------------------

    @web.middleware
    async def _let_in(self, request: web.Request, handler: WebHandler) -> web.StreamResponse:
        page = self._page
        if not page.is_at(request.host):
            raise web.HTTPMisdirectedRequest(text=_WRONG_NAME)
        browser = page.browser(request.cookies.get(page.cookie))
        if page.knows(request.query.get("token")):
            ticket = page.ticket(browser or secrets.token_hex(16))
            answer = _lead_on(request)
            answer.set_cookie(page.cookie, ticket, httponly=True, samesite="Strict", path="/")
            return answer
        if browser is None and _LINK.items() <= request.headers.items():
            return _lead_on(request)
        if browser is None or _from_other_site(request):
            raise web.HTTPForbidden(text=_NO_TOKEN)
        request[_BROWSER] = browser
        return await handler(request)

    def _require_room(self, browser: str) -> None:
        if browser not in self._places and len(self._places) >= self._limits.consoles:
            raise web.HTTPServiceUnavailable(
                text=f"{len(self._places)} browsers already show the console: close one\n"
            )

    # -- answers ---------------------------------------------------------------------------

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Return the page, with addresses that use the host name of the request."""
        self._require_room(request[_BROWSER])
        attempt = request.match_info.get("attempt")
        if attempt and self._require_attempt:
            try:
                await self._require_attempt(int(attempt))
            except UsageError as error:
                raise web.HTTPNotFound(text=f"{error}\n") from error
        nonce = secrets.token_urlsafe(16)
        scheme = "wss" if request.scheme == "https" else "ws"
        text = Template(
            files("midwatch_supervisor.cli.inspect").joinpath("web.html").read_text("utf-8")
        ).substitute(
            nonce=nonce,
            socket=escape(f"{scheme}://{request.host}/ws{_page_path(request).rstrip('/')}"),
            font_size=to_int(request.query.get("fontsize", "16"), 16),
        )
        answer = web.Response(text=text, content_type="text/html")
        answer.headers["Content-Security-Policy"] = (
            f"{_POLICY}; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; "
            "img-src 'self' data:; font-src 'self'; connect-src 'self'"
        )
        return answer

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a console for a browser, after ending the one it already has open."""
        browser = request[_BROWSER]
        self._require_room(browser)
        place = self._places.setdefault(browser, _Place())
        place.newest = request
        place.waiting += 1
        _hang_up(place.shown)
        try:
            async with place.turn:
                return await self._show(request, place)
        finally:
            place.waiting -= 1
            if not place.waiting:
                del self._places[browser]

    async def _show(self, request: web.Request, place: _Place) -> web.WebSocketResponse:
        limits = self._limits
        websocket = web.WebSocketResponse(
            heartbeat=limits.heartbeat_seconds, timeout=limits.grace_seconds
        )
        await websocket.prepare(request)
        if place.newest is not request:
            _hang_up(request)
            return websocket
        place.shown = request
        attempt = request.match_info.get("attempt")
        words = [*self._words, "--attempt", attempt] if attempt else self._words
        console = BrowserConsole(
            *(words, self._environ, websocket, self.download_manager),
            grace_seconds=limits.grace_seconds,
        )
        try:
            size = (to_int(request.query.get(key, ""), 80) for key in ("width", "height"))
            await console.start(*size)
            await self._wait_for_end(request, websocket, console)
        finally:
            place.shown = None
            await console.stop()
            _hang_up(request)  # a browser that reads nothing would never see the end
        return websocket

    async def _wait_for_end(
        self, request: web.Request, websocket: web.WebSocketResponse, console: "BrowserConsole"
    ) -> None:
        """Wait until the browser or the console is gone, even if something else hangs."""
        await run_until_first(
            self._process_messages(websocket, console),
            _wait_gone(request, websocket, self._limits.heartbeat_seconds / 10),
            console.wait_ended(),
        )

    async def _end_all(self, app: web.Application) -> None:
        del app
        for place in self._places.values():
            place.newest = None
            _hang_up(place.shown)


_MODES = 100
"""Bytes of the longest packet that only sets up the terminal; a drawn screen has more."""


class BrowserConsole(AppService):
    """The process of one console, which ends with its browser."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        websocket: web.WebSocketResponse,
        downloads: DownloadManager,
        *,
        grace_seconds: float,
    ) -> None:
        async def close() -> None:
            await websocket.close()

        super().__init__(
            "",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=close,
            download_manager=downloads,
        )
        self._words = words
        self._environ = environ
        self._grace_seconds = grace_seconds
        self._early_size: tuple[int, int] | None = None
        """The size that the browser changed to before the console had drawn anything."""
        self._drawn = False

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Pass on the browser's size; a console that is still starting would ignore it."""
        if not self._drawn:
            self._early_size = width, height
        await super().set_terminal_size(width, height)

    async def on_data(self, payload: bytes) -> None:
        """Pass on what the console draws."""
        await super().on_data(payload)
        if not self._drawn and len(payload) > _MODES:
            self._drawn = True
            if self._early_size is not None:
                await super().set_terminal_size(*self._early_size)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**self._build_environment(width, height), **self._environ},
        )
        self._process, self._stdin = process, process.stdin
        return process

    async def wait_ended(self) -> None:
        """Wait until the console has stopped drawing."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Let the console end within the grace period, else kill it: its browser may block it."""
        process, drawing = self._process, self._task
        if process is None or drawing is None:
            return
        self._task = None
        await self._download_manager.cancel_app_downloads(self.app_service_id)
        asking = asyncio.create_task(self.send_meta({"type": "quit"}))
        await asyncio.wait({drawing}, timeout=self._grace_seconds)
        with suppress(ProcessLookupError):  # it has ended, as it should
            process.kill()
        # No timeout around the await: it treats cancellation as success.
        drawing.cancel()
        asking.cancel()
        await asyncio.gather(drawing, asking, return_exceptions=True)
        with suppress(TimeoutError):  # its child processes may hold the output open
            async with asyncio.timeout(self._grace_seconds):
                await process.communicate()


async def _wait_gone(request: web.Request, websocket: web.WebSocketResponse, every: float) -> None:
    """Wait until the browser has closed the connection or stopped answering."""
    while request.transport is not None and not websocket.closed:  # noqa: ASYNC110 — no event
        await asyncio.sleep(every)


def _hang_up(request: web.Request | None) -> None:
    """Close a connection at once, dropping what is still being sent."""
    if request is not None and request.transport is not None:
        request.transport.abort()


def _page_path(request: web.Request) -> str:
    """Return the path of the console's page or of one attempt, without any query."""
    attempt = request.match_info.get("attempt")
    return f"/attempt/{attempt}" if attempt else "/"


def _lead_on(request: web.Request) -> web.Response:
    return web.Response(text=_ENTER.format(_page_path(request)), content_type="text/html")


def _from_other_site(request: web.Request) -> bool:
    """Whether another site's page sent it: cookies do not distinguish ports of the same host."""
    origin = request.headers.get("Origin")
    if origin is None:  # every browser sends one when it opens a socket
        return request.path.startswith("/ws")
    return origin.partition("://")[2] != request.host


async def _seal(request: web.Request, response: web.StreamResponse) -> None:
    del request
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
