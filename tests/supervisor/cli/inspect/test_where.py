"""Where attempts are, and which nodes are lost: `midwatch status` and `show` in a fleet."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Change,
    Commit,
    Draft,
    Keeper,
    Lifecycle,
    NodeState,
    Record,
    Snapshot,
)
from midwatch_stage.nodes import node
from midwatch_supervisor.cli import main

Capture = pytest.CaptureFixture[str]
AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
SAVED = Snapshot(commit="0123456789abcdef", messages=4, step=12, size=14_300)
NODE_A = node("node-a", slots=2, busy=1, began=AT)


async def midwatch(capsys: Capture, *argv: str) -> list[str]:
    capsys.readouterr()
    assert await asyncio.to_thread(main, argv) == 0
    return capsys.readouterr().out.splitlines()


async def write(journal: Journal, attempt: Attempt, *records: Record) -> None:
    drafts = tuple(
        Draft(record=record, at=AT, task=attempt.task, attempt=attempt.id) for record in records
    )
    await journal.commit(Commit(drafts=drafts))


@pytest.fixture
async def moving(journal: Journal, journal_file: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """An attempt at work on node-a of a fleet that has a node-b, too."""
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    run = await journal.add_run(source="t.yaml", settings="{}", at=AT, keeper=Keeper.MONITOR)
    task = await journal.add_task(run=run.id, name="fix", title="", spec="{}", at=AT)
    attempt = await journal.add_attempt(
        task=task.id, number=1, worker="coder", model="m", node="node-a", workspace="/w", at=AT
    )
    for each in (NODE_A, replace(NODE_A, name="node-b")):
        await Nodes(journal).enter(each, alive_seconds=15)
    await write(journal, attempt, WORKING)
    return attempt


async def test_in_a_fleet_the_node_of_each_attempt_is_named(
    moving: Attempt, capsys: Capture
) -> None:
    assert moving.node == "node-a"
    _, titles, row = await midwatch(capsys, "status")
    assert (titles.split()[4], row.split()[4]) == ("node", "node-a")


async def test_a_lost_node_is_listed_and_nobody_knows_how_its_attempt_fares(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    assert moving.node == "node-a"
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    _, _, row, lost = await midwatch(capsys, "status")
    assert row.split()[3:6] == ["unknown", "node-a", "(lost)"]
    assert lost.startswith("node node-a is lost: last heard ")
    (line,) = [json.loads(each) for each in await midwatch(capsys, "status", "--json")]
    assert (line["health"], line["node"], line["node_state"]) == ("unknown", "node-a", "lost")


async def test_how_an_attempt_fares_that_waits_for_a_person_on_a_lost_node_nobody_knows_either(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED))
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    (line,) = [json.loads(each) for each in await midwatch(capsys, "status", "--json")]
    assert (line["health"], line["waits_for"]) == ("unknown", "a person")
    assert "  health unknown, last step 0" in await midwatch(capsys, "show", "fix")


async def test_it_fares_as_it_does_once_another_node_goes_on(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    await write(journal, moving, Change(node="node-b"))
    (line,) = [json.loads(each) for each in await midwatch(capsys, "status", "--json")]
    assert (line["health"], line["node"], line["node_state"]) == ("ok", "node-b", "up")


async def test_show_tells_on_which_nodes_an_attempt_was_and_what_is_saved(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, SAVED, Change(node="node-b"), Change(node="node-b"))
    lines = await midwatch(capsys, "show", "fix")
    assert "  coder with m on node-a, then node-b, begun in /w" in lines
    saved = "the work as of step 12, 14 kB in the journal (commit 0123456789ab)"
    assert f"  saved: {saved}" in lines


async def test_what_is_saved_is_no_line_for_programs(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, SAVED, Change(node="node-b"))
    lines = [json.loads(each) for each in await midwatch(capsys, "show", "fix", "--json")]
    assert {line["type"] for line in lines} == {"task", "attempt"}
