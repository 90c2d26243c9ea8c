"""`midwatch submit` and `node`, as far as they need no second process."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import SupervisedBy
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.fleet.queue.queue import TurnQueue
from midwatch_tests.command import Cli, assignment, new_task

TASKS = """
models: {worker: "none", supervisor: none}
workers: {clerk: {agent: "nowhere:agent"}}
tasks:
  - {id: a, goal: Do it., acceptance: ["true"], labels: [gpu]}
  - {id: b, goal: Do it., acceptance: ["true"], depends_on: [a]}
"""

Say = Callable[..., Awaitable[tuple[int, str, str]]]
AWAY = "postgresql://127.0.0.1:1/x"
LACKS = "no node that is up has the label gpu"
NO_FLEET = "a fleet needs a journal in PostgreSQL"
SHARED = (
    "{} is a folder on this machine: other nodes can use it only if it is shared with them under "
    "the same path"
)


@pytest.fixture(autouse=True)
def edit_task_file(tmp_path: Path) -> Callable[[str, str], None]:
    """Writes the task file, with something in it replaced."""

    def write(old: str, new: str) -> None:
        (tmp_path / "tasks.yaml").write_text(TASKS.replace(old, new))

    write("", "")
    return write


async def dry_run_warnings(say: Say, *words: str) -> list[str]:
    """What a dry run warns of, a task each."""
    _, out, _ = await say("submit", "tasks.yaml", "--dry-run", "--json", *words)
    return [json.loads(line)["warning"] for line in out.splitlines()]


async def test_submit_says_what_it_would_hand_over(say: Say) -> None:
    words = ("submit", "tasks.yaml", "--journal", AWAY, "--dry-run")
    code, out, errors = await say(*words)
    assert (code, out.splitlines()) == (
        0,
        [
            "would submit a: worker clerk, workspace an empty folder, for nodes with gpu",
            "would submit b: worker clerk, workspace an empty folder",
        ],
    )
    assert errors.startswith("cannot tell which nodes are up: ")
    code, out, errors = await say(*words, "--json", "--key", "night-1")
    first, _ = out.splitlines()
    assert json.loads(first) == {
        "type": "plan",
        "task": "a",
        "worker": "clerk",
        "workspace": "",
        "labels": ["gpu"],
        "commit": "",
        "problem": "",
        "warning": "",
    }
    unknown = "cannot tell whether a run with this key exists, and which nodes are up: "
    assert (code, errors.startswith(unknown)) == (0, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("submit tasks.yaml", NO_FLEET),
        ("node", NO_FLEET),
        ("submit tasks.yaml --journal mysql://127.0.0.1/x", NO_FLEET),
        (
            "submit tasks.yaml --journal postgresql://127.0.0.1:port/x",
            "the URL of the journal cannot be read",
        ),
        (
            "submit tasks.yaml --journal postgresql:/127.0.0.1/x",
            "the URL of the journal lacks a slash",
        ),
        (
            "submit tasks.yaml --journal postgresql+asyncpg://127.0.0.1:1/x",
            "not postgresql+asyncpg",
        ),
        (f"submit tasks.yaml --key {'k' * 201}", "a key has 1 to 200 characters"),
        (f"node --journal {AWAY} --name a/b", "a name may have letters (a-z, A-Z)"),
        ("monitor --name a/b", "a name may have letters (a-z, A-Z)"),
        (f"node --journal {AWAY} --slots 0", "--slots 0: a node has 1 to 1000 slots"),
        (
            f"node --journal {AWAY} --label ä",
            "--label 'ä': a node has at most 6 labels, each of at most 80 letters",
        ),
        (f"node --journal {AWAY} --label {' --label '.join('abcdefg')}", "at most 6 labels"),
    ],
)
async def test_a_fleet_that_cannot_be_is_refused_by_a_dry_run_too(
    words: str, told: str, say: Say, tmp_path: Path
) -> None:
    for more in [[], ["--dry-run"]] if words.startswith("submit") else [[]]:
        code, out, errors = await say(*words.split(), *more)
        assert (code, out, errors.count("\n"), told in errors) == (2, "", 1, True)
    assert not (tmp_path / ".midwatch").exists()


async def test_a_dry_run_refuses_a_database_that_there_is_not(say: Say, postgres: str) -> None:
    words = ("submit", "tasks.yaml", "--journal", f"{postgres}_not", "--dry-run")
    code, out, errors = await say(*words)
    assert (code, out, "does not exist" in errors) == (2, "", True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('worker: "none"', "worker: nobody", "there is no model 'nobody'"),
        ('worker: "none"', 'worker: "nonsense:x"', "there is no model 'nonsense:x'"),
        ("[gpu]", "[a, b, c, d, e, f, g]", "6 labels at most"),
        ("[a]", "[c]", "there is no task 'c'"),
        ('agent: "nowhere:agent"', "kind: coding", "worker clerk: unknown kind 'coding'"),
    ],
)
async def test_what_no_node_could_do_is_refused(
    old: str,
    new: str,
    told: str,
    edit_task_file: Callable[[str, str], None],
    cli: Cli,
    tmp_path: Path,
) -> None:
    edit_task_file(old, new)
    assert told in await cli.refused("submit", str(tmp_path / "tasks.yaml"), "--dry-run")


async def test_a_folder_of_this_machine_is_warned_of(
    say: Say, tmp_path: Path, edit_task_file: Callable[[str, str], None], postgres: str
) -> None:
    edit_task_file("id: a,", "id: a, workspace: .,")
    lacks = SHARED.format(tmp_path) + "; `workspace:` also takes the URL of a git repository"
    warned = await dry_run_warnings(say, "--journal", postgres)
    assert warned == [f"no node is up; {lacks}", "no node is up"]
    _, out, _ = await say("submit", "tasks.yaml", "--journal", postgres, "--json")
    assert json.loads(out)["warnings"] == ["a, b: no node is up", f"a: {lacks}"]
    url = (tmp_path / "origin.git").as_uri()
    edit_task_file("id: a,", f'id: a, workspace: "{url}",')
    assert (await dry_run_warnings(say, "--journal", AWAY))[0] == SHARED.format(url)


async def _read_runs_and_queue(location: str) -> tuple[list[SupervisedBy], list[str], list[str]]:
    async with await Journal.open(location) as journal:
        runs = await journal.runs()
        tasks = await journal.tasks(runs[0].id)
    async with await TurnQueue.open(location, fleet="midwatch") as turn_queue:
        handed = await turn_queue.under_way()
    return (
        [run.supervised_by for run in runs],
        [task.name for task in tasks],
        [str(each.ticket.task) for each in handed],
    )


async def _add_node(location: str, *labels: str, fleet: str = "midwatch") -> None:
    """Add a node that is up."""
    async with await Journal.open(location) as journal:
        node = status_of(Identity(name=f"of-{fleet}", boot="1"), slots=1, labels=labels)
        await Nodes(journal).enter(replace(node, fleet=fleet), alive_seconds=15)


async def test_submit_warns_of_what_no_node_of_its_fleet_takes(say: Say, postgres: str) -> None:
    await _add_node(postgres, "gpu", fleet="other")
    assert await dry_run_warnings(say, "--journal", postgres) == ["no node is up"] * 2
    await _add_node(postgres, "gpu")
    assert await dry_run_warnings(say, "--journal", postgres) == ["", ""]
    code, out, errors = await say("submit", "tasks.yaml", "--journal", postgres, "--dry-run")
    assert (code, "warning" in out, errors) == (0, False, "")


async def test_submit_stores_a_run_hands_out_what_can_begin_and_warns_all_the_same(
    say: Say, postgres: str
) -> None:
    await _add_node(postgres)
    words = ("submit", "tasks.yaml", "--journal", postgres)
    assert f"  warning: {LACKS}\n" in (await say(*words, "--dry-run"))[1]
    code, out, errors = await say(*words, "--json")
    assert (code, errors) == (0, "")
    told = {"type": "run", "run": 1, "tasks": 2, "already": False, "warnings": [f"a: {LACKS}"]}
    assert json.loads(out) == told
    assert await _read_runs_and_queue(postgres) == ([SupervisedBy.MONITOR], ["a", "b"], ["1"])
    assert (await say(*words))[1].splitlines()[-1] == f"warning: a: {LACKS}"


async def test_submit_with_a_key_may_be_said_again(
    say: Say, postgres: str, edit_task_file: Callable[[str, str], None]
) -> None:
    again = ("submit", "tasks.yaml", "--journal", postgres, "--key", "night-1")
    planned = await say(*again, "--dry-run")
    assert (planned[0], planned[1].count("would submit")) == (0, 2)
    told = json.loads((await say(*again, "--json"))[1])
    assert (told["already"], told["warnings"]) == (False, ["a, b: no node is up"])
    code, out, errors = said = await say(*again)
    assert (code, errors, await say(*again, "--dry-run")) == (0, "", said)
    assert re.match(r"Run 1 already exists, since \S+ \S+ UTC: 2 tasks, journal ", out)
    for more in ([], ["--dry-run"]):
        told = json.loads((await say(*again, "--json", *more))[1])
        assert (told["already"], told["warnings"]) == (True, [])
    edit_task_file("Do it.", "Do something else.")
    code, out, errors = said = await say(*again)
    assert (code, out, await say(*again, "--dry-run")) == (2, "", said)
    assert "the key night-1 belongs to run 1, which was submitted with other tasks" in errors
    assert await _read_runs_and_queue(postgres) == ([SupervisedBy.MONITOR], ["a", "b"], ["1"])


async def test_a_run_of_a_fleet_is_not_resumed_by_a_process(
    journal: Journal, location: str, cli: Cli
) -> None:
    spec = assignment().model_dump_json()
    await new_task(journal, supervised_by=SupervisedBy.MONITOR, spec=spec)
    for more in (["--run", "1"], []):
        said = await cli.refused("resume", "--journal", location, *more)
        assert "a fleet, which continues it" in said
    assert "run 1 belongs to a fleet" in said
