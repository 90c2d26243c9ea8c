"""The console in a browser, only for those who know its token."""

import asyncio
import hmac
import os
import secrets
import signal
import socket
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from midwatch_agents.left_processes import end_leftovers
from midwatch_agents.sandbox import MARK
from midwatch_monitor.errors import MissingExtraError, UsageError
from midwatch_supervisor.cli.interrupts import run_until_stopped
from midwatch_supervisor.cli.output import write_error, write_line

TOKEN = "MIDWATCH_WEB_TOKEN"
"""Environment variable that may hold the token."""
_SHORTEST = 16
"""Shortest token allowed: a shorter one could be found by trial."""
_PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
_LEFT_BY = "web."
_LOOK_SECONDS = 1.0
"""Interval at which a console checks that its server is still there."""
_END_SECONDS = 5.0
"""Seconds the console may take to end after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The address of the console in a browser, with its token."""

    host: str
    port: int
    token: str
    source: str = ""
    """Where the token comes from; empty for a new one, which must be shown to the user."""

    @classmethod
    def at(cls, host: str, port: int, token: str | None, *, source: str = "") -> "Page":
        """Return a page with this token or a new random one. Raises UsageError for a weak token."""
        if token is None:
            return cls(host=host, port=port, token=secrets.token_urlsafe())
        letters = token.replace("-", "").replace("_", "")
        if not (token.isascii() and letters.isalnum() and len(token) >= _SHORTEST):
            raise UsageError(
                f"the token of {source or 'the page'} must be at least {_SHORTEST} letters, "
                "digits, `-` and `_`"
            )
        return cls(host=host, port=port, token=token, source=source)

    @property
    def origin(self) -> str:
        """The address without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/?token={self.token}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the page."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def refusal(self, error: OSError | UnicodeError) -> UsageError:
        """Return the error for an address that cannot be listened on, such as an invalid host."""
        why = error.strerror if isinstance(error, OSError) else "that is not a host name"
        return UsageError(f"cannot listen on {self.host}:{self.port}: {why}")

    def announce(self, line: str) -> None:
        """Print the page's address and who can reach it."""
        write_line(line)
        if not self.loopback:
            write_error(
                f"warning: other machines can reach {self.host}: anybody who knows the token is "
                "let in, and the connection is not encrypted"
            )
        sys.stdout.flush()

    def is_at(self, host: str) -> bool:
        """Whether a `Host` header names this page: foreign DNS may point other names at it."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            return bool(ip_address(name))
        except ValueError:
            return name in {"localhost", self.host.lower(), socket.gethostname().lower()}

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers do not distinguish ports of the same host."""
        return f"midwatch-{self.port}"

    def knows(self, said: str | None) -> bool:
        """Whether this is the token, in constant time."""
        return hmac.compare_digest((said or "").encode(), self.token.encode())

    def ticket(self, browser: str) -> str:
        """Return a signed cookie value that names a browser."""
        return f"{browser}.{hmac.digest(self.token.encode(), browser.encode(), 'sha256').hex()}"

    def browser(self, ticket: str | None) -> str | None:
        """Return the browser that a cookie names; `None` if we did not sign it."""
        browser = (ticket or "").partition(".")[0]
        right = hmac.compare_digest((ticket or "").encode(), self.ticket(browser).encode())
        return browser if right else None


def host_and_port(option: str, text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, or a port alone for 127.0.0.1. Raises UsageError."""
    try:
        named = urlsplit(f"//{text if ':' in text else f':{text}'}")
        port = named.port
    except ValueError:
        port = named = None
    if named is None or port is None or named.path:
        raise UsageError(f"{option} takes HOST:PORT, or PORT alone")
    return named.hostname or "127.0.0.1", port


def page_at(host: str, port: int, token_file: Path | None) -> Page:
    """Return the page with the token of a file or of the environment, or with a new one."""
    held = os.environ.pop(TOKEN, None)  # so that consoles started here do not inherit it
    if token_file is not None:
        return Page.at(host, port, read_token(token_file), source=str(token_file))
    return Page.at(host, port, held or None, source=TOKEN)


def read_token(file: Path) -> str:
    """Read the token from a file; write a new one if there is no file.

    Raises UsageError if others may read the file.
    """
    try:
        if not file.exists():
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as new:
                new.write(f"{secrets.token_urlsafe()}\n")
        with file.open(encoding="ascii", errors="replace") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise UsageError(f"others can read the token in {file}: run `chmod 600` on it")
            return opened.read(4096).strip()
    except OSError as error:
        raise UsageError(f"{file} cannot be used: {error.strerror}") from error


def in_browser() -> bool:
    """Whether this process draws for a browser, as a child of `serve`."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


async def end_with_server() -> None:
    """End this console once its server is gone, no matter how that ended."""
    name, _, server = os.environ.get(MARK, "").partition(".")
    if f"{name}." != _LEFT_BY:  # another program serves it
        return
    while os.getppid() == int(server):  # noqa: ASYNC110 — only Linux can report the end of a parent
        await asyncio.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(_END_SECONDS)
    os._exit(1)


async def serve(
    words: Sequence[str],
    page: Page,
    environ: Mapping[str, str],
    require_attempt: Callable[[int], Awaitable[object]],
) -> int:
    """Serve the command `midwatch WORDS` to browsers until told to stop.

    `environ` is added to the environment of the command; `require_attempt` raises UsageError if
    there is no such attempt. Raises UsageError if it cannot listen
    there, and MissingExtraError.
    """
    try:
        from aiohttp import web

        from midwatch_supervisor.cli.inspect.webserver import WebServer
    except ImportError as error:
        raise MissingExtraError("`watch --web`", "web") from error
    mark = f"{_LEFT_BY}{os.getpid()}"
    command = (sys.executable, "-c", _PROGRAM, *words)
    server = WebServer(
        command, page, environ={**environ, MARK: mark}, require_attempt=require_attempt
    )
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=5)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, page.host, page.port).start()
        except (OSError, UnicodeError) as error:
            raise page.refusal(error) from error
        where = f"{page.origin}/?token=… with the token of {page.source}"

        async def serving() -> None:
            page.announce(f"The console is at {where if page.source else page.url}")
            await asyncio.get_running_loop().create_future()

        await run_until_stopped(serving(), lambda: write_line("The console is no longer served"))
    finally:
        await runner.cleanup()
        await end_leftovers(mark)  # a console may not have noticed that its browser is gone
    return 0
