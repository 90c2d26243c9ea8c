"""The processes that are killed: `midwatch node` and `midwatch monitor`, each behind proxies of its
own, and where they work."""

import asyncio
import json
import os
import subprocess
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from chaos_script import KINDS, MARKS

from midwatch_tests.command import MIDWATCH
from midwatch_tests.hints import HintProxy
from midwatch_tests.kept import KeptProcess
from midwatch_tests.orphans import kill_marked
from midwatch_tests.proxy import Cut, TcpProxy

_BESIDE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all processes of a chaos run share."""

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


class FleetMember:
    """One process, and its lines to the servers. While it is meant to be up, it is kept up."""

    def __init__(self, kind: str, name: str, surroundings: Surroundings, *, seed: int) -> None:
        """Run `midwatch KIND --name NAME`."""
        self.name = name
        self.database = TcpProxy(surroundings.database)
        self.broker = HintProxy(surroundings.broker, seed=seed)
        config = str(surroundings.folder / "midwatch.yaml")
        self.process = KeptProcess(
            name,
            (*MIDWATCH, kind, "--name", name, "--config", config),
            folder=surroundings.folder / name,
            logs=surroundings.logs,
            environ=surroundings.environ(database=self.database.port, broker=self.broker.port),
            greeting=f"{kind.capitalize()} {name} ",
        )

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        await self.broker.__aenter__()
        self.process.start()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.process.kill()
        await self.broker.__aexit__(*error)
        await self.database.__aexit__(*error)

    async def cut_off(self, how: Cut) -> None:
        """Cut it off from both servers."""
        await self.database.cut(how)
        await self.broker.cut(how)

    async def restore(self) -> None:
        """Let it back."""
        await self.database.restore()
        await self.broker.restore()


async def run_command(surroundings: Surroundings, *words: str) -> None:
    """Run one command of `midwatch` to its end; raises RuntimeError with its words if it fails."""
    process = await asyncio.create_subprocess_exec(
        *MIDWATCH,
        *words,
        cwd=surroundings.folder,
        env=surroundings.environ(database=surroundings.database, broker=surroundings.broker),
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


def kill_leftover_commands(surroundings: Surroundings) -> int:
    """Kill what nodes have left running of their workers' commands; how many there were."""
    return kill_marked(MARKS, str(surroundings.marks))


# -- the repository, its tasks and the configuration ---------------------------------------------

SLOTS = 4
"""Of each node."""
LOST_AFTER = 4.0
"""Seconds."""
REQUESTS = 22
"""Of an attempt on average, nearly."""
_PACES = {"steady": 1.5, "looping": 0.4, "stubborn": 0.4, "asking": 1.0}
"""How long each kind of worker thinks, against the mean."""

CONFIG = {
    "run": {"sandbox": "off", "grace_seconds": 2},
    "monitor": {"poll_seconds": 0.2, "tick_seconds": 1, "outcome_after": 3},
    "errors": {"require_analysis": False},
    "plan": {"require_check": False},
    "supervisor": {"cooldown": 0},
    "policy": {
        "ladder": ["nudge", "restart", "stop"],
        "rules": {"explicit_escalation": ["ask_operator", "stop"]},
        "max_interventions": 20,
        "max_task_interventions": 40,
    },
    "learning": {"end_seconds": 0},
    "journal": {"patience_seconds": 60},
    "fleet": {
        "name": "chaos",
        "slots": SLOTS,
        "beat_seconds": 0.4,
        "lost_after_seconds": LOST_AFTER,
        "lease_seconds": 4,
        "save_seconds": 1,
        "drain_seconds": 5,
        "broker": {"keepalive_seconds": 2, "max_wait_seconds": 2},
    },
}
"""What differs from the built-in defaults: shorter times, as nobody has all night here."""


def answer_pause(*, attempts: int, nodes: int, seconds: float) -> float:
    """The mean pause before an answer, so that all attempts would take a third of the time."""
    rounds = max(1.0, attempts / (nodes * SLOTS))
    return min(2.0, max(0.02, 0.33 * seconds / rounds / REQUESTS))


def write_project(folder: Path, *, attempts: int, pause: float) -> Path:
    """Write the repository, `midwatch.yaml` and the task file; answers the path of the latter."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    (repository / "README.md").write_text(
        "A project that is worked on while parts of the fleet fail.\n"
    )
    _git(repository, "init", "--quiet", "--initial-branch=main")
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", "Before all failures")
    (folder / "midwatch.yaml").write_text(json.dumps(CONFIG, indent=1))
    path = folder / "tasks.yaml"
    path.write_text(json.dumps(_tasks(attempts, pause), indent=1))
    return path


def _tasks(attempts: int, pause: float) -> object:
    workers = {
        kind: {"model": f"scripted:chaos_script@{max(0.01, pause * share):.3f}"}
        for kind, share in _PACES.items()
    }
    tasks = [
        {
            "id": f"{kind}-{number:02}",
            "goal": "Write the file that says so.",
            "worker": kind,
            "acceptance": [f"grep -qx done {kind}-{number:02}.done.txt"],
            "max_attempts": 6,
        }
        for number, kind in enumerate(KINDS[at % len(KINDS)] for at in range(attempts))
    ]
    defaults = {"workspace": "repository", "budget": {"requests": 2000}}
    models = {"worker": "scripted:chaos_script"}
    # JSON is YAML.
    return {"models": models, "defaults": defaults, "workers": workers, "tasks": tasks}


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Chaos", "-c", "user.email=chaos@midwatch.invalid")
    hooks = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgsign=false")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(
        ["git", *identity, *hooks, *words], cwd=folder, env=environ, check=True, capture_output=True
    )
