"""The console in a browser, over loopback: who gets it, and when its process ends."""

import asyncio
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from aiohttp import (
    ClientSession,
    ClientWebSocketResponse,
    CookieJar,
    WSMsgType,
    WSServerHandshakeError,
    web,
)

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.records import Attempt
from midwatch_supervisor.cli.inspect.web import Page
from midwatch_supervisor.cli.inspect.webserver import Limits, WebServer
from midwatch_tests.command import MIDWATCH, PROGRAM, process, refused, refused_now
from midwatch_tests.processes import children, ended

TOKEN = "the-token-of-these-tests"
DRAWS = r"""
import os, sys
def packet(kind, data): os.write(1, kind + len(data).to_bytes(4, "big") + data)
os.write(1, b"__GANGLION__\n")
packet(b"D", str(os.getpid()).encode())
"""
"""What a console begins with: here it draws the number of its process."""
CALM = DRAWS + 'while b"quit" not in os.read(0, 1024): pass'
"""A console that ends when it is told to."""
STUCK = DRAWS + 'while True: packet(b"D", b"x" * 65536)'
"""One that hears nothing, and draws more than any connection holds."""
SLOW = (
    DRAWS
    + r"""
for draws in (b"x" * 500, b"drawn again"):
    while b'"width": 39' not in os.read(0, 1024): pass
    packet(b"D", draws)
"""
)
"""One that only draws in the size that it is told once it has drawn."""
CRASHED = DRAWS + "os._exit(1)"
QUICK = Limits(consoles=2, heartbeat_seconds=0.4, grace_seconds=0.4)


@dataclass(frozen=True, slots=True)
class Served:
    """A server in this process."""

    origin: str
    door: str


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(unused_port: int) -> Serve:
    """Serves consoles of a program in this process."""

    @asynccontextmanager
    async def serve_program(
        program: str = CALM, limits: Limits | None = None
    ) -> AsyncGenerator[Served]:
        page = Page.at("127.0.0.1", unused_port, TOKEN)
        app = WebServer((sys.executable, "-c", program), page, limits).application()
        runner = web.AppRunner(app, shutdown_timeout=30)
        await runner.setup()
        await web.TCPSite(runner, page.host, page.port).start()
        try:
            yield Served(page.origin, page.url)
        finally:
            await runner.cleanup()

    return serve_program


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def session() -> AsyncGenerator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


browser = pytest.fixture(session)
another = pytest.fixture(session)


async def enter(browser: ClientSession, served: Served) -> None:
    async with browser.get(served.door) as answer:
        assert answer.status == 200


async def look(browser: ClientSession, served: Served) -> tuple[ClientWebSocketResponse, int]:
    """Open a console; its socket, and the number of its process."""
    window = await browser.ws_connect(f"{served.origin}/ws", origin=served.origin)
    return window, int(await window.receive_bytes())


async def wait_for_close(window: ClientWebSocketResponse) -> None:
    """Wait for a socket to be closed from the other side; five minutes at most."""
    async with asyncio.timeout(300):
        while (await window.receive()).type is WSMsgType.BINARY:
            pass


# -- who is let in -------------------------------------------------------------------------


async def test_nobody_gets_anything_without_the_token(
    serve: Serve, browser: ClientSession, unused_port: int
) -> None:
    async with serve() as served:
        for path in ("/", "/static/js/textual.js", "/?token=", "/?token=guess", "/nowhere", "/ws"):
            async with browser.get(served.origin + path) as answer:
                assert (path, answer.status) == (path, 403)
        forged = {f"midwatch-{unused_port}": f"{'0' * 32}.{'0' * 64}"}
        async with browser.get(served.origin, cookies=forged) as answer:
            assert answer.status == 403
        with pytest.raises(WSServerHandshakeError, match="403"):
            await browser.ws_connect(f"{served.origin}/ws", origin=served.origin)


