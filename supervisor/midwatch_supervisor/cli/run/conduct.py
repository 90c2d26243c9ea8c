"""What `run`, `demo` and `resume` share: a run in this process, its progress and its end."""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.settings import Mode, Settings, settings_of
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import (
    JournalError,
    JournalFullError,
    MidwatchError,
    ProviderRefusedError,
    UsageError,
    WorkspaceError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock, now
from midwatch_monitor.journal.core.engine import is_url
from midwatch_monitor.journal.fleet.run_lock import (
    forget_lock,
    hold_run,
    interrupted_runs,
    refuse_held,
)
from midwatch_monitor.private_files import private_folder
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Entry, Run, SupervisedBy
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.inspect.watch import show_run
from midwatch_supervisor.cli.interrupts import NOTICE, run_to_end
from midwatch_supervisor.cli.journals import journal_of_work, journal_place
from midwatch_supervisor.cli.output import outlasting_reader, write_error, write_json, write_line
from midwatch_supervisor.cli.run.options import Output
from midwatch_supervisor.cli.run.start_warnings import (
    sandbox_words,
    task_warnings,
    uncommitted_warnings,
)
from midwatch_supervisor.cli.settings import settings_in_force
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.notify.notifier import run_notifier, senders_of
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.json_lines import JsonLine, Transcript, begin_line
from midwatch_supervisor.present.lookup import (
    is_unfinished,
    meet_new,
    run_option,
    set_waits,
    task_states,
)
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.run_text import TaskResult, progress_line, run_end
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.run.launch import begin_run, collect_garbage_seldom, conduct, load_run
from midwatch_supervisor.telemetry.exporting import headers_of
from midwatch_supervisor.tui.keys import check_console
from midwatch_supervisor.workspaces.changes import file_changes
from midwatch_supervisor.workspaces.task_workspace import result_of
from midwatch_tools.journal_location import FOLDER, main_worktree

_COUNTED = 100
"""Tasks whose changed lines are counted at the end of a run; git needs a while for each."""
_AT_ONCE = 4
EXIT_CODES = {
    0: "all tasks completed",
    1: "some tasks failed, or a person stopped them",
    2: "wrong usage or configuration, or a provider that refuses the first request",
    3: "waiting for a person: answer the questions above, then continue with `midwatch resume`",
    4: "ended as stuck or out of budget",
    130: "interrupted",
}
"""Exit codes of `midwatch run`, `demo` and `resume`."""


async def print_end(tasks: Sequence[TaskState], code: int, *, of: str = "") -> None:
    """Print the result of each task, and the exit code in words.

    `of` names the run in commands, if they need it.
    """
    set_waits(tasks, None)
    looking = asyncio.Semaphore(_AT_ONCE)

    async def result(at: int, task: TaskState) -> TaskResult:
        async with looking:
            return await _task_result(task, count=at < _COUNTED)

    results = await asyncio.gather(*(result(at, task) for at, task in enumerate(tasks)))
    width = shutil.get_terminal_size().columns
    meaning = EXIT_CODES.get(code, "ended").replace("midwatch resume", command(f"resume{of}"))
    write_line(*run_end(results, width=width, of=of), f"exit code {code}: {meaning}")


async def _task_result(task: TaskState, *, count: bool) -> TaskResult:
    at = result_of(task)
    if at is None or at.assignment is None:
        return TaskResult(state=task)
    branch, files, folder, here = "", None, at.folder, Path.cwd()
    with suppress(MidwatchError, OSError):  # as far as its changes can be read
        workspace = await at.open()
        files = await file_changes(workspace, at.source) if count else None
        branch = workspace.branch
    folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
    wanted = len(at.assignment.task.acceptance)
    return TaskResult(state=task, branch=branch, folder=str(folder), files=files, wanted=wanted)


Opened = Callable[[Journal, Clock], Awaitable[tuple[RunResources, tuple[Job, ...]]]]
"""Stores a run or finds it again, using the given clock."""


def in_advise_mode(settings: Settings) -> Settings:
    """Return the same configuration in advise mode: an operator approves every decision."""
    return settings.model_copy(update={"mode": Mode.ADVISE})


def with_patience(settings: Settings) -> Settings:
    """Return the same configuration, but wait for a provider that has not answered yet."""
    provider = settings.provider.model_copy(update={"wait_for_first_answer": True})
    return settings.model_copy(update={"provider": provider})


def work_folder() -> Path:
    """Create and return Midwatch's own folder for work started here, hidden from git."""
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
    wanted: Callable[[], Sequence[Assignment]],
    *,
    source: str,
    settings: Settings,
    journal: str | None,
    output: Output,
) -> int:
    """Start a new run, see it through to its end, and return the exit code.

    `wanted` is called last before the start, because it may write the files its tasks work on.
    """

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        tasks = await asyncio.to_thread(wanted)
        unseen = await uncommitted_warnings(tasks, besides=Path(source))
        for warning in [*unseen, *task_warnings(tasks)]:
            write_error(f"warning: {warning}")
        return await begin_run(
            log,
            tasks,
            source=source,
            settings=settings,
            home=work_folder(),
            learning=RunLearning,
            clock=clock,
            attended=output is Output.CONSOLE,
        )

    return conduct_to_end(opened, settings=settings, journal=journal, output=output)


