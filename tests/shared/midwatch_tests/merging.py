"""A repository with the worktree of an ended attempt, which may be merged."""

import os
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle, TaskTransition
from midwatch_tests.command import Cli, assignment, new_attempt, new_task, write
from midwatch_tests.factories import AT

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A task `totals`, and the worktree in which its only attempt has worked."""

    journal: Journal
    repository: Path
    worktree: Path
    cli: Cli

    async def finish(
        self,
        lifecycle: Lifecycle = Lifecycle.COMPLETED,
        *,
        workspace: Path | None = None,
        source: Path | None = None,
        base: str = "",
        at: datetime = AT,
        **fields: Any,
    ) -> None:
        """Let it be over. With a `base` a node of a fleet worked on it, from that commit on."""
        folder = workspace or self.worktree
        made = folder.name == "totals-1" and not base
        wanted = assignment(
            "totals", workspace=(source or self.repository) if made else None, base=base, **fields
        )
        task = await new_task(self.journal, "totals", spec=wanted.model_dump_json(), at=at)
        attempt = await new_attempt(self.journal, task, workspace=str(folder))
        state = AttemptTransition(lifecycle=lifecycle, ending=Ending.DONE)
        await write(self.journal, attempt, AT, state, TaskTransition(lifecycle=lifecycle))

    async def merge(self, *words: str) -> list[str]:
        """The lines of a merge that succeeds."""
        return await self.cli.read("merge", "totals", *words)

    async def refused(self, *words: str) -> str:
        """What is said where there is no merge."""
        return await self.cli.refused("merge", "totals", *words)