async def test_the_token_is_said_once_and_then_a_cookie_speaks(
    serve: Serve, browser: ClientSession
) -> None:
    async with serve() as served:
        async with browser.get(served.door) as answer:
            (cookie,) = answer.cookies.values()
            assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
            assert TOKEN not in cookie.value
        async with browser.get(served.origin) as answer:
            page = await answer.text()
            assert answer.status == 200
            assert f"ws://{served.origin.removeprefix('http://')}/ws" in page
            assert TOKEN not in page


async def test_the_page_lets_in_no_script_or_style_without_its_nonce(
    serve: Serve, browser: ClientSession
) -> None:
    nonces: set[str] = set()
    async with serve() as served:
        await enter(browser, served)
        for _ in range(2):
            async with browser.get(served.origin) as answer:
                page, policy = await answer.text(), answer.headers["Content-Security-Policy"]
            assert "unsafe" not in policy
            assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
            assert not re.findall(r" on\w+=| style=|https?://", page)
            (nonce,) = set(re.findall(r"'nonce-([^']+)'", policy))
            inline = re.findall(r"<(?:style|script)(?! src)([^>]*)>", page)
            assert set(inline) == {f' nonce="{nonce}"'}
            nonces.add(nonce)
    assert len(nonces) == 2


async def test_a_page_of_elsewhere_or_under_another_name_gets_nothing(
    serve: Serve, browser: ClientSession, unused_port: int
) -> None:
    async with serve() as served:
        await enter(browser, served)
        for host, status in {
            f"evil.example:{unused_port}": 421,
            "127.0.0.1.evil.example": 421,
            f"localhost:{unused_port}": 200,
            "127.0.0.1": 200,
        }.items():
            async with browser.get(served.origin, headers={"Host": host}) as answer:
                assert (host, answer.status) == (host, status)
        for origin in ("http://127.0.0.1:1", "null", None):
            with pytest.raises(WSServerHandshakeError, match="403"):
                await browser.ws_connect(f"{served.origin}/ws", origin=origin)


async def test_a_link_to_an_attempt_leads_to_it_with_the_token_and_later_without(
    serve: Serve, browser: ClientSession, another: ClientSession
) -> None:
    async with serve() as served:
        link = f"{served.origin}/attempt/7"
        for path in ("//evil.example", "/attempt/7/x"):
            async with browser.get(f"{served.origin}{path}?token={TOKEN}") as answer:
                assert 'url=/"' in await answer.text()
        async with browser.get(f"{link}?token={TOKEN}") as answer:
            assert 'url=/attempt/7"' in await answer.text()
        async with browser.get(link) as answer:
            page = await answer.text()
            assert f'"ws://{served.origin.removeprefix("http://")}/ws/attempt/7"' in page
        # From a page of elsewhere a browser keeps the cookie back: it is led on, and brings it.
        from_link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        async with another.get(link, headers=from_link) as answer:
            assert 'url=/attempt/7"' in await answer.text()
        for other in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Mode": "cors"}):
            async with another.get(link, headers=from_link | other) as answer:
                assert answer.status == 403


# -- one process for each browser, as long as it is there ----------------------------------


async def test_another_window_of_a_browser_takes_its_console_over(
    serve: Serve, browser: ClientSession
) -> None:
    async with serve() as served:
        await enter(browser, served)
        first, before = await look(browser, served)
        second, now = await look(browser, served)
        await ended(before)
        await wait_for_close(first)
        os.kill(now, 0)  # it is there
        await second.close()


async def test_so_many_browsers_and_no_more_and_a_console_ends_when_its_browser_goes(
    serve: Serve, browser: ClientSession, another: ClientSession
) -> None:
    async with serve(limits=Limits(consoles=1)) as served:
        await enter(browser, served)
        await enter(another, served)
        window, process = await look(browser, served)
        async with another.get(served.origin) as answer:
            assert (answer.status, answer.content_type) == (503, "text/plain")
            assert await answer.text() == "1 browsers already show the console: close one\n"
        with pytest.raises(WSServerHandshakeError, match="503"):
            await look(another, served)
        async with browser.get(served.origin) as answer:
            assert answer.status == 200  # it reloads the page
        await window.close()
        await ended(process)


