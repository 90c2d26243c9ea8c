"""The console in a browser: whoever knows the token sees it, and nobody else."""

import asyncio
import hmac
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from midwatch_agents.leftovers import end_leftovers
from midwatch_agents.sandbox import MARK
from midwatch_monitor.errors import MissingExtraError, UsageError
from midwatch_supervisor.cli.output import write_error, write_line

if TYPE_CHECKING:
    from aiohttp.web import Application, Request, StreamResponse

_PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
_HEADERS = {
    # Nothing is fetched from elsewhere, nothing is told elsewhere, and no other page holds it.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# The cookie is sent by pages of this address only. A redirect would still count as coming from the
# page that held the link, and the browser would keep the cookie back: hence a page that leads on.
_ENTER = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Midwatch</title>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where a browser finds the console."""

    host: str
    port: int
    token: str

    @classmethod
    def at(cls, host: str, port: int, token: str | None) -> "Page":
        """A page with this token, or with a new random one. Raises UsageError for an empty one."""
        if token is None:
            token = secrets.token_urlsafe()
        if not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
            raise UsageError("--token takes letters, digits, `-` and `_`, and at least one of them")
        return cls(host=host, port=port, token=token)

    @property
    def url(self) -> str:
        """The address to open."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?token={self.token}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers do not tell ports of one host apart."""
        return f"midwatch-{self.port}"

    def knows(self, said: str | None) -> bool:
        """Whether this is the token, in a time that does not tell how much of it is right."""
        return hmac.compare_digest((said or "").encode(), self.token.encode())


def in_browser() -> bool:
    """Whether this process draws for a browser, as a child of `serve`."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


async def serve(words: Sequence[str], page: Page) -> int:
    """Serve the command `midwatch WORDS` to browsers until interrupted."""
    try:
        from aiohttp import web
    except ImportError as error:
        raise MissingExtraError("`watch --web`", "web") from error
    mark = f"web.{os.getpid()}"
    os.environ[MARK] = mark  # every console that is started for a browser inherits it
    runner = web.AppRunner(await application(words, page), access_log=None)
    await runner.setup()
    try:
        await _listen(web.TCPSite(runner, page.host, page.port).start, page)
        write_line(f"The console is at {page.url}")
        if not page.loopback:
            write_error(
                f"warning: {page.host} is not only this machine: whoever knows the token can act, "
                "and the way is not encrypted"
            )
        sys.stdout.flush()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
    finally:
        await runner.cleanup()
        await end_leftovers(mark)  # a console whose browser has just gone may not know it yet
    return 0


async def _listen(start: Callable[[], Awaitable[None]], page: Page) -> None:
    try:
        await start()
    except OSError as error:
        raise UsageError(f"cannot listen on {page.host}:{page.port}: {error.strerror}") from error


async def application(words: Sequence[str], page: Page) -> "Application":
    """textual-serve's application behind a door that asks for the token."""
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError as error:
        raise MissingExtraError("`watch --web`", "web") from error

    class Served(Server):
        """textual-serve, told apart by the address that a browser used, and silent."""

        async def application(self) -> web.Application:
            app = await self._make_app()
            app.middlewares.append(door)
            app.on_response_prepare.append(_seal)
            return app

        async def on_startup(self, app: web.Application) -> None:
            """Print no banner."""

        async def handle_index(self, request: web.Request) -> web.StreamResponse:
            """The page, with addresses of the host that was asked."""
            self.public_url = f"{request.scheme}://{request.host}"
            return await super().handle_index(request)

    @web.middleware
    async def door(
        request: "Request", handler: Callable[["Request"], Awaitable["StreamResponse"]]
    ) -> "StreamResponse":
        if page.knows(request.query.get("token")):
            answer = web.Response(text=_ENTER, content_type="text/html")
            answer.set_cookie(page.cookie, page.token, httponly=True, samesite="Strict", path="/")
            return answer
        if not page.knows(request.cookies.get(page.cookie)) or _elsewhere(request):
            raise web.HTTPForbidden(text="open the address that `midwatch watch --web` printed\n")
        return await handler(request)

    command = shlex.join([sys.executable, "-c", _PROGRAM, *words])
    server = Served(f"exec {command}", host=page.host, port=page.port, title="Midwatch")
    return await server.application()


def _elsewhere(request: "Request") -> bool:
    """Whether a page of another address asks: cookies do not tell ports of one host apart."""
    origin = request.headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != request.host


async def _seal(request: "Request", response: "StreamResponse") -> None:
    del request
    response.headers.update(_HEADERS)
