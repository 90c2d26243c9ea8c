"""What a person who runs a task file is told of a provider that does not answer."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_stage.command import MIDWATCH
from midwatch_stage.command import midwatch as command
from midwatch_stage.model_server import DONE, WRITING, ModelServer

TASKS = """
    models: {{worker: {{name: "openai-chat:gpt-4o", base_url: "{url}"}}, reflector: none}}
    tasks: [{{id: write, goal: Write a.txt., acceptance: [{{file: a.txt}}]}}]
"""
CONFIG = "{provider: {breaker_seconds: 5}, run: {sandbox: 'off'}}"

Midwatch = Callable[..., Awaitable[Process]]


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


@pytest.fixture
async def midwatch(tmp_path: Path) -> AsyncGenerator[Midwatch]:
    """Starts a command in a process of its own, beside the task file."""
    started: list[Process] = []

    async def start(*words: str) -> Process:
        program = (*MIDWATCH, *words)
        started.append(
            await asyncio.create_subprocess_exec(*program, stdout=PIPE, stderr=PIPE, cwd=tmp_path)
        )
        return started[-1]

    yield start
    for each in started:
        if each.returncode is None:
            each.kill()
            await each.wait()


async def finished(process: Process) -> tuple[int | None, list[str], str]:
    """Its exit code, the lines that it printed, and its errors."""
    async with asyncio.timeout(240):
        output, errors = await process.communicate()
    return process.returncode, output.decode().splitlines(), errors.decode()


@pytest.mark.long
async def test_a_dead_server_ends_the_run_and_resume_goes_on_with_it(
    midwatch: Midwatch, server: ModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / ".midwatch" / "journal.db"
    code, lines, errors = await finished(await midwatch("run", "tasks.yaml", "--json"))
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

    assert await command("status", "--json", "--journal", str(journal)) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["lifecycle"], status["health"]) == ("working", "unknown")
    resume = f"`midwatch resume --run 1 --journal {journal}`"
    away = f"once the provider accepts requests: Connection refused from {server.url}"
    assert status["waits_for"] == f"{resume}, {away}"

    await server.open()
    code, lines, errors = await finished(await midwatch("resume", "--headless"))
    assert (code, errors, len(server.asked)) == (0, "", 2)


@pytest.mark.long
async def test_whoever_wants_it_waits_and_is_told_of_the_outage_and_its_end(
    midwatch: Midwatch, server: ModelServer
) -> None:
    run = await midwatch("run", "tasks.yaml", "--headless", "--wait-for-provider")
    assert run.stdout is not None
    async with asyncio.timeout(240):
        while "provider: waiting" not in (line := (await run.stdout.readline()).decode()):
            assert line
    assert f" for {server.url}: Connection refused; next try in" in line
    await server.open()
    code, lines, errors = await finished(run)
    assert (code, errors) == (0, "")
    assert sum(f"provider: {server.url} answers, after" in line for line in lines) == 1