@pytest.mark.parametrize("program", [CALM, STUCK])
async def test_the_console_of_a_browser_that_vanished_ends_whatever_is_on_the_way(
    serve: Serve, browser: ClientSession, program: str
) -> None:
    # The server gives up a browser that answers no heartbeat, also while its console starts.
    limits = Limits(heartbeat_seconds=3, grace_seconds=0.4)
    async with serve(program, limits) as served:
        await enter(browser, served)
        async with unresponsive_browser(browser, served) as process:
            await ended(process)


async def test_a_server_that_ends_waits_for_no_browser(
    serve: Serve, browser: ClientSession
) -> None:
    limits = Limits(heartbeat_seconds=600, grace_seconds=0.4)
    async with AsyncExitStack() as browsers, asyncio.timeout(300):
        async with serve(STUCK, limits) as served:
            await enter(browser, served)
            process = await browsers.enter_async_context(unresponsive_browser(browser, served))
        await ended(process)


async def test_a_console_that_crashes_closes_its_window(
    serve: Serve, browser: ClientSession
) -> None:
    async with serve(CRASHED) as served:
        await enter(browser, served)
        window, _ = await look(browser, served)
        await wait_for_close(window)


@asynccontextmanager
async def unresponsive_browser(browser: ClientSession, served: Served) -> AsyncGenerator[int]:
    """A browser that opened a console, and says, takes and answers nothing; its process."""
    (cookie,) = browser.cookie_jar
    host = served.origin.removeprefix("http://")
    loop = asyncio.get_running_loop()
    with socket.socket() as window:
        window.settimeout(0)
        await loop.sock_connect(window, ("127.0.0.1", int(host.partition(":")[2])))
        request = (
            f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: {served.origin}\r\n"
            f"Cookie: {cookie.key}={cookie.value}\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        await loop.sock_sendall(window, request.encode())
        seen = b""
        # The head of the answer, two bytes of a frame, and the number of the process in it; before
        # that there may be heartbeats.
        while (found := re.search(rb"\r\n\r\n.*?\x82.(\d+)", seen, re.DOTALL)) is None:
            news = await loop.sock_recv(window, 256)
            assert news, f"the server closed the connection after {seen!r}"
            seen += news
        yield int(found[1])


Start = Callable[..., Awaitable[Process]]


# -- the command ---------------------------------------------------------------------------


@pytest.fixture
def start(
    journal_file: Path, attempt: Attempt, unused_port: int
) -> Callable[..., Awaitable[Process]]:
    """Starts the command in a process."""
    assert attempt.number == 1

    async def start_command(*words: str, **environ: str) -> Process:
        return await asyncio.create_subprocess_exec(
            *(*MIDWATCH, "watch", "--web", "--port", str(unused_port)),
            *("--journal", str(journal_file), *words),
            stdout=PIPE,
            cwd=journal_file.parent,
            env={**os.environ, **environ},
        )

    return start_command


async def read_line(server: Process) -> str:
    assert server.stdout is not None
    async with asyncio.timeout(300):
        return (await server.stdout.readline()).decode()


async def draw(
    browser: ClientSession, served: Served, *, path: str = "", shows: bytes = b"Midwatch"
) -> ClientWebSocketResponse:
    window = await browser.ws_connect(
        f"{served.origin}/ws{path}?width=100&height=30", origin=served.origin
    )
    drawn = b""
    async with asyncio.timeout(300):
        while shows not in drawn:
            drawn += await window.receive_bytes()
    return window


async def test_a_size_that_changed_while_the_console_started_is_told_again(
    serve: Serve, browser: ClientSession
) -> None:
    async with serve(SLOW) as served:
        await enter(browser, served)
        window, _ = await look(browser, served)
        await window.send_json(["resize", {"width": 39, "height": 30}])
        assert await window.receive_bytes() == b"x" * 500
        assert await window.receive_bytes() == b"drawn again"


async def test_the_page_of_an_attempt_opens_it_and_no_process_shows_the_token_or_the_journal(
    start: Start, browser: ClientSession, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    await journal.add_run(source="later.yaml", settings="{}", at=at)
    server = await start(MIDWATCH_WEB_TOKEN=TOKEN)
    try:
        line = await read_line(server)
        origin = line.split()[4].partition("/?")[0]
        assert line == f"The console is at {origin}/?token=… with the token of MIDWATCH_WEB_TOKEN\n"
        served = Served(origin, f"{origin}/?token={TOKEN}")
        await enter(browser, served)
        await draw(browser, served, path=f"/attempt/{attempt.id}", shows=b"Timeline")
        (process,) = children(server.pid)
        listed, environ = read_process(process)
        assert "--run" not in listed  # each console chooses the run: the latest one is another
        assert journal.name not in listed
        assert TOKEN not in listed + environ + read_process(server.pid)[0]
        async with browser.get(f"{origin}/attempt/{attempt.id + 1}") as answer:
            assert answer.status == 404
            assert (await answer.text()).startswith(f"there is no attempt {attempt.id + 1} in ")
    finally:
        server.terminate()
        await server.wait()


def read_process(number: int) -> tuple[str, str]:
    """The words that it was started with, and its environment."""
    folder = Path(f"/proc/{number}")
    return (folder / "cmdline").read_text(), (folder / "environ").read_text()


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGTERM, marks=pytest.mark.matrix),
        pytest.param(signal.SIGINT, marks=pytest.mark.matrix),
        signal.SIGKILL,
    ],
)
async def test_the_console_is_drawn_and_ends_with_its_server_however_that_ends(
    start: Start, browser: ClientSession, end: signal.Signals
) -> None:
    server = await start()
    try:
        line = await read_line(server)
        found = re.fullmatch(
            r"The console is at (http://127\.0\.0\.1:\d+)(/\?token=\S{40,})\n", line
        )
        assert found is not None, line
        served = Served(found[1], found[1] + found[2])
        await enter(browser, served)
        await draw(browser, served)
        (process,) = children(server.pid)
    finally:
        server.send_signal(end)
    async with asyncio.timeout(300):
        out, _ = await server.communicate()
    stopped = (-9, b"") if end is signal.SIGKILL else (0, b"The console is no longer served\n")
    assert (server.returncode, out) == stopped
    await ended(process)


