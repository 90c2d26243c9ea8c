"""`midwatch watch`: the console for runs of other processes, here or elsewhere, even past ones."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.bus import FleetBus
from midwatch_monitor.command_hint import command
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock, now
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Entry
from midwatch_supervisor.cli.inspect.web import TOKEN, end_with_server, in_browser, page_at, serve
from midwatch_supervisor.cli.journals import FromOption, JournalOption, RunOption, journal_to_watch
from midwatch_supervisor.cli.operate.tell import bus_of
from midwatch_supervisor.cli.run.options import on_terminal
from midwatch_supervisor.cli.settings import ConfigOption, Port, settings_in_force
from midwatch_supervisor.operator.actions import OperatorActions, operator_name
from midwatch_supervisor.present.lookup import chosen_runs, run_of
from midwatch_supervisor.tui.keys import check_console
from midwatch_tools.journal_location import VARIABLE

if TYPE_CHECKING:
    # A console that only watches needs none of what runs a worker, which takes seconds to import.
    from midwatch_supervisor.run.context import RunResources
    from midwatch_supervisor.run.job import Job
    from midwatch_supervisor.tui.app import Console


AttemptOption = Annotated[
    int | None, Parameter(help="Open the console on this attempt, given by its id in the journal.")
]
BrokerNameOption = Annotated[
    str | None,
    Parameter(
        help="User name at the broker, unless `fleet.broker.username` is set. Default:"
        " the machine's name."
    ),
]


_NO_TERMINAL = "the console needs a terminal; `{}` prints the state of the tasks"


async def watch(
    *,
    run: RunOption = None,
    all: Annotated[bool, Parameter(help="Show every run.")] = False,
    attempt: AttemptOption = None,
    journal: JournalOption = None,
    config: ConfigOption = None,
    author: FromOption = None,
    name: BrokerNameOption = None,
    web: Annotated[bool, Parameter(help="Serve the console to a browser.")] = False,
    host: Annotated[str, Parameter(help="Address that `--web` listens on.")] = "127.0.0.1",
    port: Annotated[Port, Parameter(help="Port that `--web` listens on.")] = 8080,
    token_file: Annotated[
        Path | None,
        Parameter(
            help="File with the token that a browser must give, readable only by you; created if "
            "missing. "
            f"Default: ${TOKEN}, else a new random token."
        ),
    ] = None,
) -> int:
    """Open the console on a run of another process, on any machine, or on a finished one.

    Only the journal is needed: a file, or the URL of a database. What you decide is written to it,
    and the process that runs the attempt carries it out. If you may only read the journal, you can
    look but not act.
    """
    settings = settings_in_force(config)
    check_console(settings.console)
    opened, _ = await journal_to_watch(journal)
    async with opened:
        if attempt is not None:
            run = await run_of(opened, attempt)
        runs = await chosen_runs(opened, None if all else run)
    chosen = None if all or not runs else runs[0].id
    if web:
        # Not an argument: its password would show in the list of processes.
        environ = {} if journal is None else {VARIABLE: journal}
        words = _command_words(run, every=all, config=config, author=author, name=name)
        known = partial(_require_attempt, journal)
        return await serve(words, page_at(host, port, token_file), environ, known)
    if not (on_terminal() or in_browser()):
        raise UsageError(_NO_TERMINAL.format(command("status")))
    patience = settings.journal.patience_seconds
    opened, barred = await journal_to_watch(journal, patience_seconds=patience)
    ending = asyncio.create_task(end_with_server()) if in_browser() else None
    async with opened, bus_of(settings.fleet, name=name) as bus:
        operator = OperatorActions(opened, author=operator_name(author), bus=bus)
        about = _about_lines(opened, chosen, barred=barred)
        await show_journal(opened, chosen, operator, settings, bus, about=about, attempt=attempt)
    if ending is not None:
        ending.cancel()
    return 0


async def _require_attempt(journal: str | None, id: int) -> None:
    opened, _ = await journal_to_watch(journal)
    async with opened:
        await run_of(opened, id)


def _about_lines(journal: Journal, run: int | None, *, barred: str) -> list[str]:
    """Describe what is shown; `barred` says why a person may only look, empty if they may act."""
    which = "all runs" if run is None else f"run {run}"
    about = f"{'Only looking at' if barred else 'Watching'} {which} of {journal.name}"
    return [about, barred] if barred else [about]


async def show_journal(
    journal: Journal,
    run: int | None,
    operator: OperatorActions,
    settings: Settings,
    bus: FleetBus,
    *,
    about: Sequence[str],
    nothing: str = "",
    attempt: int | None = None,
) -> None:
    """Show one run of a journal, or all of them, until the console is closed.

    Opens on `attempt`, if one is given.

    Nothing is watched, decided or run here. All that is shown comes from the journal; the bus only
    says when to look, and without a broker the journal is polled. `about` is shown in the console's
    first lines, and `nothing` while there is no task.
    """
    from midwatch_supervisor.tui.app import Console
    from midwatch_supervisor.tui.state.feed import Feed

    feed = Feed(
        journal,
        run=run,
        bus=bus,
        poll_seconds=settings.monitor.poll_seconds,
        hertz=settings.console.hertz,
        nodes=Nodes(journal).all,
        monitors=Nodes(journal).monitors,
        others=run is not None,
        connected=lambda: not settings.fleet.broker.url or bus.counters.connected,
    )
    async with journal_clock(journal, now) as clock:
        console = Console(
            feed,
            operator,
            settings=settings.console,
            about=about,
            nothing=nothing,
            attempt=attempt,
            now=lambda: clock().astimezone(),
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, console.exit, 0)
        console.log_capture.attach()  # the bus may complain before the console is drawn
        with closing(console.log_capture):
            await show_console(console)


def _command_words(
    run: int | None,
    *,
    every: bool,
    config: Sequence[Path] | None,
    author: str | None,
    name: str | None,
) -> list[str]:
    """Return the command that shows the console to one browser; without a run, the latest one."""
    words = ["watch", *(["--all"] if every else [] if run is None else ["--run", str(run)])]
    for file in config or ():
        words += ["--config", str(file)]
    words += ["--from", author] if author is not None else []
    words += ["--name", name] if name is not None else []
    return words


async def show_run(
    resources: "RunResources", jobs: "tuple[Job, ...]", *, about: Sequence[str]
) -> int:
    """Conduct a run under a console that stays open after it, and return the run's exit code.

    If the console is closed while the run only waits for a person, that is 3; if the run is still
    working, KeyboardInterrupt is raised. It can be resumed in both cases.
    """
    from midwatch_supervisor.run.launch import conduct, load_jobs
    from midwatch_supervisor.tui.app import INTERRUPTED, Console
    from midwatch_supervisor.tui.state.feed import Feed

    conducted: list[asyncio.Task[int]] = []

    async def work() -> int:
        # From Python 3.12 on, Textual starts tasks eagerly, which a run does not support.
        asyncio.get_running_loop().set_task_factory(None)
        # A task that is restarted once the run is over continues here.
        known = await load_jobs(resources) if conducted else jobs
        run = conduct(resources, known, _hear_nothing, attended=True)
        conducted.append(asyncio.create_task(run))
        return await asyncio.shield(conducted[-1])

    settings, journal, bus = resources.settings, resources.journal, resources.bus
    feed = Feed(
        journal,
        run=resources.run.id,
        bus=bus,
        poll_seconds=settings.monitor.poll_seconds,
        hertz=settings.console.hertz,
    )
    console = Console(
        feed,
        OperatorActions(journal, author=operator_name(), bus=bus, clock=resources.clock),
        work=work,
        settings=settings.console,
        about=about,
        now=lambda: resources.clock().astimezone(),
    )
    try:
        code = await show_console(console)
    finally:
        await _end_tasks(conducted)
    if code == INTERRUPTED and console.board.only_waits:
        return 3
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return 1 if code is None else code


async def show_console(console: "Console") -> int | None:
    """Show a console until it is closed, and return the exit code of its run, if it has one.

    If this is canceled, it closes the console properly: if canceled while it starts, Textual prints
    tracebacks.
    """
    from midwatch_supervisor.tui.app import INTERRUPTED, collect_garbage_seldom

    collect_garbage_seldom()
    showing = asyncio.ensure_future(console.run_async())
    try:
        return await asyncio.shield(showing)
    except asyncio.CancelledError:
        console.exit(INTERRUPTED)
        await showing
        raise


async def _end_tasks(conducted: Sequence[asyncio.Task[int]]) -> None:
    """Cancel work that is still running. Raises the error it ended with, if any."""
    for task in conducted:
        task.cancel()
    await asyncio.gather(*conducted, return_exceptions=True)
    for task in conducted:
        if not task.cancelled():
            task.result()


async def _hear_nothing(entries: Sequence[Entry]) -> None:
    """Ignore new entries: the console reads the journal itself."""
