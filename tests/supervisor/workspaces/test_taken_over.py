"""When files are saved, and what a worker is told whose attempt went on elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Change,
    Fault,
    Intervention,
    Lifecycle,
    Result,
    Step,
)
from midwatch_stage.factories import edit, step
from midwatch_stage.reading import records_of
from midwatch_supervisor.present.assignment import place_of
from midwatch_supervisor.workspaces.snapshot import fetch_snapshot, files_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore, SnapshotWriter
from midwatch_supervisor.workspaces.workspace import Workspace, WorkspacePlan
from midwatch_tools.tree import digest_of


class Node:
    """One node, with the attempt as it works on it."""

    def __init__(self, name: str, journal: Journal, home: Path, at: datetime) -> None:
        self.name = name
        self.journal = journal
        self.at = at
        settings = FleetSettings(save_seconds=0)
        self.snapshot_store = SnapshotStore(
            journal=journal, home=home, node=name, settings=settings
        )

    async def claim(self, attempt: Attempt) -> Recorder:
        return await Recorder.claim(
            journal=self.journal,
            bus=LocalBus(),
            attempt=attempt,
            settings=Settings(),
            holder=f"{self.name}:1",
            clock=lambda: self.at,
        )

    async def workspace(self, attempt: Attempt) -> Workspace:
        workspace = await self.snapshot_store.workspace(attempt, WorkspacePlan(source=None))
        assert workspace is not None
        return workspace


@pytest.fixture
def nodes(journal: Journal, tmp_path: Path, at: datetime) -> tuple[Node, Node]:
    return Node("a", journal, tmp_path / "a", at), Node("b", journal, tmp_path / "b", at)


@pytest.fixture
async def begun(
    nodes: tuple[Node, Node], attempt: Attempt
) -> tuple[Recorder, Workspace, SnapshotWriter]:
    """The attempt on the first node."""
    workspace = Workspace(folder=Path(attempt.workspace))
    workspace.folder.mkdir(parents=True)
    recorder = await nodes[0].claim(attempt)
    snapshot_writer = SnapshotWriter(nodes[0].snapshot_store, workspace)
    snapshot_writer.follow(recorder)
    await recorder.record(working_transition(), Change(node="a"))
    await act(recorder, workspace, "one")
    return recorder, workspace, snapshot_writer


Begun = tuple[Recorder, Workspace, SnapshotWriter]


async def act(recorder: Recorder, workspace: Workspace, text: str) -> None:
    """Write a file and record its step."""
    path = workspace.folder / f"{text}.txt"
    path.write_text(text)
    made = edit(path.name, digest_of(path))
    await recorder.record(step(0, "put", edits=(made,)), results=[Result(call=text, body=b"{}")])


async def told(journal: Journal) -> list[str]:
    return [each.message for each in await records_of(journal, Intervention)]


async def test_steps_of_the_node_before_until_the_attempt_is_taken_over_are_told(
    journal: Journal, nodes: tuple[Node, Node], attempt: Attempt, begun: Begun
) -> None:
    other = nodes[1]
    made = await other.workspace(attempt)
    for text in ("two", "three"):  # each is saved as well, after the files were made here
        await act(begun[0], begun[1], text)
    recorder = await other.claim(attempt)
    for _ in range(2):
        await other.snapshot_store.tell(attempt, made, incarnation=recorder.incarnation)
    (said,) = await told(journal)
    assert "three.txt, two.txt; look" in said


async def test_who_lost_the_attempt_again_tells_nothing(
    journal: Journal, nodes: tuple[Node, Node], attempt: Attempt, begun: Begun
) -> None:
    made = await nodes[1].workspace(attempt)
    await act(begun[0], begun[1], "two")
    recorder = await nodes[1].claim(attempt)
    await nodes[0].claim(attempt)
    with pytest.raises(StaleIncarnationError):
        await nodes[1].snapshot_store.tell(attempt, made, incarnation=recorder.incarnation)
    assert await told(journal) == []


async def test_a_node_that_died_before_it_told_does_so_when_it_is_back(
    journal: Journal, nodes: tuple[Node, Node], attempt: Attempt, begun: Begun, tmp_path: Path
) -> None:
    await nodes[1].workspace(attempt)
    await act(begun[0], begun[1], "two")
    await nodes[1].claim(attempt)
    again = Node("b", journal, tmp_path / "b", nodes[1].at)
    assert await again.snapshot_store.is_here(attempt)
    recorder, workspace = await again.claim(attempt), await again.workspace(attempt)
    await again.snapshot_store.tell(attempt, workspace, incarnation=recorder.incarnation)
    (said,) = await told(journal)
    assert "two.txt" in said


async def test_nothing_is_told_where_the_attempt_was_before(
    journal: Journal, nodes: tuple[Node, Node], attempt: Attempt, begun: Begun
) -> None:
    (begun[1].folder / "one.txt").unlink()
    recorder = await nodes[0].claim(attempt)
    await nodes[0].snapshot_store.tell(attempt, begun[1], incarnation=recorder.incarnation)
    assert await told(journal) == []


async def test_who_is_told_twice_to_leave_saves_first(
    journal: Journal, attempt: Attempt, begun: Begun
) -> None:
    _, workspace, snapshot_writer = begun
    (workspace.folder / "last.txt").write_text("last")
    leaving = asyncio.create_task(snapshot_writer.leave())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert len(await Bundles(journal).snapshots(attempt.id)) == 2


async def test_what_is_saved_while_the_files_are_made_elsewhere_is_made_instead(
    journal: Journal, attempt: Attempt, begun: Begun, tmp_path: Path
) -> None:
    bundles = Bundles(journal)
    (old,) = await bundles.snapshots(attempt.id)
    await act(begun[0], begun[1], "two")
    files = await files_of(Workspace(folder=tmp_path), tmp_path / "elsewhere.git")
    repository = files.git_dir
    brought = await fetch_snapshot(
        bundles, repository, attempt, old, place=place_of(begun[1].folder)
    )
    assert brought == (await bundles.snapshots(attempt.id))[-1] != old


@dataclass(kw_only=True)
class Bench:
    """An attempt in a plain folder, with a clock that the test winds."""

    journal: Journal
    recorder: Recorder
    snapshot_writer: SnapshotWriter
    folder: Path
    now: float = 0.0

    async def act(self, text: str) -> None:
        """Let a tool write a file, and record its step."""
        (self.folder / "out.txt").write_text(text)
        await self.recorder.record(step(0, "put"), results=[Result(call=text, body=b"{}")])

    async def saved(self) -> list[int]:
        """The last steps before each time that the files were saved."""
        found = await Bundles(self.journal).snapshots(self.recorder.attempt.id)
        return [each.step for each in found]


Claim = Callable[..., Awaitable[Recorder]]
Build = Callable[..., Awaitable[Bench]]


@pytest.fixture
def bench(journal: Journal, attempt: Attempt, claim: Claim, tmp_path: Path) -> Build:
    folder = Path(attempt.workspace)
    folder.mkdir(parents=True)

    async def build(**settings: float) -> Bench:
        store = SnapshotStore(
            journal=journal, home=tmp_path / "a", node="a", settings=FleetSettings(**settings)
        )
        made: list[Bench] = []
        writer = SnapshotWriter(
            store, Workspace(folder=folder), seconds=lambda: made[0].now if made else 0.0
        )
        recorder = await claim()
        bench = Bench(journal=journal, recorder=recorder, snapshot_writer=writer, folder=folder)
        made.append(bench)
        writer.follow(recorder)
        await recorder.record(working_transition())
        return bench

    return build


async def test_files_are_saved_before_a_result_and_between_two_saves_some_time_passes(
    bench: Build,
) -> None:
    built = await bench(save_seconds=10)
    for built.now, text in ((1, "one"), (10, "two"), (19, "three"), (20, "four")):
        await built.act(text)
    assert await built.saved() == [1, 3]


async def test_what_waits_is_saved_once_its_time_has_come(bench: Build) -> None:
    built = await bench(save_seconds=10)
    await built.act("one")
    for built.now in (9, 10, 30):
        if (saving := built.snapshot_writer.wake()) is not None:
            await saving
    assert await built.saved() == [1]


async def test_what_could_not_be_told_is_told_the_next_time(bench: Build, claim: Claim) -> None:
    built = await bench(save_seconds=0)
    built.folder.rmdir()
    built.folder.touch()
    theirs = await claim(of=built.recorder.attempt)
    with pytest.raises(StaleIncarnationError):
        await built.snapshot_writer.save()
    built.snapshot_writer.follow(theirs)
    await built.snapshot_writer.save()
    assert len(await records_of(built.journal, Fault)) == 1


@pytest.mark.parametrize("lifecycle", [Lifecycle.INPUT_REQUIRED, Lifecycle.COMPLETED])
async def test_a_park_and_an_end_save_whatever_the_time(bench: Build, lifecycle: Lifecycle) -> None:
    built = await bench(save_seconds=3600)
    await built.act("one")
    assert await built.saved() == []
    await built.recorder.record(AttemptTransition(lifecycle=lifecycle))
    assert await built.saved() == [1]


async def test_what_cannot_be_saved_is_told_once_and_breaks_nothing(bench: Build) -> None:
    built = await bench(save_seconds=0, max_bundle_mb=0.0001)
    for text in ("one", "two", "three"):
        await built.act(text)
    await built.recorder.record(AttemptTransition(lifecycle=Lifecycle.COMPLETED))
    error = "the work is larger than 0.0001 MB, so it cannot move"
    assert await records_of(built.journal, Fault) == [Fault(part="saving", error=error)]
    assert len(await records_of(built.journal, Step)) == 3


async def test_a_save_that_nobody_waits_for_any_more_is_brought_to_its_end(bench: Build) -> None:
    built = await bench(save_seconds=3600)
    await built.act("one")
    saving = asyncio.create_task(built.snapshot_writer.save())
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await built.snapshot_writer.leave()
    assert await built.saved() == [1]
