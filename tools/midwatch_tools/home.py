"""Where the journal lives: option, environment, then the main worktree's `.midwatch/`."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

FOLDER = ".midwatch"
FILE = "journal.db"
VARIABLE = "MIDWATCH_JOURNAL"


def journal_location(option: str | None, environ: Mapping[str, str], folder: Path) -> str:
    """The path or URL of the journal for work in `folder`."""
    if option:
        return option
    if named := environ.get(VARIABLE):
        return named
    return str(main_worktree(folder) / FOLDER / FILE)


def main_worktree(folder: Path) -> Path:
    """The main worktree of the repository around `folder`; outside git the folder itself.

    A linked worktree would otherwise get a journal of its own, which goes when it goes.
    """
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return folder
    lines = answer.stdout.split("\n")
    if answer.returncode != 0 or len(lines) < 2:
        return folder
    common, top = Path(lines[0]), Path(lines[1])
    return common.parent if common.name == ".git" else top