def test_without_the_extra_it_says_what_to_install_and_starts_nothing(journal_file: Path) -> None:
    schema.open_store(journal_file, Access.CREATE).close()
    # As if it were not installed.
    program = f"import sys; sys.modules['textual_serve'] = None\n{PROGRAM}"
    done = process("watch", "--web", "--journal", str(journal_file), program=program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "`watch --web` needs the `web` extra: pip install 'midwatch[web]'\n"


@pytest.mark.parametrize("words", [("--journal=none.db",), ()])
def test_without_a_journal_it_only_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIDWATCH_JOURNAL", raising=False)
    said = refused_now(capsys, "watch", "--web", *words)
    assert said.startswith("there is no journal at ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("watch", "--attempt", "7"), "there is no attempt 7 in "),
        (("watch", "--web", "--all", "--host", "a..b"), "cannot listen "),
        (("mcp", "--http", "a..b:8080"), "cannot listen "),
    ],
)
@pytest.mark.usefixtures("attempt")
async def test_an_attempt_or_a_host_that_is_not_there_is_told_and_leaves_no_trace(
    capsys: pytest.CaptureFixture[str], journal_file: Path, words: tuple[str, ...], said: str
) -> None:
    before = dict(os.environ)
    assert (await refused(capsys, *words, "--journal", str(journal_file))).startswith(said)
    assert dict(os.environ) == before
