"""The console on this terminal beside a run of this process."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from midwatch_monitor.records import Entry
from midwatch_supervisor.operator.actions import OperatorActions, operator_name

if TYPE_CHECKING:
    # A console that only watches needs none of what runs a worker, which takes seconds to import.
    from midwatch_supervisor.run.context import RunResources
    from midwatch_supervisor.run.job import Job
    from midwatch_supervisor.tui.app import Console


async def show_run(
    resources: "RunResources", jobs: "tuple[Job, ...]", *, about: Sequence[str]
) -> int:
    """Conduct a run under a console that stays after it; answers the run's exit code.

    Left while the run only waits for a person, that is 3. Raises KeyboardInterrupt if it was left
    while the run worked. Both are resumable.
    """
    from midwatch_supervisor.run.launch import conduct, jobs_again
    from midwatch_supervisor.tui.app import INTERRUPTED, Console
    from midwatch_supervisor.tui.state.feed import Feed

    conducted: list[asyncio.Task[int]] = []

    async def work() -> int:
        # Textual makes tasks begin eagerly from Python 3.12 on; a run is not made for that.
        asyncio.get_running_loop().set_task_factory(None)
        # Where a task is begun again once the run is over, it goes on here.
        known = await jobs_again(resources) if conducted else jobs
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
        code = await shown(console)
    finally:
        await _end(conducted)
    if code == INTERRUPTED and console.board.only_waits:
        return 3
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return 1 if code is None else code


async def shown(console: "Console") -> int | None:
    """Show a console until it is left; answers the run's exit code, if there is any.

    Cancelled, it is left in order: cancelled amid its start, Textual prints tracebacks.
    """
    from midwatch_supervisor.tui.app import INTERRUPTED, calm_collector

    calm_collector()
    showing = asyncio.ensure_future(console.run_async())
    try:
        return await asyncio.shield(showing)
    except asyncio.CancelledError:
        console.exit(INTERRUPTED)
        await showing
        raise


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
