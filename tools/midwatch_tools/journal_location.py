"""The journal's location: an option, the environment, or `.midwatch/` in the main worktree."""

from collections.abc import Mapping
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_tools.git import run_git

FOLDER = ".midwatch"
FILE = "journal.db"
VARIABLE = "MIDWATCH_JOURNAL"


def journal_location(option: str | None, environ: Mapping[str, str], folder: Path) -> str:
    """Return the path or URL of the journal for work in `folder`."""
    if option:
        return option
    if named := environ.get(VARIABLE):
        return named
    return str(main_worktree(folder) / FOLDER / FILE)


def main_worktree(folder: Path) -> Path:
    """Return the main worktree of the repository around `folder`; outside git, the folder itself.

    Otherwise a linked worktree would get its own journal, which would vanish with it.
    """
    wanted = ("--path-format=absolute", "--git-common-dir", "--show-toplevel")
    try:
        lines = run_git(folder, "rev-parse", *wanted).split("\n")
    except WorkspaceError:
        return folder
    if len(lines) < 2:
        return folder
    common, top = Path(lines[0]), Path(lines[1])
    return common.parent if common.name == ".git" else top
