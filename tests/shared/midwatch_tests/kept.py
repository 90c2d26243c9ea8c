"""A process that is kept up, as a service manager would, until it is killed or told to end."""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

from midwatch_tests.verdict import Exit

_AGAIN_SECONDS = 0.5
"""Before a process that ended is started again."""


class KeptProcess:
    """Remembers each end that nobody asked for, and whether it heeded being told to end."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        logs: Path,
        environ: Mapping[str, str],
        greeting: str,
    ) -> None:
        """Each start writes a log of its own; `greeting` is in it once signals are heeded."""
        self.name = name
        self.starts = 0
        self.exits: list[Exit] = []
        """Each end that was not as it was told to."""
        self.stubborn = False
        """Whether it was told to end, did not, and was killed."""
        self._command = command
        self._folder = folder
        self._logs = logs
        self._environ = environ
        self._greeting = greeting
        self._began = 0.0
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it, and start it again whenever it ends by itself."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def kill(self) -> bool:
        """`kill -9`, and leave it dead; whether there was anything to kill."""
        process = await self._let_go()
        if process is not None:
            await _end_at_once(process)
        return process is not None

    async def stop(self, seconds: float) -> None:
        """SIGTERM, and leave it dead; `kill -9` where it takes longer than that."""
        process = await self._let_go()
        if process is None:
            return
        try:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            code = await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            self.stubborn = True
        else:
            # Before it heeds signals it dies of them.
            if code != 0 and (self._ready or code != -signal.SIGTERM):
                self._note(code)
        finally:
            await _end_at_once(process)

    @property
    def _log(self) -> Path:
        return self._logs / f"{self.name}.{self.starts}.log"

    @property
    def _ready(self) -> bool:
        return self._greeting in self._log.read_text("utf-8", "replace")

    def _note(self, code: int) -> None:
        self.exits.append(
            Exit(code=code, began=self._began, ended=time.monotonic(), ready=self._ready)
        )

    async def _let_go(self) -> Process | None:
        """Keep it up no longer; the process, unless it has ended."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        process, self._process = self._process, None
        if process is None or process.returncode is None:
            return process
        self._note(process.returncode)
        return None

    async def _keep(self) -> None:
        while True:
            self._process = await self._spawn()
            code = await self._process.wait()
            self._process = None
            self._note(code)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _spawn(self) -> Process:
        self.starts += 1
        self._began = time.monotonic()
        self._folder.mkdir(exist_ok=True)
        with self._log.open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._folder,
                env=self._environ,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


async def _end_at_once(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
