"""A split task whose node goes away in the middle: another one puts the whole together."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from midwatch_agents.scripted import Script
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Entry,
    Intervention,
    Lifecycle,
    Part,
    Terms,
)
from midwatch_stage.acting import DONE, gate, put, putting, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.harness import RunHarness
from midwatch_stage.matrix import matrix
from midwatch_stage.repository import new_repository
from midwatch_supervisor.fleet.queue.submission import pin_commits
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct, load_run
from midwatch_supervisor.workspaces.clone import clone_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import git

HANG = turn(call("gate"))
SCRIPTS = {
    "big": (putting("begun.txt", "x"), HANG),
    "big.1": (putting("one.txt", "x"), DONE),
    "big.2": (putting("half.txt", "x"), HANG, putting("two.txt", "x"), DONE),
}


def script_for(role: Role, key: str) -> Script:
    return script(*SCRIPTS[key])


def tasks(workspace: str) -> TaskFile:
    checks = "[file: one.txt, file: half.txt, file: two.txt]"
    big = f"id: big, goal: Do it., acceptance: {checks}, workspace: {workspace}"
    return TaskFile.model_validate(yaml.safe_load(task_file(__name__, big, tools=(put, gate))))


SPLIT = Intervention(
    action=Action.SPLIT,
    by=Actor.SUPERVISOR,
    terms=Terms(
        parts=(
            Part(title="First", goal="Write one.txt."),
            Part(title="Second", goal="Write two.txt."),
        ),
        keep=("**",),
    ),
)


def snapshots_of(harness: RunHarness, name: str) -> SnapshotStore:
    home = harness.folder / f"home-{name}"
    settings = FleetSettings(save_seconds=0)
    return SnapshotStore(journal=harness.journal, home=home, node=name, settings=settings)


async def node(harness: RunHarness, name: str, file: TaskFile) -> int:
    """Be a node until the run is over."""
    home = harness.folder / f"home-{name}"
    if runs := await harness.journal.runs():
        resources, jobs = await load_run(harness.journal, runs[0], home=home, learning=RunLearning)
    else:
        wanted = await pin_commits(assignments(file, harness.folder))
        resources, jobs = await begin_run(
            harness.journal,
            wanted,
            source="",
            settings=harness.settings,
            home=home,
            learning=RunLearning,
        )
    resources = replace(
        resources, snapshot_store=snapshots_of(harness, name), node=name, holder=f"{name}:1"
    )
    return await conduct(resources, jobs, _ignore)


async def _ignore(entries: Sequence[Entry]) -> None:
    return


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "old.txt").write_text("old")
    return new_repository(tmp_path / "project", {"old.txt": "old"})


async def gone(harness: RunHarness, file: TaskFile) -> None:
    """Let a node `a` begin, split the task, do its first part, and go away for good."""
    run = asyncio.create_task(node(harness, "a", file))
    work = harness.folder / "home-a" / "work" / "r1"
    await harness.until((work / "big-1" / "begun.txt").exists)
    await harness.say(SPLIT)
    await harness.until((work / "big.2-1" / "half.txt").exists)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.to_thread((harness.folder / "home-a").rename, harness.folder / "gone")


@pytest.mark.parametrize("workspace", matrix("project", "null", "copy"))
async def test_another_node_puts_the_whole_together_and_a_third_builds_on_it(
    workspace: str, harness: RunHarness, project: Path
) -> None:
    file = tasks(workspace)
    await gone(harness, file)
    (harness.folder / "go").touch()
    assert await node(harness, "b", file) == 0
    whole = harness.folder / "home-b" / "work" / "r1" / "big-whole"
    names = {path.name for path in whole.glob("*.txt")}
    assert names - {"old.txt"} == {"begun.txt", "half.txt", "one.txt", "two.txt"}
    assert ("old.txt" in names) is (workspace != "null")
    ends = [each.lifecycle for each in await harness.told(AttemptTransition) if each.lifecycle.over]
    assert ends.count(Lifecycle.COMPLETED) == 2
    if workspace == "project":
        await git(project, "fetch", "--quiet", ".", "HEAD")
        branch = "midwatch/r1/big-whole"
        await snapshots_of(harness, "c").bring_branches(project, [branch], run=1)
        listed = await git(project, "ls-tree", "--name-only", branch)
        assert set(listed.split()) == names
        assert clone_of(str(project), harness.folder / "home-b").exists()
