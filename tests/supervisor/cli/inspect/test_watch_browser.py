"""The console in a real browser: what somebody sees there, and what is left when they go."""

import asyncio
import os
import socket
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Severity
from midwatch_tests.chromium import chromium
from midwatch_tests.command import MIDWATCH
from midwatch_tests.factories import alert, drafts, step, transition
from midwatch_tests.processes import childless, children


@asynccontextmanager
async def serve_console(journal_file: Path) -> AsyncGenerator[tuple[str, int]]:
    """The address that `watch --web` prints, and the number of its process."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        *(*MIDWATCH, "watch", "--web", "--port", str(port)),
        *("--journal", str(journal_file)),
        stdout=PIPE,
        stderr=PIPE,
        cwd=journal_file.parent,
        env=os.environ,
    )
    try:
        assert server.stdout is not None
        assert server.stderr is not None
        async with asyncio.timeout(300):
            assert (await server.stderr.readline()).startswith(b"Starting the console's server")
            yield (await server.stdout.readline()).split()[-1].decode(), server.pid
    finally:
        server.terminate()
        await server.wait()


async def test_in_a_browser_the_stuck_task_is_found_opened_and_searched_by_keys(
    journal: Journal, journal_file: Path, attempt: Attempt, tmp_path: Path
) -> None:
    stuck = alert(severity=Severity.CRITICAL, summary="It turns in circles.")
    steps = [step(number, output=f"line {number}") for number in range(1, 4)]
    records = [transition(), *steps, stuck]
    await journal.commit(Commit(drafts=drafts(attempt, records)))
    async with (
        chromium(tmp_path / "profile") as page,
        serve_console(journal_file) as (address, server),
    ):
        await page.open(address)
        # The pane below may be drawn before the table is, and names the attempt too.
        await page.until(
            lambda rows: any("fix#1" in row and "stuck" in row for row in rows.splitlines())
        )
        await page.press("Enter")
        await page.until(lambda rows: "Timeline" in rows and "bash" in rows)
        await page.press("/", *"3")
        await page.until(lambda rows: "1 of 1 found" in rows or "1 found" in rows)
        assert (await page.picture()).startswith(b"\x89PNG")
        assert len(children(server)) == 1, "its console"
        await page.open("about:blank")
        await childless(server)
