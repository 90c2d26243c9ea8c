"""The bus of a command that a person gives: nodes and monitors hear of it at once."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from midwatch_monitor.errors import ConfigError
from midwatch_supervisor.cli.output import write_error
from midwatch_supervisor.cli.settings import settings_in_force
from midwatch_supervisor.operator.actions import OperatorActions, operator_name

if TYPE_CHECKING:
    from midwatch_monitor.bus import FleetBus
    from midwatch_monitor.config.fleet import FleetSettings
    from midwatch_monitor.journal import Journal


def bus_of(settings: "FleetSettings", *, name: str | None = None) -> "FleetBus":
    """The bus of a console or of one command; nothing is kept for it while it is away.

    It logs in by its name, the host's if none is given, unless `fleet.broker.username` says
    otherwise. Without a broker in the settings it reaches this process only.
    """
    from midwatch_monitor.bus import bus_for
    from midwatch_supervisor.fleet.process import identity

    return bus_for(settings, name=identity(name).name, environ=os.environ, session=False)


@asynccontextmanager
async def operator_in(journal: "Journal", author: str | None) -> AsyncGenerator[OperatorActions]:
    """A person's desk at a journal; what is done there is told before this is left.

    The journal is all that is needed: without a broker it is heard of later.
    """
    async with bus_of(fleet_here()) as bus:
        yield OperatorActions(journal, author=operator_name(author), bus=bus)


def fleet_here() -> "FleetSettings":
    """The fleet's settings here, for hints; the built-in ones where a file is wrong."""
    try:
        return settings_in_force(None).fleet
    except ConfigError as error:
        from midwatch_monitor.config.fleet import FleetSettings

        # A mistake in a file must not keep a person from stopping an attempt.
        write_error(f"warning: no hint is sent: {error}")
        return FleetSettings()
