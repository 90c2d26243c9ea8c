"""What the sandbox of an attempt shows and hides."""

from pathlib import Path

from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_supervisor.deck import Deck
from midwatch_supervisor.workspace import Ground


def sandbox_paths(deck: Deck, ground: Ground) -> SandboxPaths:
    """The folders of one attempt: its own, its repository, and what is hidden from it."""
    git_dir = _git_dir(ground)
    journal = Path(deck.journal.name)  # of a database it is no path that there is
    return SandboxPaths(
        folder=ground.folder,
        git_dir=git_dir,
        common_dir=git_dir.parent.parent if git_dir else None,
        read=deck.settings.run.sandbox_read,
        hidden=(deck.home, *([journal.parent] if journal.is_file() else [])),
    )


def _git_dir(ground: Ground) -> Path | None:
    """Where the repository keeps a worktree, if it says so itself."""
    link = ground.folder / ".git"
    if not ground.branch or link.is_symlink() or not link.is_file():
        return None
    said = Path(link.read_text("utf-8").removeprefix("gitdir:").strip())
    back = said / "gitdir"
    known = back.is_file() and Path(back.read_text("utf-8").strip()) == link
    return said if known and said.parent.name == "worktrees" else None
