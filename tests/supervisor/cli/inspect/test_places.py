"""What commands say of workspaces, and of what a task that has not begun waits for."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import SupervisedBy
from midwatch_stage.repository import commit_all
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.workspaces.workspace import git

Say = Callable[..., Awaitable[tuple[int, str, str]]]
AWAY = "postgresql://127.0.0.1:1/x"


def write(folder: Path, *workspaces: str) -> None:
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
    write(tmp_path, here, away)
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
    write(tmp_path, "shop.git")
    journal = ("--journal", AWAY) if command == "submit" else ()
    code, out, _ = await say(command, "tasks.yaml", "--dry-run", "--json", *journal)
    assert (code, json.loads(out)["workspace"]) == (0, (tmp_path / "shop.git").as_uri())


@pytest.mark.parametrize("words", [("run",), ("submit",), ("run", "--dry-run")])
async def test_a_workspace_that_is_not_there_is_refused_before_anything_is_stored(
    words: tuple[str, ...], say: Say, tmp_path: Path
) -> None:
    write(tmp_path, ".", "typo")
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
