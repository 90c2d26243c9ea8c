"""A journal in a real file with one attempt in it, and a worker that follows a list of turns."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult

from midwatch_agents.sandbox import Walls, find_walls
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.recorder import Recorder, working
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Commit,
    Draft,
    Ending,
    Entry,
    Lifecycle,
    Plan,
    PlanStep,
    Record,
)
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import again, begin, conduct
from midwatch_tools import Watch

T = TypeVar("T")

SOON = Settings(monitor=MonitorSettings(poll_seconds=0.01))
"""The built-in settings, but asking the journal so often that no test waits for it."""


@pytest.fixture
def at() -> datetime:
    return datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
def journal_file(tmp_path: Path) -> Path:
    return tmp_path / ".midwatch" / "journal.db"


@pytest.fixture
def named_by_the_environment(journal_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the journal by themselves."""
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))


@pytest.fixture
def by_ada(named_by_the_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do, and whoever gives them is called ada."""
    monkeypatch.setenv("USER", "ada")


@pytest.fixture
def location(request: pytest.FixtureRequest, journal_file: Path) -> str:
    """Where the journal is: a file, or for tests with the parameter `postgresql` a database."""
    if getattr(request, "param", "file") == "postgresql":
        return request.getfixturevalue("postgres_journal")
    return str(journal_file)


@pytest.fixture
async def journal(location: str) -> AsyncGenerator[Journal]:
    async with await Journal.open(location) as opened:
        yield opened


@pytest.fixture
async def attempt(journal: Journal, at: datetime) -> Attempt:
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
    task = await journal.add_task(run=run.id, name="fix", title="Fix it", spec="{}", at=at)
    return await journal.add_attempt(
        task=task.id, number=1, worker="coder", model="m", node="here", workspace="/w", at=at
    )


@pytest.fixture
async def bubblewrap() -> Walls:
    """For tests that need it: skipped where there is none, but not in CI."""
    walls = await find_walls(Sandbox.AUTO)
    if walls is Walls.NONE and not os.environ.get("CI"):
        pytest.skip("bubblewrap does not work here")
    assert walls is Walls.BUBBLEWRAP
    return walls


@pytest.fixture
def bus() -> LocalBus:
    return LocalBus()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def claim(
    journal: Journal, bus: LocalBus, attempt: Attempt, at: datetime
) -> Callable[..., Awaitable[Recorder]]:
    """Takes the attempt over: `await claim(settings, of=attempt)`."""

    async def take(settings: Settings | None = None, *, of: Attempt = attempt) -> Recorder:
        return await Recorder.claim(
            journal=journal,
            bus=bus,
            attempt=of,
            settings=settings or Settings(),
            holder="test",
            clock=lambda: at,
        )

    return take


@pytest.fixture
def write(journal: Journal, attempt: Attempt, at: datetime) -> Callable[..., Awaitable[int]]:
    """Commits a record as another process would, and answers its id."""

    async def commit(record: Record) -> int:
        draft = Draft(record=record, at=at, task=attempt.task, attempt=attempt.id)
        (entry,) = await journal.commit(Commit(drafts=(draft,)))
        return entry.id

    return commit


@pytest.fixture
def until(journal: Journal) -> Callable[[Record], Awaitable[Entry]]:
    """Waits for a record to stand in the journal; half a minute at most."""

    async def wait(record: Record) -> Entry:
        after = 0
        async with asyncio.timeout(30):
            while True:
                for entry in await journal.entries(after):
                    after = entry.id
                    if entry.record == record:
                        return entry

    return wait


@pytest.fixture
def scripted() -> Callable[..., FunctionModel]:
    """A model that says one turn after the other, and `Done.` after the last.

    A turn is a text, a list of `(tool, arguments)`, a whole response, or a function that makes
    one of these at the moment of the request. It keeps no state: the history says where it is.
    """

    def model(*turns: Any) -> FunctionModel:
        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            number = sum(isinstance(message, ModelResponse) for message in messages)
            turn = turns[number] if number < len(turns) else "Done."
            return _response(turn() if callable(turn) else turn, number)

        return FunctionModel(answer)

    return model


def _response(turn: Any, number: int) -> ModelResponse:
    if isinstance(turn, ModelResponse):
        return turn
    if isinstance(turn, str):
        return ModelResponse(parts=[TextPart(turn)])
    calls = [ToolCallPart(tool, args, f"call-{number}-{n}") for n, (tool, args) in enumerate(turn)]
    return ModelResponse(parts=[TextPart("I call."), *calls])


@pytest.fixture
def worker(
    scripted: Callable[..., FunctionModel], workspace: Path
) -> Callable[..., Agent[None, str]]:
    """An agent that follows turns, with a few tools over the workspace, and more if given."""

    def put(path: str, text: str) -> str:
        (workspace / path).write_text(text)
        return "written"

    def run_command(command: str) -> str:
        name, _, text = command.partition(" ")
        (workspace / name).write_text(text)
        return "[exit code: 1]" if text == "broken" else "ran"

    def build(*turns: Any, tools: tuple[Callable[..., Any], ...] = ()) -> Agent[None, str]:
        return Agent(scripted(*turns), tools=[put, run_command, *tools], retries=5)

    return build


@pytest.fixture
def perform(
    worker: Callable[..., Agent[None, str]],
    claim: Callable[..., Awaitable[Recorder]],
    journal: Journal,
    bus: LocalBus,
    workspace: Path,
    attempt: Attempt,
) -> Callable[..., Awaitable[AgentRunResult[str]]]:
    """Works through turns as a runner would have it, or goes on where the history ends."""

    async def work(
        *turns: Any,
        settings: Settings = SOON,
        budget: Budget | None = None,
        tools: tuple[Callable[..., Any], ...] = (),
        of: Attempt = attempt,
        plan: tuple[PlanStep, ...] = (PlanStep(title="find it"), PlanStep(title="fix it")),
        **watching: Any,
    ) -> AgentRunResult[str]:
        recorder = await claim(settings, of=of)
        if recorder.lifecycle is Lifecycle.SUBMITTED:
            begun = Change(
                reflect=True, plan_step=1, plan_steps=len(plan), revision=0, budget=budget
            )
            await recorder.record(working(), Plan(steps=plan), begun)
        watch = Watch(
            root=workspace,
            settings=settings,
            recorder=recorder,
            bus=bus,
            clock=recorder.clock,
            seconds=lambda: 0.0,
            **watching,
        )
        history = [
            message
            for each in await journal.messages(of.id)
            for message in ModelMessagesTypeAdapter.validate_json(each.body)
        ]
        return await worker(*turns, tools=tools).run(
            None if history else "Fix it.", message_history=history or None, capabilities=[watch]
        )

    return work


class Stage:
    """Runs the tasks of a task file in this process, and goes on with them."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self.home = folder / "home"
        self.folder = folder
        self.settings = Settings(
            monitor=MonitorSettings(poll_seconds=0.05, outcome_after=2),
            run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=0.2),
        )

    async def run(self, tasks: str) -> int:
        """Begin a run of a task file's text; answers the exit code."""
        wanted = assignments(TaskFile.model_validate(yaml.safe_load(tasks)), self.folder)
        resources, jobs = await begin(
            self.journal, wanted, source="tasks.yaml", settings=self.settings, home=self.home
        )
        return await conduct(resources, jobs, _ignore)

    async def resume(self) -> int:
        """Go on with the last run; answers the exit code."""
        resources, jobs = await again(self.journal, (await self.journal.runs())[-1], home=self.home)
        return await conduct(resources, jobs, _ignore)

    async def start(self, *words: str) -> Process:
        """Start a command of `midwatch` as a process; it can import the modules of this folder.

        Without a sandbox where this machine has none, unless a file or the environment says more.
        """
        said = (self.folder / "midwatch.yaml").exists()
        program = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, *words),
            cwd=self.folder,
            env={
                **({} if said else {"MIDWATCH_RUN__SANDBOX": "auto"}),
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parent),
            },
            stdout=PIPE,
            stderr=PIPE,
        )

    async def say(self, record: Record, *, attempt: int = 1) -> int:
        """Commit a record of an attempt as another process would; its id."""
        of = await self.journal.attempt(attempt)
        draft = Draft(record=record, at=datetime.now(UTC), task=of.task, attempt=attempt)
        (entry,) = await self.journal.commit(Commit(drafts=(draft,)))
        return entry.id

    async def told(self, kind: type[T], *, attempt: int | None = None) -> list[T]:
        """All that the journal holds of one kind."""
        entries = await self.journal.entries(attempt=attempt)
        return [entry.record for entry in entries if isinstance(entry.record, kind)]

    async def until(self, happened: Callable[[], bool | Awaitable[bool]]) -> None:
        """Wait for something to be true; a minute at most, as processes may have to start first."""
        nothing = LocalBus().subscribe()
        async with asyncio.timeout(60):
            while not (await now if isawaitable(now := happened()) else now):
                await nothing.wait(0.01)


