"""The console in a browser, as a real server in a process of its own, over loopback."""

import asyncio
import re
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType, WSServerHandshakeError

from midwatch_monitor.errors import UsageError
from midwatch_monitor.words import Attempt
from midwatch_supervisor.cli.web import Page

PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"


@pytest.fixture
async def address(
    journal_file: Path, attempt: Attempt, unused_port: int
) -> AsyncGenerator[tuple[str, str]]:
    """A served console: its origin, and the path that lets a browser in."""
    assert attempt.number == 1
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, "watch", "--web", "--port", str(unused_port)),
        *("--journal", str(journal_file)),
        stdout=PIPE,
        cwd=journal_file.parent,
    )
    assert server.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = (await server.stdout.readline()).decode()
        found = re.fullmatch(
            r"The console is at (http://127\.0\.0\.1:\d+)(/\?token=\S{40,})\n", line
        )
        assert found is not None, line
        yield found[1], found[2]
    finally:
        server.terminate()
        await server.wait()


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
async def browser() -> AsyncGenerator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


async def test_nobody_gets_anything_without_the_token(
    address: tuple[str, str], browser: ClientSession
) -> None:
    origin, _ = address
    for path in ("/", "/static/js/textual.js", "/?token=", "/?token=guess", "/nowhere", "/ws"):
        async with browser.get(origin + path) as answer:
            assert (path, answer.status) == (path, 403)
    with pytest.raises(WSServerHandshakeError, match="403"):
        await browser.ws_connect(f"{origin}/ws")


async def test_the_token_is_said_once_and_then_a_cookie_speaks(
    address: tuple[str, str], browser: ClientSession
) -> None:
    origin, door = address
    async with browser.get(origin + door) as answer:
        assert answer.status == 200
        (cookie,) = answer.cookies.values()
        assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
    async with browser.get(f"{origin}/") as answer:
        page = await answer.text()
        assert answer.status == 200
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert f"ws://{origin.removeprefix('http://')}/ws" in page
        assert "token" not in page


async def test_a_browser_draws_the_console(
    address: tuple[str, str], browser: ClientSession
) -> None:
    origin, door = address
    await (await browser.get(origin + door)).read()
    async with browser.ws_connect(f"{origin}/ws?width=100&height=30", origin=origin) as socket:
        drawn = b""
        async with asyncio.timeout(30):
            while b"Midwatch" not in drawn:
                message = await socket.receive()
                assert message.type is WSMsgType.BINARY, message
                drawn += message.data


async def test_a_page_of_another_port_gets_no_console(
    address: tuple[str, str], browser: ClientSession
) -> None:
    origin, door = address
    await (await browser.get(origin + door)).read()
    with pytest.raises(WSServerHandshakeError, match="403"):
        await browser.ws_connect(f"{origin}/ws", origin="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_only_loopback_is_taken_for_this_machine_alone(host: str, loopback: bool) -> None:
    assert Page.at(host, 8080, "secret").loopback is loopback


def test_an_address_of_six_parts_stands_in_brackets() -> None:
    assert Page.at("::1", 80, "secret").url == "http://[::1]:80/?token=secret"


@pytest.mark.parametrize("token", ["", "two words", "a/b", "ü"])
def test_a_token_that_does_not_fit_an_address_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="--token"):
        Page.at("127.0.0.1", 8080, token)


def test_two_pages_have_two_tokens() -> None:
    assert Page.at("127.0.0.1", 8080, None).token != Page.at("127.0.0.1", 8080, None).token
