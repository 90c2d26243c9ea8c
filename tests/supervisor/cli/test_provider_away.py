"""What a person who runs a task file is told of a provider that does not answer."""

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from midwatch_tests.command import Cli
from midwatch_tests.harness import RunHarness
from midwatch_tests.model_server import DONE, WRITING, ModelServer

TASKS = """
    models: {{worker: {{name: "openai-chat:gpt-4o", base_url: "{url}"}}, reflector: none}}
    tasks: [{{id: write, goal: Write a.txt., acceptance: [{{file: a.txt}}]}}]
"""
CONFIG = "{provider: {breaker_seconds: 5}, run: {sandbox: 'off'}}"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[ModelServer]:
    """A good server that nobody has started; the task file names it."""
    server = ModelServer((WRITING, DONE))
    await server.open()
    await server.close()
    (tmp_path / "tasks.yaml").write_text(TASKS.format(url=server.url))
    (tmp_path / "midwatch.yaml").write_text(CONFIG)
    yield server
    await server.close()


async def wait_for_end(process: Process) -> tuple[int | None, list[str], str]:
    """Its exit code, the lines that it printed, and its errors."""
    async with asyncio.timeout(240):
        output, errors = await process.communicate()
    return process.returncode, output.decode().splitlines(), errors.decode()


@pytest.mark.long
async def test_a_dead_server_ends_the_run_and_resume_goes_on_with_it(
    harness: RunHarness, server: ModelServer, journal_file: Path, cli: Cli
) -> None:
    code, lines, errors = await wait_for_end(await harness.start("run", "tasks.yaml", "--json"))
    assert errors == (
        f"the worker's model gpt-4o got no answer: {server.url} cannot be reached: Connection "
        "refused. Start the server, then continue with `midwatch resume`; or correct the address "
        "and run it again. `--wait-for-provider` waits for it\n"
    )
    told = [json.loads(line) for line in lines]
    assert (code, told[-1]["type"], told[-1]["exit_code"]) == (2, "done", 2)
    (away,) = [each for each in told if each["type"] == "provider"]
    assert (away["url"], away["reason"]) == (server.url, "Connection refused")
    assert (away["state"], away["next_try"]) == ("away", None)

    (status,) = await cli.ask("status", "--journal", str(journal_file))
    assert (status["lifecycle"], status["health"]) == ("working", "unknown")
    resume = f"`midwatch resume --run 1 --journal {journal_file}`"
    away = f"once the provider accepts requests: Connection refused from {server.url}"
    assert status["waits_for"] == f"{resume}, {away}"

    await server.open()
    code, lines, errors = await wait_for_end(await harness.start("resume", "--headless"))
    assert (code, errors, len(server.asked)) == (0, "", 2)


@pytest.mark.long
async def test_whoever_wants_it_waits_and_is_told_of_the_outage_and_its_end(
    harness: RunHarness, server: ModelServer
) -> None:
    run = await harness.start("run", "tasks.yaml", "--headless", "--wait-for-provider")
    assert run.stdout is not None
    async with asyncio.timeout(240):
        while "provider: waiting" not in (line := (await run.stdout.readline()).decode()):
            assert line
    assert f" for {server.url}: Connection refused; next try in" in line
    await server.open()
    code, lines, errors = await wait_for_end(run)
    assert (code, errors) == (0, "")
    assert sum(f"provider: {server.url} answers, after" in line for line in lines) == 1
