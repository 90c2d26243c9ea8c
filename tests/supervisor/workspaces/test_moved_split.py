"""A split task whose node goes away in the middle: another one puts the whole together."""

import asyncio
from pathlib import Path
from runpy import run_path

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Action, Actor, Ending, Intervention, Part, Terms
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import git
from midwatch_tests.acting import DONE, gate, put, putting, script, task_file
from midwatch_tests.factories import call, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.matrix import matrix
from midwatch_tests.repository import new_repository

HANG = turn(call("gate"))
SCRIPTS = {
    "big": (putting("begun.txt", "x"), HANG),
    "big.1": (putting("one.txt", "x"), DONE),
    "big.2": (putting("half.txt", "x"), HANG, putting("two.txt", "x"), DONE),
}
CHECKS = "[file: one.txt, file: half.txt, file: two.txt]"


def script_for(role: Role, key: str) -> Script:
    return script(*SCRIPTS[key])


PARTS = (Part(title="First", goal="Write one.txt."), Part(title="Second", goal="Write two.txt."))
work = run_path(str(Path(__file__).with_name("moved_driver.py")))["work"]
SPLIT = Intervention(
    action=Action.SPLIT, by=Actor.SUPERVISOR, terms=Terms(parts=PARTS, keep=("**",))
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "old.txt").write_text("old")
    return new_repository(tmp_path / "project", {"old.txt": "old"})


@pytest.mark.parametrize("workspace", matrix("project", "null", "copy"))
async def test_another_node_puts_the_whole_together_and_a_third_builds_on_it(
    workspace: str, harness: RunHarness, project: Path
) -> None:
    harness.set(fleet={"save_seconds": 0})
    big = f"id: big, goal: Do it., acceptance: {CHECKS}, workspace: {workspace}"
    tasks = task_file(__name__, big, tools=(put, gate))
    home_a, home_b = (harness.folder / f"home-{name}" for name in "ab")
    first = asyncio.create_task(work(harness.journal, "a", home_a, tasks, harness.settings))
    await harness.until((home_a / "work" / "r1" / "big-1" / "begun.txt").exists)
    await harness.say(SPLIT)
    await harness.until((home_a / "work" / "r1" / "big.2-1" / "half.txt").exists)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await asyncio.to_thread(home_a.rename, harness.folder / "gone")
    harness.open_gate()
    assert await work(harness.journal, "b", home_b, tasks, harness.settings) == 0
    names = {path.name for path in (home_b / "work" / "r1" / "big-whole").glob("*.txt")}
    assert names - {"old.txt"} == {"begun.txt", "half.txt", "one.txt", "two.txt"}
    assert ("old.txt" in names) is (workspace != "null")
    assert (await harness.endings()).count(Ending.DONE) == 2
    if workspace == "project":
        await git(project, "fetch", "--quiet", ".", "HEAD")
        branch, home = "midwatch/r1/big-whole", harness.folder / "home-c"
        settings = harness.settings.fleet
        store = SnapshotStore(journal=harness.journal, home=home, node="c", settings=settings)
        await store.bring_branches(project, [branch], run=1)
        listed = await git(project, "ls-tree", "--name-only", branch)
        assert set(listed.split()) == names