async def _ignore(entries: Sequence[Entry]) -> None:
    return


@pytest.fixture
def stage(journal: Journal, tmp_path: Path) -> Stage:
    return Stage(journal, tmp_path)


class Past:
    """Attempts that were made, and what was said of them, in any project."""

    def __init__(self, journal: Journal, at: datetime) -> None:
        self.journal = journal
        self.learned = Learned(journal)
        self.at = at

    async def attempt(
        self, project: str = "shop", *, task: str = "fix", number: int = 1
    ) -> Attempt:
        """A first attempt of a new run at a task, not over yet; or a later one of the last run."""
        runs = await self.journal.runs()
        if number == 1:
            run = await self.journal.add_run(source="tasks.yaml", settings="{}", at=self.at)
            of = await self.journal.add_task(
                run=run.id, name=task, title=task, spec="{}", project=project, at=self.at
            )
        else:
            of = next(each for each in await self.journal.tasks(runs[-1].id) if each.name == task)
        return await self.journal.add_attempt(
            task=of.id,
            number=number,
            worker="coder",
            model="m",
            node="here",
            workspace="/w",
            at=self.at,
        )

    async def say(self, attempt: Attempt, *records: Record) -> int:
        """Commit records of an attempt together, a minute after the last; the id of the last."""
        self.at += timedelta(minutes=1)
        drafts = tuple(
            Draft(record=record, at=self.at, task=attempt.task, attempt=attempt.id)
            for record in records
        )
        entries = await self.journal.commit(Commit(drafts=drafts))
        return entries[-1].id

    async def end(self, attempt: Attempt, ending: Ending = Ending.UNACCEPTED) -> int:
        """Let an attempt be over; the id of its last state."""
        done = ending is Ending.DONE
        lifecycle = Lifecycle.COMPLETED if done else Lifecycle.FAILED
        return await self.say(attempt, AttemptTransition(lifecycle=lifecycle, ending=ending))


@pytest.fixture
def past(journal: Journal, at: datetime) -> Past:
    return Past(journal, at)
