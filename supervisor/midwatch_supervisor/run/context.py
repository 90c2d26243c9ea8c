"""What all attempts of a run stand on."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Attempt, Plan, Record, Run, Task
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.workspaces.placement import Placement
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.data_blocks import DataBlocks


class Learning(Protocol):
    """What a run takes from what was learned before; whoever starts the run hands it in."""

    async def precedents(self, task: Task) -> str:
        """How similar tasks of the project went."""
        ...

    async def recall(
        self, task: Task, assignment: Assignment, attempt: Attempt, plan: Plan, blocks: DataBlocks
    ) -> tuple[str, tuple[Record, ...]]:
        """What an attempt is given in its first prompt, and what the journal is told of it."""
        ...

    def reviews_facts(self, assignment: Assignment) -> bool:
        """Whether a model looks at new facts; else they wait for a person."""
        ...

    async def run(self) -> None:
        """Learn until cancelled."""
        ...

    async def finish(self, projects: Iterable[str]) -> None:
        """Learn what the end of the run tells."""
        ...


class LearningFrom(Protocol):
    """Builds what a run learns with."""

    def __call__(
        self, journal: Journal, *, settings: Settings, clock: Clock, bus: Bus
    ) -> Learning: ...


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
    sandbox_kind: SandboxKind
    breakers: Breakers
    """Of the providers, shared by all models."""
    node: str
    holder: str
    """This process, for the leases of its attempts."""
    clock: Clock
    learning: Learning
    calibrator: Calibrator
    """What each model's stated confidence was worth so far."""
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
