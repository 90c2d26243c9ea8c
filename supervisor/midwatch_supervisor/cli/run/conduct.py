"""What `run`, `demo` and `resume` share: a run conducted in this process, and its progress."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_agents.sandbox import OPEN, SandboxKind
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import ProviderRefusedError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock
from midwatch_monitor.private import private_folder
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Entry
from midwatch_monitor.secrets.masking import known_secrets
from midwatch_supervisor.cli.inspect.console import show_run
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.run.exit import run_to_end
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.json_lines import JsonLine, Transcript
from midwatch_supervisor.present.progress import ended, progress_line
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.run.launch import begin, calm, conduct
from midwatch_supervisor.tui.keys import check_console
from midwatch_tools.journal_location import FOLDER, journal_location, main_worktree
from midwatch_tools.watch import now

HeadlessOption = Annotated[
    bool, Parameter(name="--headless", negative="", help="Print progress instead of the console.")
]
AdviseOption = Annotated[
    bool,
    Parameter(
        negative="", help="Decide, and deliver nothing until a person approves, here or elsewhere."
    ),
]
WaitOption = Annotated[
    bool,
    Parameter(
        name="--wait-for-provider",
        negative="",
        help="Wait for a model's server that does not answer yet, instead of ending at once.",
    ),
]
Opened = Callable[[Journal, Clock], Awaitable[tuple[RunResources, tuple[Job, ...]]]]
"""Stores a run, or finds it again, and goes by that clock."""


def where(journal: str | None) -> str:
    """The journal that a command uses."""
    return journal_location(journal, os.environ, Path.cwd())


def advised(settings: Settings) -> Settings:
    """The same configuration, with every decision held back for an operator."""
    return settings.model_copy(update={"mode": Mode.ADVISE})


def patient(settings: Settings) -> Settings:
    """The same configuration, which waits for a provider that has not answered yet."""
    provider = settings.provider.model_copy(update={"wait_for_first_answer": True})
    return settings.model_copy(update={"provider": provider})


def home() -> Path:
    """Midwatch's own folder for work that is started here; made, and hidden from git."""
    folder = main_worktree(Path.cwd()) / FOLDER
    ignore = folder / ".gitignore"
    try:
        private_folder(folder)
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(f"{folder} cannot be written: {error}") from error
    return folder


def start(
    wanted: Sequence[Assignment],
    *,
    source: str,
    settings: Settings,
    journal: str | None,
    console: bool,
    json: bool,
) -> int:
    """Start a new run and stay with it to its end; answers the exit code."""

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        return await begin(
            log,
            wanted,
            source=source,
            settings=settings,
            home=home(),
            learning=RunLearning,
            clock=clock,
            attended=console,
        )

    return stay(opened, settings=settings, journal=journal, console=console, json=json)


def stay(
    opened: Opened, *, settings: Settings, journal: str | None, console: bool, json: bool
) -> int:
    """Conduct a run until its end, or until its console is left; answers the exit code.

    Raises KeyboardInterrupt when the process is told to stop; everything is resumable then.
    """
    if console:
        check_console(settings.console)
    try:
        return run_to_end(
            _stay(opened, settings, where(journal), console=console, json=json),
            grace_seconds=settings.run.grace_seconds,
        )
    except (KeyboardInterrupt, asyncio.CancelledError):
        write_error("interrupted; `midwatch resume` continues it")
        raise KeyboardInterrupt from None


async def _stay(
    opened: Opened, settings: Settings, location: str, *, console: bool, json: bool
) -> int:
    main = asyncio.current_task()
    if main is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main.cancel)
    async with (
        await Journal.open(
            location,
            synchronous=settings.journal.synchronous,
            max_batch=settings.journal.max_batch,
            patience_seconds=settings.journal.patience_seconds,
            secrets=known_secrets(os.environ, settings.secrets.patterns),
        ) as journal,
        journal_clock(journal, now) as clock,
    ):
        resources, jobs = await opened(journal, clock)
        calm()
        if console:
            return await show_run(resources, jobs, about=about(resources, jobs))
        reporter = Reporter(journal, jobs, json=json, clock=clock)
        reporter.begin(resources, jobs)
        try:
            code = await conduct(resources, jobs, reporter.follow)
        except ProviderRefusedError:
            reporter.refused()
            raise
        reporter.end(code)
        return code


def about(resources: RunResources, jobs: Sequence[Job]) -> list[str]:
    """What is about to happen, in lines: which run, sandbox and models."""
    lines = [
        f"Run {resources.run.id}: {len(jobs)} tasks, journal {resources.journal.name}",
        f"Sandbox for commands: {sandbox_words(resources.sandbox_kind)}",
    ]
    for name in sorted({model for job in jobs for model in _models(job)}):
        script = " (a script plays it; no model is asked)" if "scripted:" in name else ""
        lines.append(f"Model of the {name}{script}")
    return lines


class Reporter:
    """Prints a run as it goes: for people, or one JSON object a line."""

    def __init__(self, journal: Journal, jobs: Sequence[Job], *, json: bool, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._json = json
        self._transcript = Transcript([job.task for job in jobs])

    def begin(self, resources: RunResources, jobs: Sequence[Job]) -> None:
        """Say what is about to happen: which run, sandbox and models."""
        if self._json:
            return
        for line in about(resources, jobs):
            write_line(line)

    async def follow(self, entries: Sequence[Entry]) -> None:
        """Print what is new, in a thread: a reader that takes nothing must hold up nobody."""
        lines: list[JsonLine | str] = []
        for entry in entries:
            if self._transcript.lacks_task(entry):
                self._transcript.meet_task(await self._journal.task(entry.task))
            if self._transcript.lacks(entry) and entry.attempt is not None:
                self._transcript.meet(await self._journal.attempt(entry.attempt))
            line = self._transcript.line(entry)
            if line is not None and not self._json:
                line = progress_line(entry, self._transcript)
            if line is not None:
                lines.append(line)
        if lines:
            await asyncio.to_thread(_print, lines)

    def refused(self) -> None:
        """A provider refused: a program is told of the end, a person reads the error."""
        if self._json:
            write_json(self._transcript.done(exit_code=2, at=self._clock()))

    def end(self, code: int) -> None:
        """Print the sum."""
        if self._json:
            write_json(self._transcript.done(exit_code=code, at=self._clock()))
            return
        for text in ended(self._transcript):
            write_line(text)
        write_line(f"exit code {code}: {_MEANINGS.get(code, 'ended')}")


def _print(lines: Sequence[JsonLine | str]) -> None:
    for line in lines:
        if isinstance(line, str):
            write_line(line)
        else:
            write_json(line)


_MEANINGS = {
    0: "all tasks completed",
    1: "some tasks failed",
    3: "waiting for a person: `midwatch status` says for what; answer, then `midwatch resume`",
    4: "ended as stuck or out of budget",
}


def sandbox_words(sandbox_kind: SandboxKind) -> str:
    """What commands of workers run in, and what that leaves open."""
    if sandbox_kind is SandboxKind.NONE:
        return f"none ({OPEN})"
    return (
        f"{sandbox_kind} (nothing of your files but the workspace, no network unless `run.network`)"
    )


def _models(job: Job) -> list[str]:
    named = {role: job.assignment.model(role) for role in (Role.WORKER, Role.SUPERVISOR)}
    return [f"{role}: {spec.name}" for role, spec in named.items() if spec is not None]
