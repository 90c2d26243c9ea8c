"""The processes that are killed: `midwatch node` and `midwatch monitor`, each behind proxies of its
own."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos_script import MARKS

from midwatch_stage.hints import HintProxy
from midwatch_stage.kept import KeptProcess
from midwatch_stage.orphans import kill_marked
from midwatch_stage.proxy import Cut, TcpProxy

PROGRAM = (
    sys.executable,
    "-c",
    "import sys; from midwatch_supervisor.cli import main; sys.exit(main())",
)
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

    def __init__(self, kind: str, name: str, backdrop: Backdrop, *, seed: int) -> None:
        """Run `midwatch KIND --name NAME`."""
        self.name = name
        self.database = TcpProxy(backdrop.database)
        self.broker = HintProxy(backdrop.broker, seed=seed)
        config = str(backdrop.folder / "midwatch.yaml")
        self.process = KeptProcess(
            name,
            (*PROGRAM, kind, "--name", name, "--config", config),
            folder=backdrop.folder / name,
            logs=backdrop.logs,
            environ=backdrop.environ(database=self.database.port, broker=self.broker.port),
            greeting=f"{kind.capitalize()} {name} ",
        )

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        await self.broker.__aenter__()
        self.process.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.process.kill()
        await self.broker.__aexit__(kind, error, trace)
        await self.database.__aexit__(kind, error, trace)

    async def cut(self, how: Cut) -> None:
        """Cut it off from both servers."""
        await self.database.cut(how)
        await self.broker.cut(how)

    async def restore(self) -> None:
        """Let it back."""
        await self.database.restore()
        await self.broker.restore()


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
        start_new_session=True,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(
            f"midwatch {words[0]} ended with {process.returncode}: {said.decode(errors='replace')}"
        )


def sweep(backdrop: Backdrop) -> int:
    """Kill what nodes have left running of their workers' commands; how many there were."""
    return kill_marked(MARKS, str(backdrop.marks))
