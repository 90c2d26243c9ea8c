"""What the sandbox of an attempt shows and hides."""

from pathlib import Path

from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.workspaces.workspace import Ground


def sandbox_paths(deck: RunResources, ground: Ground) -> SandboxPaths:
    """The folders of one attempt: its own, its repository, and what is hidden from it."""
    worktree = ground.worktree
    journal = Path(deck.journal.name)  # of a database it is no path that there is
    return SandboxPaths(
        folder=ground.folder,
        git_dir=worktree.git_dir if worktree else None,
        common_dir=worktree.common_dir if worktree else None,
        read=deck.settings.run.sandbox_read,
        hidden=(deck.home, *([journal.parent] if journal.is_file() else [])),
    )