def resume_run(found: Run, *, patient: bool, journal: str | None, output: Output) -> int:
    """Continue a run, see it through to its end, and return the exit code.

    With `patient`, wait for a provider that has not answered yet.
    """
    # Who is notified depends on the configuration here and now.
    told = {"notify": settings_in_force(None).notify}
    settings = settings_of(found).model_copy(update=told)
    settings = with_patience(settings) if patient else settings

    async def opened(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        return await load_run(
            log,
            found,
            home=work_folder(),
            learning=RunLearning,
            clock=clock,
            attended=output is Output.CONSOLE,
            settings=settings,
        )

    return conduct_to_end(
        opened, settings=settings, journal=journal, output=output, resumed=found.id
    )


def conduct_to_end(
    opened: Opened,
    *,
    settings: Settings,
    journal: str | None,
    output: Output,
    resumed: int | None = None,
) -> int:
    """Conduct a run until its end, or until its console is closed, and return the exit code.

    `resumed` is the id of a run that began before. Raises KeyboardInterrupt when the process is
    told to stop; then a run that has begun can be resumed.
    """
    begun = [] if resumed is None else [resumed]
    known = list[Job]()

    async def noted(log: Journal, clock: Clock) -> tuple[RunResources, tuple[Job, ...]]:
        resources, jobs = await opened(log, clock)
        begun.append(resources.run.id)
        known.extend(jobs)
        return resources, jobs

    if output is Output.CONSOLE:
        check_console(settings.console)
    try:
        return run_to_end(
            _conduct_to_end(noted, settings, journal_place(journal), output),
            grace_seconds=settings.run.grace_seconds,
            notice="" if output is Output.CONSOLE else NOTICE,  # its screen must not be written on
        )
    except (KeyboardInterrupt, asyncio.CancelledError):
        said = f"`{_resume_command(begun)}` continues it" if begun else "the run had not begun"
        if known and all(job.state.lifecycle.over for job in known):
            said = "the run's tasks were over"  # it still learned, or notified somebody
        write_error(f"interrupted; {said}")
        raise KeyboardInterrupt from None
    except JournalFullError as error:
        resume = _resume_command(begun)
        raise JournalFullError(f"{error}: make room there, then `{resume}`") from error


def _resume_command(begun: Sequence[int]) -> str:
    """Return the command that continues the last of these runs, or the newest that there is."""
    return command(f"resume --run {begun[-1]}" if begun else "resume")


async def _conduct_to_end(opened: Opened, settings: Settings, location: str, output: Output) -> int:
    main = asyncio.current_task()
    if main is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main.cancel)
    senders = senders_of(settings.notify, os.environ)
    headers_of(settings.telemetry, os.environ)  # mistakes there are reported first
    async with (
        await journal_of_work(location, settings) as journal,
        journal_clock(journal, now) as clock,
        end_without_journal(location),
    ):
        told = await journal.last_id()
        resources, jobs = await opened(journal, clock)
        run = resources.run.id
        collect_garbage_seldom()
        telling = run_notifier(
            journal,
            run=run,
            settings=settings.notify,
            senders=senders,
            bus=resources.bus,
            poll_seconds=settings.monitor.poll_seconds,
            clock=clock,
        )
        reporter = Reporter(journal, jobs, output, clock=clock, told=told, run=run)
        async with hold_run(journal, run, lease_seconds=settings.fleet.lease_seconds), telling:
            if output is Output.CONSOLE:
                code = await show_run(resources, jobs, about=about(resources, jobs))
            else:
                code = await reporter.see_to_end(resources, jobs)
        tasks = await task_states(journal, run)
        if all(task.over for task in tasks):
            await forget_lock(journal, run)
        if output is Output.CONSOLE:
            with outlasting_reader():
                await print_end(tasks, code, of=await run_option(journal, run))
        else:
            await reporter.catch_up()  # includes the results of the last notifications
            await reporter.end(code)
        return code


