"""The processes that are killed: `midwatch node` and `midwatch monitor`, started again like systemd
would, each behind proxies of its own."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos_script import MARKS

from midwatch_stage.hints import HintProxy
from midwatch_stage.proxy import Cut, TcpProxy

PROGRAM = (
    sys.executable,
    "-c",
    "import sys; from midwatch_supervisor.cli import main; sys.exit(main())",
)
_AGAIN_SECONDS = 0.5
"""Before a process that ended is started again."""
_BESIDE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Backdrop:
    """What all processes of a run through chaos share."""

    folder: Path
    journal: str
    """The URL of the database itself."""
    database: int
    """Its port."""
    broker: int
    """The broker's port."""

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def marks(self) -> Path:
        return self.folder / "marks"

    def environ(self, *, database: int, broker: int) -> Mapping[str, str]:
        """For a process that reaches both servers by these ports."""
        journal = self.journal.replace(f":{self.database}/", f":{database}/")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(_BESIDE), os.environ.get("PYTHONPATH", "")]),
            "MIDWATCH_JOURNAL": journal,
            "MIDWATCH_FLEET__BROKER__URL": f"mqtt://127.0.0.1:{broker}",
            MARKS: str(self.marks),
        }


class Player:
    """One process, and its lines to the servers. While it is meant to be up, it is kept up."""

    def __init__(self, name: str, backdrop: Backdrop, *words: str, seed: int) -> None:
        """Run `midwatch WORDS` as `name`."""
        self.name = name
        self.words = words
        self.starts = 0
        self.exits: list[int] = []
        """Codes with which it ended by itself."""
        self._backdrop = backdrop
        self.database = TcpProxy(backdrop.database)
        self.broker = HintProxy(backdrop.broker, seed=seed)
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        await self.broker.__aenter__()
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()
        await self.broker.__aexit__(kind, error, trace)
        await self.database.__aexit__(kind, error, trace)

    def start(self) -> None:
        """Start it, and start it again whenever it ends, until it is killed."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def kill(self) -> bool:
        """`kill -9`, and leave it dead; whether there was anything to kill."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        return True

    async def cut(self, how: Cut) -> None:
        """Cut it off from both servers."""
        await self.database.cut(how)
        await self.broker.cut(how)

    async def restore(self) -> None:
        """Let it back."""
        await self.database.restore()
        await self.broker.restore()

    async def _keep(self) -> None:
        while True:
            self._process = await self._spawn()
            self.exits.append(await self._process.wait())
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _spawn(self) -> Process:
        self.starts += 1
        home = self._backdrop.folder / self.name
        home.mkdir(exist_ok=True)
        path = self._backdrop.logs / f"{self.name}.{self.starts}.log"
        with path.open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *PROGRAM,
                *self.words,
                cwd=home,
                env=self._backdrop.environ(database=self.database.port, broker=self.broker.port),
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


async def command(backdrop: Backdrop, *words: str) -> None:
    """Run one command of `midwatch` to its end; raises RuntimeError with its words if it fails."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *words,
        cwd=backdrop.folder,
        env=backdrop.environ(database=backdrop.database, broker=backdrop.broker),
        stdin=DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"midwatch {words[0]} failed: {said.decode(errors='replace')}")


def sweep(backdrop: Backdrop) -> int:
    """End what killed nodes have left running of their workers' commands; how many there were."""
    sign = f"{MARKS}={backdrop.marks}".encode()
    found = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if sign in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                found += 1
    return found
