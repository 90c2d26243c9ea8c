"""Runs of task files for tests, and attempts that were made before."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import TaskFile, TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import Assignment, assignments
from midwatch_supervisor.run.launch import begin_run, conduct, load_run
from midwatch_tests.command import MIDWATCH
from midwatch_tests.factories import WHOSE, ended
from midwatch_tests.reading import records_of

T = TypeVar("T")
SHARED = Path(__file__).parents[1]
"""What a process needs on its path to import the test that starts it."""


class RunHarness:
    """Runs the tasks of a task file in this process, and goes on with them."""

    def __init__(self, journal: Journal, folder: Path, modules: Path) -> None:
        self.journal = journal
        self.modules = modules
        """A folder whose modules the processes can import."""
        self.home = folder / "home"
        self.folder = folder
        self.settings = Settings(
            monitor=MonitorSettings(poll_seconds=0.05, outcome_after=2),
            run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=0.2),
        )

    async def run(self, tasks: str | TaskFile) -> int:
        """Begin a run of a task file, or of its text; answers the exit code."""
        if isinstance(tasks, str):
            tasks = TaskFile.model_validate(yaml.safe_load(tasks))
        wanted = assignments(tasks, self.folder)
        resources, jobs = await begin_run(
            self.journal,
            wanted,
            source="tasks.yaml",
            settings=self.settings,
            home=self.home,
            learning=RunLearning,
        )
        return await conduct(resources, jobs, _ignore)

    async def resume(self) -> int:
        """Go on with the last run; answers the exit code."""
        resources, jobs = await load_run(
            self.journal, (await self.journal.runs())[-1], home=self.home, learning=RunLearning
        )
        return await conduct(resources, jobs, _ignore)

    def set(self, **sections: Any) -> None:
        """Have other settings: a section as a whole, or what is other in it as a dict."""
        for name, section in sections.items():
            if isinstance(section, dict):
                section = getattr(self.settings, name).model_copy(update=section)
            self.settings = self.settings.model_copy(update={name: section})

    def open_gate(self) -> None:
        """Let workers go on that wait at the gate."""
        (self.folder / "go").touch()

    async def start(self, *words: str, stdout: int = PIPE, **pipes: Any) -> Process:
        """Start a command of `midwatch` as a process that can import the test's folder.

        Without a sandbox where this machine has none, unless a file or the environment says more.
        """
        said = (self.folder / "midwatch.yaml").exists()
        return await asyncio.create_subprocess_exec(
            *(*MIDWATCH, *words),
            cwd=self.folder,
            env={
                **({} if said else {"MIDWATCH_RUN__SANDBOX": "auto"}),
                **os.environ,
                "PYTHONPATH": f"{self.modules}{os.pathsep}{SHARED}",
            },
            stdout=stdout,
            stderr=PIPE,
            **pipes,
        )

    async def say(self, record: r.Record, *, attempt: int = 1) -> int:
        """Commit a record of an attempt as another process would; its id."""
        of = await self.journal.attempt(attempt)
        draft = r.Draft(record=record, at=datetime.now(UTC), task=of.task, attempt=attempt)
        (entry,) = await self.journal.commit(r.Commit(drafts=(draft,)))
        return entry.id

    async def told(self, kind: type[T], *, attempt: int | None = None) -> list[T]:
        """All that the journal holds of one kind."""
        return await records_of(self.journal, kind, attempt)

    async def last(self, kind: type[T], *, attempt: int | None = None) -> T:
        """The newest of one kind."""
        return (await self.told(kind, attempt=attempt))[-1]

    async def endings(self) -> list[r.Ending]:
        """How attempts ended, in order."""
        return [each.ending for each in await self.told(r.AttemptTransition) if each.ending]

    async def ends(self) -> dict[str, r.TaskTransition]:
        """Where each task of the first run stands, by name."""
        found: dict[str, r.TaskTransition] = {}
        for task in await self.journal.tasks(1):
            for entry in await self.journal.entries(task=task.id, kinds=(r.TaskTransition,)):
                if isinstance(entry.record, r.TaskTransition):
                    found[task.name] = entry.record
        return found

    async def prompt(self, attempt: int) -> str:
        """The first message of an attempt's history, as JSON."""
        return (await self.journal.messages(attempt))[0].body.decode()

    async def until(self, happened: Callable[[], bool | Awaitable[bool]]) -> None:
        """Wait for something to be true; five minutes at most: processes start first."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(300):
            while not (await now if isawaitable(now := happened()) else now):
                await nothing.wait(0.01)


async def _ignore(entries: Sequence[r.Entry]) -> None:
    return


def assigned(
    id: str = "fix", goal: str = "x", *, tags: tuple[str, ...] = (), **fields: Any
) -> Assignment:
    """A task as a worker without a model is assigned to it; any field of that by its name."""
    given: dict[str, Any] = {"models": {}, "workspace": None, **fields}
    task = TaskSpec(id=id, goal=goal, acceptance=("true",), tags=tags)
    return Assignment(task=task, worker="coder", spec=WorkerSpec(), **given)


class PastAttempts:
    """Attempts that were made, and what was said of them, in any project."""

    def __init__(self, journal: Journal, at: datetime) -> None:
        self.journal = journal
        self.learned = Learned(journal)
        self.at = at

    async def attempt(
        self,
        project: str = "shop",
        *,
        task: str | Assignment = "fix",
        number: int = 1,
        workspace: str = "/w",
        **run: Any,
    ) -> r.Attempt:
        """A first attempt of a new run at a task, not over yet; or a later one of the last run."""
        name, spec = (
            (task, "{}") if isinstance(task, str) else (task.task.id, task.model_dump_json())
        )
        if number == 1:
            given: dict[str, Any] = {"source": "tasks.yaml", "settings": "{}", **run}
            begun = await self.journal.add_run(at=self.at, **given)
            of = await self.journal.add_task(
                run=begun.id, name=name, title=name, spec=spec, project=project, at=self.at
            )
        else:
            last = (await self.journal.runs())[-1]
            of = next(each for each in await self.journal.tasks(last.id) if each.name == name)
        whose = {**WHOSE, "workspace": workspace}
        return await self.journal.add_attempt(task=of.id, number=number, at=self.at, **whose)

    async def say(self, attempt: r.Attempt, *records: r.Record) -> int:
        """Commit records of an attempt together, a minute after the last; the id of the last."""
        self.at += timedelta(minutes=1)
        drafts = tuple(
            r.Draft(
                record=record,
                at=self.at,
                task=attempt.task,
                attempt=None if isinstance(record, r.TaskTransition) else attempt.id,
            )
            for record in records
        )
        entries = await self.journal.commit(r.Commit(drafts=drafts))
        return entries[-1].id

    async def end(self, attempt: r.Attempt, ending: r.Ending = r.Ending.UNACCEPTED) -> int:
        """Let an attempt be over; the id of its last state."""
        return await self.say(attempt, ended(ending))

    async def lesson(self, id: int) -> r.KnownLesson:
        """The lesson with that id."""
        (found,) = await self.learned.lessons(ids=[id])
        return found

    async def fact(self, id: int) -> r.KnownFact:
        """The fact with that id."""
        (found,) = await self.learned.facts(ids=[id], live=False)
        return found

    async def told(self, kind: type[T], of: r.Attempt | None = None) -> list[T]:
        """All that the journal holds of one kind, or of one attempt."""
        return await records_of(self.journal, kind, of.id if of else None)
