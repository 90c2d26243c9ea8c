"""`midwatch monitor`: watch and supervise runs that have no process of their own to do so."""

import os
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_supervisor.cli.journals import JournalOption, journal_of_work, journal_place
from midwatch_supervisor.cli.output import write_either, write_json
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings
    from midwatch_supervisor.fleet.monitors.fleet_monitor import LeaseChange
    from midwatch_supervisor.fleet.monitors.leases import RoleChange
    from midwatch_supervisor.fleet.process import Identity


def monitor(
    *,
    name: Annotated[
        str | None,
        Parameter(
            help="Name in the fleet, and user name at the broker. Default: the machine's name; a "
            "second monitor on a machine needs another."
        ),
    ] = None,
    once: Annotated[bool, Parameter(help="Judge everything once, then exit.")] = False,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Watch and supervise a fleet's attempts, and agents that embed `Watch`, until told to stop.

    No `midwatch run` watches these. Several monitors may run: they share the attempts, and if one
    dies, the others take over its share.
    """
    from midwatch_supervisor.cli.fleet.log import log_to_stderr
    from midwatch_supervisor.cli.interrupts import run_to_end
    from midwatch_supervisor.fleet.process import identity

    settings = settings_in_force(config)
    work = _run_monitor(settings, journal_place(journal), identity(name), once=once, json=json)
    with log_to_stderr():
        return run_to_end(work, grace_seconds=settings.run.grace_seconds)


async def _run_monitor(
    settings: "Settings", location: str, who: "Identity", *, once: bool, json: bool
) -> int:
    from midwatch_monitor.bus import bus_for
    from midwatch_monitor.journal.core.clock import journal_clock, now
    from midwatch_supervisor.cli.interrupts import run_until_stopped
    from midwatch_supervisor.fleet.monitors.fleet_monitor import FleetMonitor
    from midwatch_supervisor.fleet.queue.dispatch import no_dispatch
    from midwatch_supervisor.notify.notifier import senders_of
    from midwatch_supervisor.telemetry.exporting import headers_of

    senders = senders_of(settings.notify, os.environ)
    headers_of(settings.telemetry, os.environ)  # mistakes there are reported first
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(await journal_of_work(location, settings))
        bus = await stack.enter_async_context(
            bus_for(
                settings.fleet,
                name=who.name,
                environ=os.environ,
                share="monitors",
                session=not once,  # it belongs to the monitor that stays
            )
        )
        clock = await stack.enter_async_context(journal_clock(journal, now))
        keeping = FleetMonitor(
            journal,
            location=location,
            bus=bus,
            settings=settings,
            holder=who.holder,
            clock=clock,
            tell=_print_change if json else lambda told: None,
            senders=senders,
        )
        unable = no_dispatch(location)

        async def keep() -> None:
            _print_start(who, journal.name, settings.fleet.broker.url, unable, json=json)
            await (keeping.once() if once else keeping.run())

        await run_until_stopped(keep(), lambda: _print_stop(who, json=json))
    return 0


def _print_start(who: "Identity", journal: str, broker: str, unable: str, *, json: bool) -> None:
    """Print what is watched."""
    fields = {"type": "monitor", "at": _current_moment(), "name": who.name, "state": "up"}
    write_either(
        {**fields, "journal": journal, "broker": broker, "hands_out": not unable},
        f"Monitor {who.name} watches {journal}, {broker or 'without a broker'}",
        *[f"It dispatches no tasks: {unable}"] * bool(unable),
        json=json,
    )
    sys.stdout.flush()


def _print_stop(who: "Identity", *, json: bool) -> None:
    """Print that the monitor stops."""
    fields = {"type": "monitor", "at": _current_moment(), "name": who.name, "state": "down"}
    text = f"Monitor {who.name} is stopping and gives up its leases"
    write_either(fields, text, json=json)


def _print_change(told: "LeaseChange | RoleChange") -> None:
    from midwatch_supervisor.fleet.monitors.leases import RoleChange

    kind = "post" if isinstance(told, RoleChange) else "lease"
    write_json({"type": kind, "at": _current_moment(), **asdict(told)})
    sys.stdout.flush()


def _current_moment() -> str:
    from midwatch_monitor.journal.core.clock import now
    from midwatch_supervisor.present.json_lines import moment

    return moment(now())
