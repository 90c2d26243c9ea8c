"""When files are saved, and what a worker is told whose attempt went on elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
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
from midwatch_supervisor.present.assignment import place_of
from midwatch_supervisor.workspaces.snapshot import fetch_snapshot, files_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore, SnapshotWriter
from midwatch_supervisor.workspaces.workspace import Workspace, WorkspacePlan
from midwatch_tests.factories import edit, step
from midwatch_tests.reading import records_of
from midwatch_tools.tree import digest_of


class Node:
    """One node, with the attempt as it works on it and a clock that the test winds."""

    def __init__(
        self, name: str, journal: Journal, attempt: Attempt, home: Path, settings: FleetSettings
    ) -> None:
        self.name = name
        self.journal = journal
        self.attempt = attempt
        self.now = 0.0
        self.folder = Path(attempt.workspace)
        self.store = SnapshotStore(journal=journal, home=home, node=name, settings=settings)
        workspace = Workspace(folder=self.folder)
        self.writer = SnapshotWriter(self.store, workspace, seconds=lambda: self.now)

    async def claim(self) -> Recorder:
        at: datetime = self.attempt.started_at
        return await Recorder.claim(
            journal=self.journal,
            bus=LocalBus(),
            attempt=self.attempt,
            settings=Settings(),
            holder=f"{self.name}:1",
            clock=lambda: at,
        )

    async def begin(self) -> None:
        self.recorder = await self.claim()
        self.writer.follow(self.recorder)
        await self.recorder.record(working_transition(), Change(node=self.name))

    async def act(self, text: str) -> None:
        """Let a tool write a file, and record its step."""
        path = self.folder / f"{text}.txt"
        path.write_text(text)
        made = edit(path.name, digest_of(path))
        result = Result(call=text, body=b"{}")
        await self.recorder.record(step(0, "put", edits=(made,)), results=[result])

    async def resume(self) -> Workspace:
        found = await self.store.workspace(self.attempt, WorkspacePlan(source=None))
        assert found is not None
        return found

    async def tell(self, workspace: Workspace, recorder: Recorder) -> list[str]:
        """Tell the worker what it has to be told; all that it was told ever."""
        await self.store.tell(self.attempt, workspace, incarnation=recorder.incarnation)
        return await self.interventions()

    async def interventions(self) -> list[str]:
        return [each.message for each in await records_of(self.journal, Intervention)]

    async def saved_steps(self) -> list[int]:
        """The last steps before each time that the files were saved."""
        return [each.step for each in await Bundles(self.journal).snapshots(self.attempt.id)]


Build = Callable[..., Awaitable[Node]]


@pytest.fixture
def build(journal: Journal, attempt: Attempt, tmp_path: Path) -> Build:
    """Makes a node; the first one has begun."""
    folder = Path(attempt.workspace)
    folder.mkdir(parents=True)

    async def make(name: str = "a", **settings: float) -> Node:
        given = FleetSettings.model_validate({"save_seconds": 0, **settings})
        made = Node(name, journal, attempt, tmp_path / name, given)
        if name == "a":
            await made.begin()
        return made

    return make


@pytest.fixture
async def nodes(build: Build) -> tuple[Node, Node]:
    """Two, the first of which has written a file."""
    a = await build()
    await a.act("one")
    return a, await build("b")


Nodes = tuple[Node, Node]


async def test_steps_of_the_node_before_until_the_attempt_is_taken_over_are_told(
    nodes: Nodes,
) -> None:
    a, b = nodes
    made = await b.resume()
    for text in ("two", "three"):  # each is saved as well, after the files were made here
        await a.act(text)
    recorder = await b.claim()
    await b.tell(made, recorder)
    (said,) = await b.tell(made, recorder)
    assert "three.txt, two.txt; look" in said


async def test_who_lost_the_attempt_again_tells_nothing(nodes: Nodes) -> None:
    a, b = nodes
    made = await b.resume()
    await a.act("two")
    recorder = await b.claim()
    await a.claim()
    with pytest.raises(StaleIncarnationError):
        await b.tell(made, recorder)
    assert await b.interventions() == []
    with pytest.raises(StaleIncarnationError):
        await a.act("late")
    assert await a.saved_steps() == [0, 1]


async def test_a_node_that_died_before_it_told_does_so_when_it_is_back(
    nodes: Nodes, build: Build
) -> None:
    a, b = nodes
    await b.resume()
    await a.act("two")
    await b.claim()
    again = await build("b")
    assert await again.store.is_here(again.attempt)
    recorder = await again.claim()
    (said,) = await again.tell(await again.resume(), recorder)
    assert "two.txt" in said


async def test_nothing_is_told_where_the_attempt_was_before(nodes: Nodes) -> None:
    a, _ = nodes
    (a.folder / "one.txt").unlink()
    assert await a.tell(Workspace(folder=a.folder), await a.claim()) == []


async def test_who_is_told_twice_to_leave_saves_first(nodes: Nodes) -> None:
    a, _ = nodes
    (a.folder / "last.txt").write_text("last")
    leaving = asyncio.create_task(a.writer.leave())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert len(await a.saved_steps()) == 2


async def test_what_is_saved_while_the_files_are_made_elsewhere_is_made_instead(
    nodes: Nodes, tmp_path: Path
) -> None:
    a, _ = nodes
    bundles = Bundles(a.journal)
    (old,) = await bundles.snapshots(a.attempt.id)
    await a.act("two")
    files = await files_of(Workspace(folder=tmp_path), tmp_path / "elsewhere.git")
    place = place_of(a.folder)
    brought = await fetch_snapshot(bundles, files.git_dir, a.attempt, old, place=place)
    assert brought == (await bundles.snapshots(a.attempt.id))[-1] != old


async def test_files_are_saved_before_a_result_and_between_two_saves_some_time_passes(
    build: Build,
) -> None:
    a = await build(save_seconds=10)
    for a.now, text in ((1, "one"), (10, "two"), (19, "three"), (20, "four")):
        await a.act(text)
    assert await a.saved_steps() == [1, 3]


async def test_what_waits_is_saved_once_its_time_has_come(build: Build) -> None:
    a = await build(save_seconds=10)
    await a.act("one")
    for a.now in (9, 10, 30):
        if (saving := a.writer.wake()) is not None:
            await saving
    assert await a.saved_steps() == [1]


async def test_what_could_not_be_told_is_told_the_next_time(build: Build) -> None:
    a = await build()
    a.folder.rmdir()
    a.folder.touch()
    theirs = await a.claim()
    with pytest.raises(StaleIncarnationError):
        await a.writer.save()
    a.writer.follow(theirs)
    await a.writer.save()
    assert len(await records_of(a.journal, Fault)) == 1


@pytest.mark.parametrize("lifecycle", [Lifecycle.INPUT_REQUIRED, Lifecycle.COMPLETED])
async def test_a_park_and_an_end_save_whatever_the_time(build: Build, lifecycle: Lifecycle) -> None:
    a = await build(save_seconds=3600)
    await a.act("one")
    assert await a.saved_steps() == []
    await a.recorder.record(AttemptTransition(lifecycle=lifecycle))
    assert await a.saved_steps() == [1]


async def test_what_cannot_be_saved_is_told_once_and_breaks_nothing(build: Build) -> None:
    a = await build(max_bundle_mb=0.0001)
    for text in ("one", "two", "three"):
        await a.act(text)
    await a.recorder.record(AttemptTransition(lifecycle=Lifecycle.COMPLETED))
    error = "the work is larger than 0.0001 MB, so it cannot move"
    assert await records_of(a.journal, Fault) == [Fault(part="saving", error=error)]
    assert len(await records_of(a.journal, Step)) == 3


async def test_a_save_that_nobody_waits_for_any_more_is_brought_to_its_end(build: Build) -> None:
    a = await build(save_seconds=3600)
    await a.act("one")
    saving = asyncio.create_task(a.writer.save())
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await a.writer.leave()
    assert await a.saved_steps() == [1]
