"""What all attempts of a run stand on."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import Walls
from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Run

if TYPE_CHECKING:
    from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResources:
    """The journal, the bus, the configuration and the machine that attempts share."""

    journal: Journal
    bus: Bus
    settings: Settings
    run: Run
    home: Path
    """Where workspaces are made."""
    label: str
    """What the run's folders and branches are called, so that no earlier run's are in the way."""
    walls: Walls
    breakers: Breakers
    """Of the providers, shared by all models."""
    node: str
    holder: str
    """This process, for the leases of its attempts."""
    clock: Clock
    depot: "SnapshotStore | None" = None
    """Where work is saved and found again that may go on elsewhere; `None` outside a fleet."""
