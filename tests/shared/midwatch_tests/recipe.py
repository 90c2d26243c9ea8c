"""A recipe of the documentation, followed word by word in a folder of its own.

What it installs is there already, and programs of other makers have stand-ins on the PATH.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from midwatch_tests.page_blocks import ROOT, blocks

_MIDWATCH = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
_SERVES = re.compile(r"midwatch (node|monitor|attach|run)\b")
"""Commands beside which the reader goes on. Of a run some recipes wait for the end."""
_CONSOLE = re.compile(r"midwatch watch\b")
"""Is not opened here; its own tests do."""
_SECONDS = 240


@dataclass(slots=True, kw_only=True)
class Recipe:
    """One page, and who follows it."""

    page: str
    folder: Path
    environ: dict[str, str]
    swaps: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is different here: addresses and ports of this test."""
    beside: tuple[str, ...] = ("node", "monitor", "attach")
    """Commands that go on beside the rest."""
    before: Mapping[str, Callable[[], Awaitable[object]]] = field(
        default_factory=dict[str, Callable[[], Awaitable[object]]]
    )
    """What must have happened before a line that begins so."""
    said: list[str] = field(default_factory=list[str])
    """What the commands printed, one after the other."""
    _started: list[Process] = field(default_factory=list[Process])

    @property
    def programs(self) -> Path:
        """What is on the PATH before all else; commands of workers see it, too."""
        return self.folder.with_name("bin")

    def program(self, name: str, text: str) -> None:
        """Put a stand-in on the PATH, as a shell script."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    async def follow(self) -> None:
        """Do what the page says, from its first block to its last."""
        for language, text in blocks(ROOT / "docs" / "recipes" / f"{self.page}.md"):
            for old, new in self.swaps.items():
                text = text.replace(old, new)
            if language == "sh":
                for line in text.splitlines():
                    await self._do(line)
            else:
                named = re.match(r"# ([\w.]+)", text)
                assert named, f"a block of {language} names no file: {text}"
                with (self.folder / named[1]).open("a") as file:
                    file.write(text)

    async def _do(self, line: str) -> None:
        for start, happened in self.before.items():
            if line.startswith(start):
                await happened()
        if line.startswith("export "):
            self.environ |= dict(each.split("=", 1) for each in shlex.split(line)[1:])
        elif _CONSOLE.match(line):
            return
        elif (found := _SERVES.match(line)) and found[1] in self.beside:
            await self._start(line)
        else:
            process = await self._process(line)
            out, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
            self.said.append(out.decode())
            assert process.returncode == 0, f"{line}\n{out.decode()}"

    async def _start(self, line: str) -> None:
        """Start what goes on, and wait until who takes spans says that it does."""
        process = await self._process(f"exec {line}")
        assert process.stdout is not None
        self._started.append(process)
        if " attach " in line:
            said = await asyncio.wait_for(process.stdout.readline(), _SECONDS)
            self.said.append(said.decode())

    async def _process(self, line: str) -> Process:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        return await asyncio.create_subprocess_exec(
            *("bash", "-c", line),
            cwd=self.folder,
            env={**os.environ, **self.environ, "PATH": path},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def end(self) -> None:
        """End what goes on."""
        for process in self._started[::-1]:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.communicate(), _SECONDS)


@asynccontextmanager
async def recipe(page: str, folder: Path, **more: str) -> AsyncGenerator[Recipe]:
    """A recipe with the programs that every page calls; `more` are variables."""
    home = folder.with_name("home")
    home.mkdir()
    environ = {"HOME": str(home), "MIDWATCH_STATE": str(home / "state"), **more}
    followed = Recipe(page=page, folder=folder, environ=environ)
    followed.programs.mkdir()
    environ["MIDWATCH_RUN__SANDBOX_READ"] = json.dumps([str(followed.programs), str(ROOT)])
    followed.program("midwatch", f"exec {sys.executable} -c '{_MIDWATCH}' \"$@\"")
    followed.program("python", f'exec {sys.executable} "$@"')
    for installs in ("pip", "npm"):
        followed.program(installs, "exit 0")
    try:
        yield followed
    finally:
        await followed.end()
