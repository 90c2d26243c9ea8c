"""`midwatch mcp` as a process, by its streams and over HTTP: who gets in, and how it ends."""

import asyncio
import json
import os
import re
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from itertools import product
from pathlib import Path

import httpx
import pytest
from httpx2 import AsyncClient
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from midwatch_monitor.records import Attempt
from midwatch_supervisor.cli.inspect.web import Page
from midwatch_supervisor.cli.mcp_server.supervising import supervising_server
from midwatch_supervisor.cli.mcp_server.transports import PATH, application
from midwatch_tests.command import MIDWATCH, PROGRAM, Cli, process
from midwatch_tests.mcp_caller import Caller

TOKEN = "the-token-of-these-tests"


def mcp_command(*words: str) -> list[str]:
    return [*MIDWATCH, "mcp", *words]


# -- the standard streams ------------------------------------------------------------------


async def test_by_its_streams_it_answers_like_the_commands(
    attempt: Attempt, journal_file: Path, tmp_path: Path
) -> None:
    program, *words = mcp_command("--write", "--from", "ada", "--journal", str(journal_file))
    async with Client(StdioServerParameters(command=program, args=words, cwd=tmp_path)) as client:
        caller = Caller(client)
        assert '"task": "fix"' in await caller.say("list_attempts")
        assert "guidance sent" in await caller.say("guide", attempt="fix", message="Look up.")
        assert "nudge" in await caller.say("timeline", attempt="fix")
        assert '"author": "ada"' in await caller.say("timeline", attempt="fix")


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_when_it_is_told_to_though_its_client_holds_the_streams(
    sign: signal.Signals, attempt: Attempt, journal_file: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *mcp_command("--journal", str(journal_file)), stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    async with asyncio.timeout(300):
        assert await process.stdout.readline()
        process.send_signal(sign)
        assert await process.wait() == (0 if sign is signal.SIGTERM else 130)


# -- over HTTP -----------------------------------------------------------------------------


@pytest.fixture
async def http_client(journal_file: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A client on this machine, of an application that knows the token."""
    page = Page.at("127.0.0.1", 8765, TOKEN)
    app = application(supervising_server(str(journal_file), author=None), page)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=page.origin) as client:
        yield client


LET_IN = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        *(
            ({"authorization": each}, 401)
            for each in ("Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \u00ff")
        ),
        ({"cookie": f"midwatch-8765={TOKEN}"}, 401),
        *(({**LET_IN, "host": each}, 421) for each in ("evil.example", "")),
        *(
            ({**LET_IN, "origin": each}, 403)
            for each in ("http://evil.example", "null", "http://127.0.0.1:8080")
        ),
    ],
)
async def test_nobody_gets_in_without_the_token_by_another_name_or_from_a_page(
    http_client: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    given = httpx.Headers(headers, encoding="latin-1")
    for method, path in product(("GET", "POST", "DELETE", "OPTIONS"), (PATH, "/", "/elsewhere")):
        answer = await http_client.request(method, path, headers=given)
        assert answer.status_code == status
        assert TOKEN not in answer.text


@pytest.fixture
async def server_url(attempt: Attempt, journal_file: Path, tmp_path: Path) -> AsyncGenerator[str]:
    """The address of a server in a process of its own, whose token is in a file."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    words = ("--http", str(port), "--token-file", "token", "--journal", str(journal_file))
    process = await asyncio.create_subprocess_exec(*mcp_command(*words), cwd=tmp_path, stdout=PIPE)
    yield await _read_address(process)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(300):
        assert await process.wait() == 0


async def _read_address(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(300):
        line = (await process.stdout.readline()).decode()
    found = re.fullmatch(
        r"MCP is at (http://127\.0\.0\.1:\d+/mcp), with `Authorization: Bearer` and "
        r"the token of token\n",
        line,
    )
    assert found is not None, line
    return found[1]


async def test_over_http_clients_get_in_with_the_token_only(server_url: str) -> None:
    with_token = AsyncClient(headers=LET_IN)
    async with (
        with_token,
        Client(streamable_http_client(server_url, http_client=with_token)) as client,
    ):
        assert '"task": "fix"' in await Caller(client).say("list_attempts")
        assert "guide" not in await Caller(client).tools()
    async with httpx.AsyncClient() as without:
        assert (await without.post(server_url, json={})).status_code == 401
        named = {**LET_IN, "host": "evil.example"}
        assert (await without.post(server_url, json={}, headers=named)).status_code == 421
    toolset = MCPToolset[object](server_url, headers=LET_IN)  # the client of FastMCP
    agent = Agent[object](TestModel(call_tools=["waiting", "list_attempts"]), toolsets=[toolset])
    async with asyncio.timeout(300):
        answer = await agent.run("How does it stand?")
    told = json.loads(answer.output)
    assert "(nothing)" in told["waiting"]
    assert '"task": "fix"' in told["list_attempts"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--worker", "x", "--write"), "--worker takes neither --write nor --http"),
        (("--worker", "x", "--http", "8000"), "--worker takes neither --write nor --http"),
        (("--worker", " "), "--worker needs a name"),
        (("--worker", "x" * 81), "--worker takes a name of at most 80 characters"),
        (("--token-file", "t"), "--token-file is for --http"),
        (("--http", "here"), "--http takes HOST:PORT, or PORT alone"),
        (("--http", "127.0.0.1:70000"), "--http takes HOST:PORT, or PORT alone"),
        (("--http", "127.0.0.1:0"), "--http takes HOST:PORT, or PORT alone"),
    ],
)
async def test_a_wrong_call_is_refused_with_the_reason(
    words: tuple[str, ...], why: str, cli: Cli
) -> None:
    assert why in await cli.refused("mcp", *words)


async def test_a_port_that_is_taken_is_told(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"cannot listen on {place}" in await cli.refused("mcp", "--http", place)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    program = f"import sys; sys.modules['mcp'] = None\n{PROGRAM}"  # as if it were not installed
    environ = {**os.environ, "MIDWATCH_JOURNAL": str(tmp_path / "j.db")}
    done = process("mcp", program=program, cwd=tmp_path, env=environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "`midwatch mcp` needs the `mcp` extra: pip install 'midwatch[mcp]'\n"
