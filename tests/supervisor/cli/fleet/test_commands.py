"""`midwatch submit`, `node` and `nodes`, as far as they need no second process."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import now
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import NodeState, SupervisedBy
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.fleet.queue.queue import TurnQueue

TASKS = """
models: {worker: "none", supervisor: none}
workers: {clerk: {agent: "nowhere:agent"}}
tasks:
  - {id: a, goal: Do it., acceptance: ["true"], labels: [gpu]}
  - {id: b, goal: Do it., acceptance: ["true"], depends_on: [a]}
"""

Say = Callable[..., Awaitable[tuple[int, str, str]]]
AWAY = "postgresql://127.0.0.1:1/x"


@pytest.fixture(autouse=True)
def _task_file(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "tasks.yaml").write_text(TASKS)


async def test_submit_says_what_it_would_hand_over(say: Say) -> None:
    words = ("submit", "tasks.yaml", "--journal", AWAY, "--dry-run")
    code, out, _ = await say(*words)
    assert (code, out.splitlines()) == (
        0,
        [
            "would submit a: worker clerk, workspace an empty folder, for nodes with gpu",
            "would submit b: worker clerk, workspace an empty folder",
        ],
    )
    lines = (await say(*words, "--json"))[1].splitlines()
    assert json.loads(lines[0]) == {
        "type": "plan",
        "task": "a",
        "worker": "clerk",
        "workspace": "",
        "labels": ["gpu"],
        "commit": "",
        "problem": "",
        "warning": "",
    }


@pytest.mark.parametrize(
    "words", [("submit", "tasks.yaml"), ("submit", "tasks.yaml", "--dry-run"), ("node",)]
)
async def test_without_postgresql_there_is_no_fleet(
    words: tuple[str, ...], say: Say, tmp_path: Path
) -> None:
    code, out, errors = await say(*words)
    assert (code, out) == (2, "")
    assert "a fleet needs a journal in PostgreSQL" in errors
    assert not (tmp_path / ".midwatch").exists()


@pytest.mark.parametrize(
    ("journal", "told"),
    [
        ("mysql://127.0.0.1/x", "a fleet needs a journal in PostgreSQL"),
        ("nowhere/j.db", "a fleet needs a journal in PostgreSQL"),
        ("postgresql://127.0.0.1:port/x", "the URL of the journal cannot be read"),
        ("postgresql:/127.0.0.1/x", "the URL of the journal lacks a slash"),
        ("postgresql+asyncpg://127.0.0.1:1/x", "not postgresql+asyncpg"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
async def test_a_journal_that_cannot_be_is_refused_by_a_dry_run_too(
    journal: str, told: str, words: tuple[str, ...], say: Say
) -> None:
    code, out, errors = await say("submit", "tasks.yaml", "--journal", journal, *words)
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert told in errors


async def test_a_dry_run_refuses_a_database_that_there_is_not(say: Say, postgres: str) -> None:
    journal = f"{postgres}_not"
    code, out, errors = await say("submit", "tasks.yaml", "--journal", journal, "--dry-run")
    assert (code, out) == (2, "")
    assert "does not exist" in errors


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
    old: str, new: str, told: str, say: Say, tmp_path: Path
) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS.replace(old, new))
    code, _, errors = await say("submit", "tasks.yaml", "--dry-run")
    assert code == 2
    assert told in errors


async def test_a_folder_of_this_machine_is_warned_of(
    say: Say, tmp_path: Path, postgres: str
) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("id: a,", "id: a, workspace: .,"))
    lacks = (
        f"{tmp_path} is a folder on this machine: other nodes can use it only if it is shared "
        "with them under the same path; `workspace:` also takes the URL of a git repository"
    )
    words = ("submit", "tasks.yaml", "--journal", postgres, "--json")
    _, out, _ = await say(*words, "--dry-run")
    warnings = [json.loads(line)["warning"] for line in out.splitlines()]
    assert warnings == [f"no node is up; {lacks}", "no node is up"]
    _, out, _ = await say(*words)
    assert json.loads(out)["warnings"] == ["a, b: no node is up", f"a: {lacks}"]


async def test_of_a_repository_of_this_machine_named_by_url_it_is_not_said_that_urls_are_taken(
    say: Say, tmp_path: Path
) -> None:
    url = (tmp_path / "origin.git").as_uri()
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("id: a,", f'id: a, workspace: "{url}",'))
    _, out, _ = await say("submit", "tasks.yaml", "--journal", AWAY, "--json", "--dry-run")
    assert json.loads(out.splitlines()[0])["warning"] == (
        f"{url} is a folder on this machine: other nodes can use it only if it is shared with "
        "them under the same path"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--name", "a b"), "a name may have letters (a-z, A-Z)"),
        (("--slots", "0"), "--slots 0: a node has 1 to 1000 slots"),
        (
            ("--label", "a b"),
            "--label 'a b': a node has at most 6 labels, each of at most 80 letters",
        ),
        (tuple(f"--label={each}" for each in "abcdefg"), "a node has at most 6 labels"),
    ],
)
async def test_bad_options_of_a_node_are_refused(
    words: tuple[str, ...], told: str, say: Say
) -> None:
    code, _, errors = await say("node", "--journal", AWAY, *words)
    assert code == 2
    assert told in errors


async def _stored(location: str) -> tuple[list[SupervisedBy], list[str], list[str]]:
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


async def test_submit_stores_a_run_and_hands_out_what_can_begin(say: Say, postgres: str) -> None:
    code, out, errors = await say("submit", "tasks.yaml", "--journal", postgres, "--json")
    assert (code, errors) == (0, "")
    assert json.loads(out) == {
        "type": "run",
        "run": 1,
        "tasks": 2,
        "already": False,
        "warnings": ["a, b: no node is up"],
    }
    assert await _stored(postgres) == ([SupervisedBy.MONITOR], ["a", "b"], ["1"])


async def _standing(location: str, *labels: str, fleet: str = "midwatch") -> None:
    """Let a node be up."""
    async with await Journal.open(location) as journal:
        node = status_of(Identity(name="one", boot="1"), slots=1, labels=labels)
        await Nodes(journal).enter(replace(node, fleet=fleet), alive_seconds=15)


LACKS = "no node that is up has the label gpu"


@pytest.mark.parametrize(
    ("labels", "fleet", "first", "second"),
    [
        ((), "midwatch", LACKS, ""),
        (("gpu",), "midwatch", "", ""),
        (("gpu",), "other", "no node is up", "no node is up"),
    ],
    ids=["without the label", "with it", "of another fleet"],
)
async def test_submit_warns_of_what_no_node_that_is_up_takes(
    labels: tuple[str, ...], fleet: str, first: str, second: str, say: Say, postgres: str
) -> None:
    await _standing(postgres, *labels, fleet=fleet)
    words = ("submit", "tasks.yaml", "--journal", postgres)
    code, out, errors = await say(*words, "--dry-run", "--json")
    warned = [json.loads(line)["warning"] for line in out.splitlines()]
    assert (code, errors, warned) == (0, "", [first, second])
    assert ("  warning: " in (await say(*words, "--dry-run"))[1]) is bool(first)


async def test_what_is_handed_over_all_the_same_is_warned_of(say: Say, postgres: str) -> None:
    await _standing(postgres)
    words = ("submit", "tasks.yaml", "--journal", postgres)
    code, out, errors = await say(*words)
    assert (code, errors, out.splitlines()[-1]) == (0, "", f"warning: a: {LACKS}")
    out = (await say(*words, "--key", "night", "--json"))[1]
    assert json.loads(out)["warnings"] == [f"a: {LACKS}"]
    out = (await say(*words, "--key", "night", "--json"))[1]
    assert json.loads(out)["warnings"] == []


async def test_a_plan_for_a_journal_that_is_out_of_reach_is_a_plan_all_the_same(say: Say) -> None:
    words = ("submit", "tasks.yaml", "--dry-run", "--json", "--journal")
    code, out, errors = await say(*words, AWAY)
    assert (code, len(out.splitlines())) == (0, 2)
    assert errors.startswith("cannot tell which nodes are up: ")


async def test_submit_with_a_key_may_be_said_again(say: Say, postgres: str, tmp_path: Path) -> None:
    again = ("submit", "tasks.yaml", "--journal", postgres, "--key", "night-1")
    assert json.loads((await say(*again, "--json"))[1])["already"] is False
    code, out, errors = await say(*again)
    assert (code, errors) == (0, "")
    assert re.match(r"Run 1 already exists, since \S+ \S+ UTC: 2 tasks, journal ", out)
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("Do it.", "Do something else."))
    code, out, errors = await say(*again)
    assert (code, out) == (2, "")
    assert "the key night-1 belongs to run 1, which was submitted with other tasks" in errors
    assert await _stored(postgres) == ([SupervisedBy.MONITOR], ["a", "b"], ["1"])


async def test_a_dry_run_with_a_key_says_whether_it_is_taken(
    say: Say, postgres: str, tmp_path: Path
) -> None:
    words = ("submit", "tasks.yaml", "--journal", postgres, "--key", "night-1")
    planned = await say(*words, "--dry-run")
    assert (planned[0], planned[1].count("would submit")) == (0, 2)
    await say(*words)
    assert await say(*words, "--dry-run") == await say(*words)
    told = [json.loads((await say(*words, "--json", *dry))[1]) for dry in ((), ("--dry-run",))]
    assert told[0] == told[1]
    assert told[1]["already"] is True
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("Do it.", "Do something else."))
    refused = await say(*words, "--dry-run")
    assert refused == await say(*words)
    assert refused[0] == 2


async def test_a_dry_run_says_that_it_cannot_know_whether_a_key_is_taken(say: Say) -> None:
    words = ("submit", "tasks.yaml", "--journal", AWAY, "--key", "night-1", "--dry-run")
    code, out, errors = await say(*words)
    assert (code, len(out.splitlines())) == (0, 2)
    assert errors.startswith(
        "cannot tell whether a run with this key exists, and which nodes are up: "
    )


async def test_a_bad_key_is_refused(say: Say) -> None:
    code, _, errors = await say("submit", "tasks.yaml", "--key", "k" * 201)
    assert (code, "a key has 1 to 200 characters" in errors) == (2, True)


async def test_a_run_of_a_fleet_is_not_resumed_by_a_process(say: Say, postgres: str) -> None:
    await say("submit", "tasks.yaml", "--journal", postgres)
    code, _, errors = await say("resume", "--journal", postgres, "--run", "1")
    assert code == 2
    assert "a fleet, which continues it" in errors
    code, _, errors = await say("resume", "--journal", postgres)
    assert code == 2
    assert "run 1 belongs to a fleet, which continues it" in errors


async def _with_nodes(location: str) -> None:
    async with await Journal.open(location) as journal:
        nodes = Nodes(journal)
        for name, labels in (("one", ("gpu",)), ("two", ())):
            status = status_of(Identity(name=name, boot="1"), slots=3, labels=labels)
            await nodes.enter(status, alive_seconds=1)
        await nodes.beat("two", "1", busy=0, state=NodeState.DOWN)
        await nodes.beat("one", "1", busy=1)
        await nodes.doubt("one")
        run = await journal.add_run(source="t", settings=Settings().model_dump_json(), at=now())
        await journal.add_task(run=run.id, name="a", title="a", spec="{}", at=now())


async def test_nodes_are_listed(say: Say, tmp_path: Path) -> None:
    location = str(tmp_path / "journal.db")
    await _with_nodes(location)
    code, out, _ = await say("nodes", "--journal", location)
    assert code == 0
    one, two, monitors = out.splitlines()
    assert one.startswith("one: up, 1 of 3 slots, labels gpu, the broker says that it is gone, ver")
    assert two.startswith("two: down, version ")
    assert monitors.startswith("no monitor is running: ")
    first = json.loads((await say("nodes", "--journal", location, "--json"))[1].splitlines()[0])
    assert {key: first[key] for key in ("type", "name", "state", "busy", "labels", "attempts")} == {
        "type": "node",
        "name": "one",
        "state": "up",
        "busy": 1,
        "labels": ["gpu"],
        "attempts": [],
    }


@pytest.mark.parametrize(
    ("location", "first"),
    [("postgresql", "no node has joined yet: "), ("file", "no monitor is running: ")],
    indirect=["location"],
)
async def test_a_journal_without_nodes_says_so_where_one_could_join(
    say: Say, location: str, first: str
) -> None:
    await (await Journal.open(location)).close()
    assert (await say("nodes", "--journal", location))[1].startswith(first)
    assert (await say("nodes", "--journal", location, "--json"))[1] == ""