def about(resources: RunResources, jobs: Sequence[Job]) -> list[str]:
    """Describe what is about to run, in lines: the run, the sandbox and the models."""
    tasks = count_noun(len(jobs), "task")
    sandbox = sandbox_words(resources.sandbox_kind, [job.assignment for job in jobs])
    lines = [
        f"Run {resources.run.id}: {tasks}, journal {resources.journal.name}",
        f"Sandbox for commands: {sandbox}",
    ]
    named = {
        f"{role}: {spec.name}"
        for each in (job.assignment for job in jobs)
        for role, spec in (
            (Role.WORKER, each.worker_model(each.worker)),
            (Role.SUPERVISOR, each.model(Role.SUPERVISOR)),
        )
        if spec is not None
    }
    for name in sorted(named):
        script = " (played by a script; no model is called)" if "scripted:" in name else ""
        lines.append(f"Model of the {name}{script}")
    return lines


class Reporter:
    """Prints a run as it goes: for people, or one JSON object per line.

    Entries of the journal up to `told` have been printed before. Without a `run` it prints all
    runs.
    """

    def __init__(
        self,
        journal: Journal,
        jobs: Sequence[Job],
        output: Output,
        *,
        clock: Clock,
        told: int,
        run: int | None = None,
    ) -> None:
        self._journal = journal
        self._run = run
        self._quiet = output is Output.QUIET
        self._told = told
        self._read = told
        self._clock = clock
        self._json = output is Output.JSON
        self._transcript = Transcript([job.task for job in jobs])
        self._day = clock().astimezone().date()
        """Of the last printed line."""

    async def catch_up(self) -> None:
        """Print what the journal has received since the last call."""
        while page := await self._journal.entries(self._read, run=self._run):
            await self.follow(page)

    async def follow(self, entries: Sequence[Entry]) -> None:
        """Print new entries in a thread, so that a stalled reader holds up nothing."""
        lines: list[JsonLine | str] = []
        for entry in entries:
            await meet_new(self._journal, self._transcript.run, entry)
            line = self._transcript.line(entry)
            if line is not None and not self._json:
                line = progress_line(entry, self._transcript)
            if line is not None and entry.id > self._told and not self._quiet:
                if not self._json and self._day != (day := entry.at.astimezone().date()):
                    self._day = day
                    lines.append(f"— {day:%a %d %b %Y} —")
                lines.append(line)
        self._read = entries[-1].id
        if lines:
            await asyncio.to_thread(self._print_lines, lines)

    def _print_lines(self, lines: Sequence[JsonLine | str]) -> None:
        # Without a reader, a run continues, because of its work; a watch ends.
        with nullcontext() if self._run is None else outlasting_reader():
            for line in lines:
                if isinstance(line, str):
                    write_line(line)
                else:
                    write_json(line)

    async def see_to_end(self, resources: RunResources, jobs: tuple[Job, ...]) -> int:
        """Conduct a run, print what happens, and return its exit code."""
        if self._json:
            name, at = resources.journal.name, self._clock()
            self._print_lines([begin_line(resources.run.id, tasks=len(jobs), journal=name, at=at)])
        elif not self._quiet:
            self._print_lines(about(resources, jobs))
        try:
            return await conduct(resources, jobs, self.follow)
        except ProviderRefusedError:
            if self._json:  # a person reads the error
                await self.end(2)
            raise

    async def end(self, code: int) -> None:
        """Print the result."""
        with outlasting_reader():
            if self._json:
                write_json(self._transcript.done_line(self._run, exit_code=code, at=self._clock()))
            else:
                of = "" if self._run is None else await run_option(self._journal, self._run)
                await print_end(self._transcript.tasks, code, of=of)


