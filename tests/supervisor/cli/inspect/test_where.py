"""Where attempts are and what waits for a node: `status`, `show` and `submit` in a fleet."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Attempt,
    Change,
    Lifecycle,
    NodeState,
    Record,
    Snapshot,
    SupervisedBy,
)
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.workspaces.workspace import git
from midwatch_tests.command import ask, assignment, new_attempt, new_task, read, write
from midwatch_tests.factories import AT, transition
from midwatch_tests.nodes import node
from midwatch_tests.repository import commit_all

Capture = pytest.CaptureFixture[str]
SAVED = Snapshot(commit="0123456789abcdef", messages=4, step=12, size=14_300)
NODE_A = node("node-a", slots=2, busy=1, began=AT)


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def moving(journal: Journal) -> Attempt:
    """An attempt at work on node-a of a fleet that has a node-b, too."""
    task = await new_task(journal, supervised_by=SupervisedBy.MONITOR)
    attempt = await new_attempt(journal, task, node="node-a")
    for each in (NODE_A, replace(NODE_A, name="node-b")):
        await Nodes(journal).enter(each, alive_seconds=15)
    await write(journal, attempt, AT, transition())
    return attempt


async def test_in_a_fleet_the_node_of_each_attempt_is_named_and_nobody_knows_how_a_lost_one_fares(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    _, titles, row = await read(capsys, "status")
    assert (titles.split()[4], row.split()[4]) == ("node", "node-a")
    await write(journal, moving, AT, transition(Lifecycle.INPUT_REQUIRED))
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    line, *_ = await ask(capsys, "status")
    assert (line["health"], line["waits_for"]) == ("unknown", "a person")
    assert "  health unknown, last step 0" in await read(capsys, "show", "fix")
    await write(journal, moving, AT, Change(node="node-b"))  # another one goes on
    line, *_ = await ask(capsys, "status")
    assert (line["health"], line["node"], line["node_state"]) == ("ok", "node-b", "up")


@pytest.fixture
async def without_node(journal: Journal) -> None:
    """A task of a fleet without any node, beside a fleet with one whose slots are taken."""
    settings = '{"fleet": {"name": "ours"}}'
    run = await journal.add_run(
        source="tasks.yaml", settings=settings, at=AT, supervised_by=SupervisedBy.MONITOR
    )
    await new_task(journal, run=run.id, spec=assignment("fix").model_dump_json())
    theirs = replace(NODE_A, busy=2, fleet="theirs")
    await Nodes(journal).enter(theirs, alive_seconds=15)


@pytest.mark.usefixtures("without_node")
async def test_a_task_waits_for_a_node_of_its_own_fleet(capsys: Capture) -> None:
    line, *_ = await ask(capsys, "status")
    assert line["waits_for"] == "a node (none is up)"
    assert "waits for: a node (none is up)" in await read(capsys, "show", "fix")
    none = "no node of fleet ours has joined yet: `midwatch node` starts one"
    assert none in await read(capsys, "status")


async def test_show_tells_on_which_nodes_an_attempt_was_and_what_is_saved_or_too_large(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    async def show_after(*records: Record) -> list[str]:
        await write(journal, moving, AT, *records)
        return await read(capsys, "show", "fix")

    saved = "  saved: the work as of step 12, 14 kB in the journal (commit 0123456789ab)"
    lines = await show_after(SAVED, Change(node="node-b"), Change(node="node-b"))
    assert "  coder with m on node-a, then node-b, begun in /w" in lines
    assert [each for each in lines if "saved" in each] == [saved]
    large = "  not saved: too large (fleet.max_bundle_mb): the work as of step 13 cannot move"
    lines = await show_after(replace(SAVED, step=13, size=0))
    assert [each for each in lines if "saved" in each] == [saved, large]
    lines = await show_after(replace(SAVED, step=14))
    assert [each for each in lines if "saved" in each] == [saved.replace("12", "14", 1)]
    lines = await ask(capsys, "show", "fix")
    assert {line["type"] for line in lines} == {"task", "attempt"}  # none for programs


async def test_show_names_the_folder_of_the_last_node_only_where_it_is_on_this_machine(
    journal: Journal, tmp_path: Path, capsys: Capture
) -> None:
    east, west = (tmp_path / "nodes" / node / "work" / "r1" / "fix-1" for node in ("east", "west"))
    task = await new_task(journal, spec=assignment("fix").model_dump_json())
    attempt = await new_attempt(journal, task, node="east", workspace=str(east))
    await write(journal, attempt, AT, Change(node="west"))
    lines = await read(capsys, "show", "fix")
    assert f"  coder with m on east, then west, begun in {east}" in lines
    west.mkdir(parents=True)
    lines = await read(capsys, "show", "fix")
    assert f"  coder with m on east, then west, in {west}" in lines


Say = Callable[..., Awaitable[tuple[int, str, str]]]
AWAY = "postgresql://127.0.0.1:1/x"


def write_tasks(folder: Path, *workspaces: str) -> None:
    """A task file with a task for each workspace."""
    tasks = [
        {"id": f"t{at}", "goal": "x", "acceptance": ["true"], "workspace": each}
        for at, each in enumerate(workspaces)
    ]
    head = {"models": {"worker": "none", "supervisor": "none"}}
    workers = {"workers": {"clerk": {"agent": "nowhere:agent"}}}
    (folder / "tasks.yaml").write_text(json.dumps({**head, **workers, "tasks": tasks}))


async def bare(folder: Path) -> str:
    """Make a bare repository `shop.git`; its commit."""
    source = folder / "shop"
    source.mkdir()
    await git(source, "init", "--quiet", "--initial-branch=main")
    (source / "a.txt").write_text("one\n")
    await commit_all(source, "First")
    await git(folder, "clone", "--quiet", "--bare", "shop", "shop.git")
    return (await git(source, "rev-parse", "HEAD")).strip()


async def test_of_a_git_url_the_commit_is_said_or_why_it_is_not_known(
    say: Say, tmp_path: Path
) -> None:
    commit = await bare(tmp_path)
    here, away = (tmp_path / "shop.git").as_uri(), (tmp_path / "away.git").as_uri()
    write_tasks(tmp_path, here, away)
    words = ("submit", "tasks.yaml", "--journal", AWAY, "--dry-run")
    code, out, _ = await say(*words)
    first, warning, second, problem, *_ = out.splitlines()
    assert (code, first) == (0, f"would submit t0: worker clerk, workspace {here} at {commit[:12]}")
    assert warning.startswith(f"  warning: {here} is a folder on this machine: ")
    assert second == f"would submit t1: worker clerk, workspace {away}"
    assert problem.startswith("  its commit is unknown: git ls-remote: ")
    lines = (await say(*words, "--json"))[1].splitlines()
    told = [json.loads(line) for line in lines]
    assert [(each["workspace"], each["commit"]) for each in told] == [(here, commit), (away, "")]
    assert told[1]["problem"].startswith("git ls-remote: ")


@pytest.mark.parametrize("command", ["run", "submit"])
async def test_a_bare_repository_is_cloned_like_a_url(
    command: str, say: Say, tmp_path: Path
) -> None:
    await bare(tmp_path)
    write_tasks(tmp_path, "shop.git")
    journal = ("--journal", AWAY) if command == "submit" else ()
    code, out, _ = await say(command, "tasks.yaml", "--dry-run", "--json", *journal)
    assert (code, json.loads(out)["workspace"]) == (0, (tmp_path / "shop.git").as_uri())


@pytest.mark.parametrize("words", [("submit",), ("run", "--dry-run")])
async def test_a_workspace_that_is_not_there_is_refused_before_anything_is_stored(
    words: tuple[str, ...], say: Say, tmp_path: Path
) -> None:
    write_tasks(tmp_path, ".", "typo")
    code, out, errors = await say(*words, "tasks.yaml")
    assert (code, out) == (2, "")
    assert errors.startswith(f"tasks.yaml: task t1: the workspace {tmp_path / 'typo'} does not exi")
    assert not (tmp_path / ".midwatch").exists()


TASKS = """
models: {worker: "none", supervisor: none}
workers: {clerk: {agent: "nowhere:agent"}}
tasks:
  - {id: a, goal: Do it., acceptance: ["true"], labels: [fpga]}
  - {id: b, goal: Do it., acceptance: ["true"], depends_on: [a]}
"""


async def test_who_waits_says_for_which_node_and_for_which_tasks(
    say: Say, tmp_path: Path, postgres: str
) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    assert (await say("submit", "tasks.yaml", "--journal", postgres))[0] == 0
    async with await Journal.open(postgres) as journal:
        assert [each.supervised_by for each in await journal.runs()] == [SupervisedBy.MONITOR]
        plain = status_of(Identity(name="one", boot="1"), slots=1, labels=())
        await Nodes(journal).enter(plain, alive_seconds=15)
    out = (await say("status", "--json", "--journal", postgres))[1]
    lines = map(json.loads, out.splitlines())
    waits = [line["waits_for"] for line in lines if line["type"] == "status"]
    assert waits == ["a node with the label fpga (none is up)", "the task a"]
    shown = (await say("show", "a", "--journal", postgres))[1].splitlines()
    assert "waits for: a node with the label fpga (none is up)" in shown
    assert "labels: fpga" in shown
    assert "waits for: the task a" in (await say("show", "b", "--journal", postgres))[1]
