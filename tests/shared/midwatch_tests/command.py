"""The command line as a person uses it beside a journal, and what stands in that journal before."""

import asyncio
import json
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest

from midwatch_monitor.config.tasks import AcceptanceSpec, TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Draft, Record, SupervisedBy, Task
from midwatch_supervisor.cli import main
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tests.factories import AT, WHOSE

PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
MIDWATCH = (sys.executable, "-c", PROGRAM)
"""The words that begin a command in a process of its own."""


def process(
    *words: str, program: str = PROGRAM, timeout: float = 600, check: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, once it has ended, with all that it printed."""
    argv = [sys.executable, "-c", program, *words]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=timeout, check=check, **more
    )


async def midwatch(*argv: str) -> int:
    """Run a command in this process; its exit code."""
    return await asyncio.to_thread(main, argv)


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What was printed since the last look, an object a line."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def printed_now(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a command prints that ends well."""
    capsys.readouterr()
    assert main(argv) == 0
    return capsys.readouterr().out


def refused_now(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a command says on standard error that is called in a wrong way."""
    capsys.readouterr()
    assert main(argv) == 2
    return capsys.readouterr().err


async def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The same where a loop runs."""
    return await asyncio.to_thread(printed_now, capsys, *argv)


async def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The same where a loop runs."""
    return await asyncio.to_thread(refused_now, capsys, *argv)


async def read(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    """The lines that a command prints, which ends well."""
    capsys.readouterr()
    assert await midwatch(*argv) == 0
    return capsys.readouterr().out.splitlines()


async def ask(
    capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0
) -> list[dict[str, Any]]:
    """What a command prints with `--json`, an object a line; it ends with this exit code."""
    capsys.readouterr()
    assert await midwatch(*argv, "--json") == code
    return objects(capsys)


class Cli:
    """Runs commands as a person does, and answers what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    async def said(self, *argv: str) -> str:
        """What a command prints, which ends well."""
        return await printed(self._capsys, *argv)

    async def refused(self, *argv: str) -> str:
        """The error of a command that was called wrongly."""
        return await refused(self._capsys, *argv)

    async def read(self, *argv: str) -> list[str]:
        """The lines that a command prints, which ends well."""
        return await read(self._capsys, *argv)

    async def ask(self, *argv: str, code: int = 0) -> list[dict[str, Any]]:
        """What a command prints with `--json`, an object a line; it ends with this exit code."""
        return await ask(self._capsys, *argv, code=code)


def assignment(
    task: str = "fix", *, acceptance: tuple[AcceptanceSpec, ...] = ("true",), **fields: Any
) -> Assignment:
    """What is stored of a task that is to pass one check, in a new folder."""
    wanted = TaskSpec(id=task, goal="x", acceptance=acceptance)
    told: dict[str, Any] = {"worker": "w", "spec": WorkerSpec(), "models": {}, "workspace": None}
    return Assignment(task=wanted, **{**told, **fields})


async def new_task(
    journal: Journal,
    name: str = "fix",
    *,
    run: int | None = None,
    supervised_by: SupervisedBy = SupervisedBy.PROCESS,
    at: datetime = AT,
    **fields: Any,
) -> Task:
    """A task whose specification says nothing, in a run of its own unless one is named."""
    if run is None:
        made = await journal.add_run(
            source="tasks.yaml", settings="{}", at=at, supervised_by=supervised_by
        )
        run = made.id
    told = {"title": "", "spec": "{}", **fields}
    return await journal.add_task(run=run, name=name, at=at, **told)


async def new_attempt(
    journal: Journal, task: Task, number: int = 1, *, at: datetime = AT, **fields: Any
) -> Attempt:
    """An attempt at a task."""
    return await journal.add_attempt(task=task.id, number=number, at=at, **{**WHOSE, **fields})


async def write(journal: Journal, attempt: Attempt, at: datetime, *records: Record) -> int:
    """Write records about an attempt; the id of the last."""
    drafts = tuple(
        Draft(record=record, at=at, task=attempt.task, attempt=attempt.id) for record in records
    )
    return (await journal.commit(Commit(drafts=drafts)))[-1].id
