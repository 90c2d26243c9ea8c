"""Which nodes may work on a run: those of its fleet. Several fleets may share a journal. Pure."""

import json
from collections.abc import Iterable

from midwatch_monitor.records import NodeStatus, Run, SupervisedBy


def fleet_of(run: Run) -> str:
    """Return the fleet that a run was submitted to.

    Reads nothing else: a newer Midwatch may have written settings that this one does not know.
    """
    # Importing it takes a while, and `status` of a run without a fleet does not need it.
    from midwatch_monitor.config.fleet import FleetSettings

    try:
        said: dict[str, dict[str, str]] = json.loads(run.settings)
        return said.get("fleet", {}).get("name", FleetSettings().name)
    except (ValueError, AttributeError, RecursionError):
        return ""  # of no fleet, so that the other runs can still be handled


def fleet_nodes(fleet: str, nodes: Iterable[NodeStatus]) -> list[NodeStatus]:
    """Return the nodes that work for a fleet."""
    return [each for each in nodes if each.fleet == fleet]


def nodes_of(run: Run, nodes: Iterable[NodeStatus]) -> list[NodeStatus] | None:
    """Return the nodes that may work on a run; `None` if one process runs it."""
    return fleet_nodes(fleet_of(run), nodes) if run.supervised_by is SupervisedBy.MONITOR else None
