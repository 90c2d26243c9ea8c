"""Attempts whose place is taken by work that their journal does not know."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt
from midwatch_stage.acting import DONE, REPORT, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.harness import RunHarness
from midwatch_stage.repository import new_repository
from midwatch_supervisor.workspaces.workspace import git


async def work(ctx: RunContext[object]) -> str:
    """Leave a file, and wait until there is a file `go` above the workspace."""
    folder = Path(await ctx.workspace.working_dir())
    with (folder / "work.txt").open("a") as file:
        file.write(f"{folder.name}\n")
    nothing = LocalBus().subscribe()
    while not (folder.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "done"


def script_for(role: Role, key: str) -> Script:
    work = call("work")
    return script(turn(work), DONE, again=(turn(REPORT, work), DONE))


def tasks(workspace: str) -> str:
    """A task whose first attempt is never accepted, and every later one is."""
    check = 'goal: Fix it., acceptance: ["grep -v fix-1 work.txt"], max_attempts: 2'
    return task_file(__name__, f"id: fix, {check}, workspace: {workspace}", tools=(work,))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"old.txt": "old"})


async def begun(harness: RunHarness, workspace: str, attempt: int = 1) -> "asyncio.Task[int]":
    """A run whose first attempt is at work."""
    run = asyncio.create_task(harness.run(tasks(workspace)))
    await harness.until((harness.home / f"work/r1/fix-{attempt}/work.txt").exists)
    return run


def copied(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as one, sqlite3.connect(target) as other:
        one.backup(other)
    one.close()
    other.close()


@pytest.fixture
async def restored(
    harness: RunHarness, journal_file: Path, project: Path
) -> AsyncGenerator[RunHarness]:
    """A run that is over by now, with its journal as it was when the first attempt was at work."""
    run = await begun(harness, "project")
    backup = journal_file.with_name("backup.db")
    copied(journal_file, backup)
    harness.open_gate()
    assert await run == 0
    async with await Journal.open(backup) as journal:
        harness.journal = journal
        yield harness


async def test_after_a_journal_was_restored_nothing_is_lost_and_nothing_fails(
    restored: RunHarness, project: Path
) -> None:
    work = restored.home / "work/r1"
    assert await restored.resume() == 0
    assert (work / "fix-2/work.txt").read_text() == "fix-2\n"
    assert (work / "fix-2.aside-1/work.txt").read_text() == "fix-2\n"
    # The attempt that the backup knows has found its worktree, and has called its tool again.
    assert (work / "fix-1/work.txt").read_text() == "fix-1\nfix-1\n"
    assert await git(project, "show", "midwatch/r1/fix-2.aside-1:work.txt") == "fix-2\n"
    assert sorted(each.name for each in work.iterdir()) == ["fix-1", "fix-2", "fix-2.aside-1"]


@pytest.mark.parametrize("workspace", ["project", "null", "copy"])
async def test_a_ground_that_was_made_before_its_attempt_was_stored_is_no_hindrance(
    workspace: str, harness: RunHarness, project: Path
) -> None:
    shutil.copytree(project, harness.folder / "copy", ignore=shutil.ignore_patterns(".git"))
    run = await begun(harness, workspace)
    left = harness.home / "work/r1/fix-2"
    if workspace == "project":
        await git(project, "worktree", "add", "-q", "-b", "midwatch/r1/fix-2", str(left))
    else:
        left.mkdir()
    (left / "unknown.txt").write_text("kept")
    harness.open_gate()
    assert await run == 0
    assert not (left / "unknown.txt").exists()
    assert left.with_name("fix-2.aside-1").joinpath("unknown.txt").read_text() == "kept"


async def test_work_of_an_attempt_that_a_restored_journal_thinks_has_not_begun_is_kept(
    harness: RunHarness, project: Path
) -> None:
    run = await begun(harness, "project")
    run.cancel()
    await asyncio.wait({run})
    known = await only_submitted(harness)
    harness.open_gate()
    assert await harness.resume() == 0
    aside = Path(known.workspace).with_name("fix-1.aside-1")
    assert (aside / "work.txt").read_text() == "fix-1\n"


async def only_submitted(harness: RunHarness) -> Attempt:
    """A second run as the journal had it before its attempt began, in the place of the first."""
    journal, (task,) = harness.journal, await harness.journal.tasks(1)
    first = (await journal.attempts(task.id))[0]
    settings = (await journal.run(1)).settings
    run = await journal.add_run(source="tasks.yaml", settings=settings, at=first.started_at)
    again = await journal.add_task(
        run=run.id, name=task.name, title=task.title, spec=task.spec, at=first.started_at
    )
    return await journal.add_attempt(
        task=again.id,
        number=1,
        worker=first.worker,
        model=first.model,
        node=first.node,
        workspace=first.workspace,
        at=first.started_at,
    )
