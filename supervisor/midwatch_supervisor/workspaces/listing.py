"""What is in a workspace, by name, for those who plan and review."""

import asyncio
from pathlib import Path

from midwatch_supervisor.workspaces.workspace import Ground
from midwatch_supervisor.workspaces.workspace_files import entries_below
from midwatch_tools.git import git

MAX_NAMES = 300
_HIDDEN = frozenset({".git", ".midwatch", ".venv", "__pycache__", "node_modules"})


async def listing(ground: Ground) -> str:
    """The files of a workspace, one a line; of many the first ones in order.

    In git those that git knows or would know. Raises WorkspaceError with what git said.
    """
    if ground.worktree is not None:
        said = await git(ground.worktree, "ls-files", "-co", "--exclude-standard", "-z")
        names = sorted({name for name in said.split("\0") if name})
    else:
        names = await asyncio.to_thread(_names, ground.folder)
    left = len(names) - MAX_NAMES
    return "\n".join([*names[:MAX_NAMES], *([f"… and {left} more"] if left > 0 else [])])


def _names(folder: Path) -> list[str]:
    found = (
        each
        for each in entries_below(folder, hidden=_HIDDEN)
        if not each.is_dir(follow_symlinks=False)
    )
    return sorted(Path(each.path).relative_to(folder).as_posix() for each in found)
