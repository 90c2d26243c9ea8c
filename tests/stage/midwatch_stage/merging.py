"""A repository with the worktree of an ended attempt, which may be merged."""

import os
import subprocess
from datetime import datetime
from pathlib import Path

from midwatch_monitor.config.tasks import AcceptanceSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Lifecycle,
    TaskTransition,
)
from midwatch_stage.command import assignment, new_attempt, new_task, write
from midwatch_stage.factories import AT

BRANCH = "midwatch/r1/totals-1"
WORK = "/".join(("home", "work", "r1", "totals-1"))


def git(folder: Path, *argv: str) -> str:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *argv], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, file: str, text: str) -> None:
    (folder / file).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", f"Write {file}")


async def finish(
    journal: Journal,
    workspace: Path,
    lifecycle: Lifecycle = Lifecycle.COMPLETED,
    source: Path | None = None,
    acceptance: tuple[AcceptanceSpec, ...] = ("true",),
    base: str = "",
    at: datetime = AT,
) -> None:
    """A task `totals` whose only attempt worked in `workspace` and has ended.

    With a `base` a node of a fleet worked on it, from that commit on.
    """
    folder = source or workspace.parents[3] / "repository"
    made = workspace.name == "totals-1" and not base
    place = folder if made else None
    spec = assignment("totals", acceptance=acceptance, workspace=place, base=base).model_dump_json()
    task = await new_task(journal, "totals", spec=spec, at=at)
    attempt = await new_attempt(journal, task, workspace=str(workspace))
    state = AttemptTransition(lifecycle=lifecycle, ending=Ending.DONE)
    await write(journal, attempt, AT, state)
    end = Draft(record=TaskTransition(lifecycle=lifecycle), at=AT, task=task.id)
    await journal.commit(Commit(drafts=(end,)))
