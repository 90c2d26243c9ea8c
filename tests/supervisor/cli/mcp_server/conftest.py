"""What the tests of the MCP server share: a client that is in this process."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mcp import Client

from midwatch_supervisor.cli.mcp_server.supervising import supervising_server
from midwatch_tests.mcp_caller import Caller


@pytest.fixture
async def reader(journal_file: Path) -> AsyncGenerator[Caller]:
    """A client that may only look."""
    async with Client(supervising_server(str(journal_file), author=None)) as client:
        yield Caller(client)


@pytest.fixture
async def actor(journal_file: Path) -> AsyncGenerator[Caller]:
    """One that may act, too."""
    async with Client(supervising_server(str(journal_file), author="mcp")) as client:
        yield Caller(client)
