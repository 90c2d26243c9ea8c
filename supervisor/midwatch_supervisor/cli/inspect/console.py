"""The console on this terminal: beside a run of this process, or attached to a journal."""

import asyncio
import sys
from collections.abc import Sequence

from midwatch_monitor.bus import FleetBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Entry
from midwatch_supervisor.operator.actions import OperatorActions, operator_name
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.run.launch import conduct
from midwatch_tools.watch import now


def on_terminal() -> bool:
    """Whether a person sits at both ends of this process."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def show_run(resources: RunResources, jobs: tuple[Job, ...], *, about: Sequence[str]) -> int:
    """Conduct a run under a console that stays after it; answers the run's exit code.

    Left while the run only waits for a person, that is 3. Raises KeyboardInterrupt if it was left
    while the run worked. Both are resumable.
    """
    conducted: list[asyncio.Task[int]] = []

    async def work() -> int:
        # Textual makes tasks begin eagerly from Python 3.12 on; a run is not made for that.
        asyncio.get_running_loop().set_task_factory(None)
        conducted.append(
            asyncio.create_task(conduct(resources, jobs, _hear_nothing, attended=True))
        )
        return await asyncio.shield(conducted[0])

    from midwatch_supervisor.tui.app import INTERRUPTED, Console
    from midwatch_supervisor.tui.state.feed import Feed

    feed = Feed(
        resources.journal,
        run=resources.run.id,
        bus=resources.bus,
        poll_seconds=resources.settings.monitor.poll_seconds,
        hertz=resources.settings.console.hertz,
    )
    desk = OperatorActions(
        resources.journal, author=operator_name(), bus=resources.bus, clock=resources.clock
    )
    console = Console(
        feed,
        desk,
        work=work,
        settings=resources.settings.console,
        about=about,
        now=lambda: resources.clock().astimezone(),
    )
    try:
        code = await console.run_async()
    finally:
        await _end(conducted)
    # Textual swallows the cancellation by which a signal ends the process.
    if _told_to_stop():
        raise KeyboardInterrupt
    if code == INTERRUPTED:
        if console.board.only_waits:
            return 3
        raise KeyboardInterrupt
    return 1 if code is None else code


async def attach(
    journal: Journal,
    run: int | None,
    desk: OperatorActions,
    settings: Settings,
    bus: FleetBus,
    *,
    barred: str = "",
) -> int:
    """Show one run of a journal, or all of them, until the console is left; answers 0.

    Nothing is watched, decided or run here. What is shown comes from the journal: the bus only
    says when to look, and without a broker the journal is asked by itself. `barred` says
    why a person may only look; empty where acts are allowed.
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
        connected=lambda: not settings.fleet.broker.url or bus.counters.connected,
    )
    which = "all runs" if run is None else f"run {run}"
    about = [f"{'Only looking at' if barred else 'Watching'} {which} of {journal.name}"]
    about += [barred] if barred else []
    async with journal_clock(journal, now) as clock:
        console = Console(
            feed,
            desk,
            settings=settings.console,
            about=about,
            now=lambda: clock().astimezone(),
        )
        with console.log_capture:  # the bus may complain before the console is drawn
            await console.run_async()
    return 0


def _told_to_stop() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _end(conducted: Sequence[asyncio.Task[int]]) -> None:
    """Interrupt what still works. Raises what it ended with, if that was an error."""
    for task in conducted:
        task.cancel()
    await asyncio.gather(*conducted, return_exceptions=True)
    for task in conducted:
        if not task.cancelled():
            task.result()


async def _hear_nothing(entries: Sequence[Entry]) -> None:
    """The console hears the journal by itself."""
