"""What is logged of attempts that come from one monitor to another."""

import logging
from collections.abc import Collection

from midwatch_monitor.journal.fleet.nodes import Roster
from midwatch_supervisor.fleet.monitors.guards import Turnover

log = logging.getLogger(__name__)

_MOST_NAMED = 10
"""Attempts that one line names."""


async def log_turnover(roster: Roster, turnover: Turnover, *, late: bool) -> None:
    """Log what was lost, and what was won of a monitor that was `late` to renew its leases.

    Raises JournalError.
    """
    won = turnover.won if late else frozenset[int]()
    if not (turnover.lost or won):
        return
    named = {id: each.name for id, each in (await roster.named(turnover.lost | won)).items()}
    if turnover.lost:
        log.warning("another monitor looks after these now: %s", listed(turnover.lost, named))
    if won:
        log.info("taken over from a monitor that renewed no lease: %s", listed(won, named))


def listed(attempts: Collection[int], names: dict[int, str]) -> str:
    """The first of some attempts by name, and how many more there are. Pure."""
    told = sorted(attempts)[:_MOST_NAMED]
    more = f" and {len(attempts) - len(told)} more" if len(attempts) > len(told) else ""
    return ", ".join(names.get(each, f"attempt {each}") for each in told) + more
