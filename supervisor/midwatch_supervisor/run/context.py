"""The resources that all attempts of a run share."""

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
    """The learning interface of a run; the code that starts the run provides it."""

    async def precedents(self, task: Task) -> str:
        """Describe how similar tasks of the project went."""
        ...

    async def recall(
        self, task: Task, assignment: Assignment, attempt: Attempt, plan: Plan, blocks: DataBlocks
    ) -> tuple[str, tuple[Record, ...]]:
        """Return the learned text for an attempt's first prompt, and the records about it."""
        ...

    def reviews_facts(self, assignment: Assignment) -> bool:
        """Whether a model reviews new facts; otherwise they wait for a person."""
        ...

    async def run(self) -> None:
        """Learn until canceled."""
        ...

    async def finish(self, projects: Iterable[str]) -> None:
        """Learn from the end of the run."""
        ...


class LearningFrom(Protocol):
    """Creates the learning of a run."""

    def __call__(
        self, journal: Journal, *, settings: Settings, clock: Clock, bus: Bus
    ) -> Learning: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResources:
    """The journal, bus, configuration and machine that all attempts of a run share."""

    journal: Journal
    bus: Bus
    settings: Settings
    run: Run
    home: Path
    """Folder below which workspaces are made."""
    label: str
    """Name of the run's folders and branches, different from those of all earlier runs."""
    sandbox_kind: SandboxKind
    breakers: Breakers
    """Circuit breakers of the providers, shared by all models."""
    node: str
    holder: str
    """This process as the holder of leases."""
    clock: Clock
    learning: Learning
    calibrator: Calibrator
    """Knows how far each model's stated confidence can be trusted."""
    snapshot_store: SnapshotStore | None = None
    """Saves and finds work that another node may continue; `None` outside a fleet."""

    @property
    def placement(self) -> Placement:
        """The places of the attempts' workspaces on this machine."""
        return Placement(
            journal=self.journal, home=self.home, run=self.run.id, snapshots=self.snapshot_store
        )

    def sandbox_paths(self, workspace: Workspace) -> SandboxPaths:
        """Return the paths that an attempt's sandbox shows and hides (the home and the journal)."""
        worktree = workspace.worktree
        journal = Path(self.journal.name)  # the name of a database is not a file path
        return SandboxPaths(
            folder=workspace.folder,
            git_dir=worktree.git_dir if worktree else None,
            common_dir=worktree.common_dir if worktree else None,
            read=self.settings.run.sandbox_read,
            hidden=(self.home, *([journal.parent] if journal.is_file() else [])),
        )
