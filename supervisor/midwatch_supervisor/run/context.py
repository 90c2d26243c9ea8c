"""What all attempts of a run stand on."""

from dataclasses import dataclass
from pathlib import Path

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import Walls
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Run
from midwatch_supervisor.workspaces.placement import Placement
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace


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
    snapshot_store: SnapshotStore | None = None
    """Where work is saved and found again that may go on elsewhere; `None` outside a fleet."""

    @property
    def placement(self) -> Placement:
        """Where its attempts work on this machine."""
        return Placement(
            journal=self.journal, home=self.home, run=self.run.id, snapshots=self.snapshot_store
        )

    def sandbox_paths(self, workspace: Workspace) -> SandboxPaths:
        """What the sandbox of an attempt shows, and what it hides: the home and the journal."""
        worktree = workspace.worktree
        journal = Path(self.journal.name)  # of a database it is no path that there is
        return SandboxPaths(
            folder=workspace.folder,
            git_dir=worktree.git_dir if worktree else None,
            common_dir=worktree.common_dir if worktree else None,
            read=self.settings.run.sandbox_read,
            hidden=(self.home, *([journal.parent] if journal.is_file() else [])),
        )
