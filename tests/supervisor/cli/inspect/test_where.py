"""Where attempts are, and which nodes are lost: `midwatch status` and `show` in a fleet."""

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Change,
    Lifecycle,
    NodeState,
    Snapshot,
    SupervisedBy,
)
from midwatch_stage.command import ask, assignment, new_attempt, new_task, read, write
from midwatch_stage.factories import AT
from midwatch_stage.nodes import node

Capture = pytest.CaptureFixture[str]
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
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
    await write(journal, attempt, AT, WORKING)
    return attempt


async def test_in_a_fleet_the_node_of_each_attempt_is_named(
    moving: Attempt, capsys: Capture
) -> None:
    assert moving.node == "node-a"
    _, titles, row = await read(capsys, "status")
    assert (titles.split()[4], row.split()[4]) == ("node", "node-a")


async def test_how_an_attempt_fares_that_waits_for_a_person_on_a_lost_node_nobody_knows_either(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, AT, AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED))
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    line, *_ = await ask(capsys, "status")
    assert (line["health"], line["waits_for"]) == ("unknown", "a person")
    assert "  health unknown, last step 0" in await read(capsys, "show", "fix")


async def test_it_fares_as_it_does_once_another_node_goes_on(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await Nodes(journal).beat("node-a", "1", busy=0, state=NodeState.LOST)
    await write(journal, moving, AT, Change(node="node-b"))
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


async def test_show_tells_on_which_nodes_an_attempt_was_and_what_is_saved(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, AT, SAVED, Change(node="node-b"), Change(node="node-b"))
    lines = await read(capsys, "show", "fix")
    assert "  coder with m on node-a, then node-b, begun in /w" in lines
    saved = "the work as of step 12, 14 kB in the journal (commit 0123456789ab)"
    assert f"  saved: {saved}" in lines


async def test_show_tells_that_work_was_too_large_to_be_saved(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    large = replace(SAVED, step=13, size=0)
    await write(journal, moving, AT, SAVED, large)
    saved, unsaved = [each for each in await read(capsys, "show", "fix") if "saved" in each]
    assert saved.startswith("  saved: the work as of step 12, ")
    assert unsaved == (
        "  not saved: too large (fleet.max_bundle_mb): the work as of step 13 cannot move"
    )
    await write(journal, moving, AT, replace(SAVED, step=14))
    (again,) = [each for each in await read(capsys, "show", "fix") if "saved" in each]
    assert again.startswith("  saved: the work as of step 14, ")


async def test_what_is_saved_is_no_line_for_programs(
    journal: Journal, moving: Attempt, capsys: Capture
) -> None:
    await write(journal, moving, AT, SAVED, Change(node="node-b"))
    lines = await ask(capsys, "show", "fix")
    assert {line["type"] for line in lines} == {"task", "attempt"}


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
