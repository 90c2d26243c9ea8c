"""The console on a real terminal: it opens, stays after the run, and leaves with the run's code."""

import asyncio
import os
import pty
import re
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli import main

PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
CREW = """
import asyncio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

async def say(messages, info):
    return ModelResponse(parts=[TextPart("Done.")])

async def think(messages, info):
    await asyncio.Event().wait()

quick, endless = Agent(FunctionModel(say)), Agent(FunctionModel(think))
"""
TASKS = """
models: {worker: none}
workers:
  quick: {agent: "crew:quick"}
  endless: {agent: "crew:endless"}
tasks:
  - {id: fix, goal: Say so., worker: WORKER, acceptance: ["true"]}
"""
SETTINGS = "run: {sandbox: 'off', grace_seconds: 0.2}\n"

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
"""What moves the cursor and sets colours: words may be drawn in pieces."""


class Terminal:
    """A process on a terminal of 80 by 24, what it has drawn, and its keyboard."""

    def __init__(self, process: Process, descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._drawn = b""

    async def sees(self, text: str) -> None:
        """Wait until a text was drawn since the last one that was waited for."""
        async with asyncio.timeout(120):
            while text.encode() not in (seen := _ESCAPES.sub(b"", self._drawn)):
                self._drawn += await asyncio.to_thread(os.read, self._descriptor, 65_536)
        self._drawn = seen.partition(text.encode())[2]

    @property
    def restored(self) -> bool:
        """Whether the screen is again the one before the program."""
        return self._drawn.rfind(b"\x1b[?1049l") > self._drawn.rfind(b"\x1b[?1049h")

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    async def left(self) -> int:
        """The exit code, once it has left; what it still draws is read."""

        def drain() -> None:
            try:
                while drawn := os.read(self._descriptor, 65_536):
                    self._drawn += drawn
            except OSError:
                return  # the other end is closed

        async with asyncio.timeout(120):
            await asyncio.to_thread(drain)
            return await self.process.wait()


Opens = Callable[..., Awaitable[Terminal]]


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncGenerator[Opens]:
    """Opens `midwatch WORDS` on a terminal: `await terminal("watch", worker="quick")`."""
    opened: list[tuple[Process, int]] = []
    (tmp_path / "crew.py").write_text(CREW)
    (tmp_path / "midwatch.yaml").write_text(SETTINGS)

    async def open_one(*words: str, worker: str = "quick") -> Terminal:
        (tmp_path / "tasks.yaml").write_text(TASKS.replace("WORKER", worker))
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, *words, "--journal", "journal.db"),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        opened.append((process, ours))
        return Terminal(process, ours)

    yield open_one
    for process, descriptor in opened:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(descriptor)


async def test_the_console_stays_after_the_run_and_watch_finds_it_over(terminal: Opens) -> None:
    run = await terminal("run", "tasks.yaml")
    await run.sees("the run is over (exit code 0)")
    run.press("q")
    assert await run.left() == 0
    watch = await terminal("watch")
    await watch.sees("1/1")
    await watch.sees("completed")
    watch.press("q")
    assert await watch.left() == 0


@pytest.mark.matrix
async def test_a_run_that_was_left_can_be_resumed_and_leaving_asks_first(terminal: Opens) -> None:
    run = await terminal("run", "tasks.yaml", worker="endless")
    await run.sees("working")
    run.process.terminate()
    assert await run.left() == 130
    again = await terminal("resume")
    await again.sees("working")
    again.press("q")
    await again.sees("continues it")
    again.press("y")
    assert await again.left() == 130


@pytest.mark.parametrize("stopped", [False, True], ids=["by a key", "told to stop"])
async def test_attach_says_whose_session_it_waits_for_and_leaves_in_order(
    terminal: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stopped: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    attach = await terminal("attach", "codex")
    await attach.sees("No session of codex yet. Start an agent:")
    if stopped:
        attach.process.terminate()
    else:
        attach.press("q")
    assert (await attach.left(), attach.restored) == (0, True)


@pytest.mark.matrix
async def test_a_key_that_clashes_is_refused_at_once(terminal: Opens, tmp_path: Path) -> None:
    (tmp_path / "midwatch.yaml").write_text(f"{SETTINGS}console: {{keys: {{fleet: '2'}}}}\n")
    run = await terminal("run", "tasks.yaml")
    await run.sees("console.keys.fleet: `2` is already the key of `checkpoints`")
    assert await run.left() == 2
    assert not (tmp_path / "journal.db").exists()


def test_nothing_imports_textual_but_a_console(tmp_path: Path) -> None:
    (tmp_path / "crew.py").write_text(CREW)
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("WORKER", "quick"))
    (tmp_path / "midwatch.yaml").write_text(SETTINGS)
    look = """
import sys
from midwatch_supervisor.cli import main
codes = [main(words) for words in (["run", "tasks.yaml", "--headless"], ["status"])]
names = [name for name in ("textual", "textual_plotext") if name in sys.modules]
print("left with", codes, "imported", names)
"""
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "MIDWATCH_JOURNAL": "journal.db"}
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "left with [0, 0] imported []", done.stderr


def test_a_console_needs_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def make(file: Path) -> None:
        async with await Journal.open(file):
            return

    asyncio.run(make(tmp_path / "journal.db"))
    assert main(["watch", "--journal", str(tmp_path / "journal.db")]) == 2
    assert "the console needs a terminal; `midwatch status --journal " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("console", "said"),
    [
        ("theme: midwatch-save", "(did you mean `midwatch-safe`?)"),
        ("keys: {flet: f2}", "console.keys.flet: there is no such act"),
    ],
)
def test_config_check_knows_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], console: str, said: str
) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text(f"console: {{{console}}}\n")
    assert main(["config", "check", str(file)]) == 2
    assert said in capsys.readouterr().err