_LOOK_SECONDS = 0.5


@asynccontextmanager
async def end_without_journal(location: str) -> AsyncGenerator[None]:
    """Cancel the work inside once the journal's file is gone, and raise JournalError.

    Log messages from then on are dropped, since they say nothing new. A database on a server cannot
    disappear like that.
    """
    if is_url(location) or location == ":memory:":
        yield
        return
    path, main = Path(location), asyncio.current_task()
    assert main is not None
    opened = _file_identity(path)

    def there(_record: logging.LogRecord | None = None) -> bool:
        return _file_identity(path) == opened

    watching = asyncio.create_task(_end_without(there, main))
    handler = logging.lastResort
    if handler is not None:
        handler.addFilter(there)
    try:
        yield
    except BaseException as error:
        if there():
            raise
        raise _loss_error(location, main) from error
    else:
        if not there():
            raise _loss_error(location, main)
    finally:
        watching.cancel()
        if handler is not None:
            handler.removeFilter(there)


async def _end_without(there: Callable[[], bool], main: "asyncio.Task[object]") -> None:
    """Cancel the task once the file is gone."""
    while there():  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(_LOOK_SECONDS)
    main.cancel()


def _file_identity(file: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; `None` if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _loss_error(location: str, main: "asyncio.Task[object]") -> JournalError:
    if main.cancelling():
        main.uncancel()
    return JournalError(
        f"the journal {location} was deleted during this run, which has ended: start it again"
    )


async def find_run(location: str, wanted: int | None) -> Run:
    """Return the run to continue. Raises UsageError if there is none."""
    async with await Journal.open(location, create=False) as journal:
        runs = (await journal.runs())[::-1]
        interrupted = await interrupted_runs(journal, [run.id for run in runs])
        chosen = [run for run in runs if wanted in (None, run.id)]
        if wanted is not None and not chosen:
            raise UsageError(f"there is no run {wanted}; `{command('status --all')}` lists them")
        refused = ""
        for run in chosen:
            embedded = all(task.embedded for task in await journal.tasks(run.id))
            gone = embedded and not run.of_session and run.id in interrupted
            if wanted is None and embedded and not gone:
                continue  # it goes on by itself
            unfinished = await is_unfinished(journal, run)
            if wanted is None and not unfinished:
                continue
            refusal = _why_not_resumable(run, embedded=embedded, gone=gone and unfinished)
            if not refusal:
                await refuse_held(journal, run.id, tell=write_error)
                return run
            refused = refused or refusal
    nothing = f"there is no unfinished run; `{command('run FILE')}` starts a new one"
    raise UsageError(refused or nothing)


def _why_not_resumable(run: Run, *, embedded: bool, gone: bool) -> str:
    """Return why Midwatch cannot continue a run; empty if it can."""
    if gone:
        cancel = command(f"cancel --run {run.id}")
        return f"run {run.id} is an agent's own, and its process is gone: `{cancel}` closes it"
    if embedded:
        return f"run {run.id} was not started by `midwatch run`, so it cannot be resumed"
    if run.supervised_by is SupervisedBy.MONITOR:
        return f"run {run.id} belongs to a fleet, which continues it"
    return ""
