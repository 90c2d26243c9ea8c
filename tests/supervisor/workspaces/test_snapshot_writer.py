"""When the files of an attempt are saved, while it is worked on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Fault,
    Lifecycle,
    Record,
    Result,
    Step,
    StepKind,
)
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.snapshot_writer import SnapshotWriter
from midwatch_supervisor.workspaces.workspace import Workspace


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
        step = Step(number=0, kind=StepKind.TOOL, tool="put")
        result = Result(call=text, body=b"{}")
        await self.recorder.record(step, results=[result])

    async def saved(self) -> list[int]:
        """The last steps before each time that the files were saved."""
        found = await Bundles(self.journal).snapshots(self.recorder.attempt.id)
        return [each.step for each in found]

    async def told(self, kind: type[Record]) -> list[Record]:
        return [each.record for each in await self.journal.entries(kinds=(kind,))]


@pytest.fixture
def bench(
    journal: Journal,
    attempt: Attempt,
    claim: Callable[..., Awaitable[Recorder]],
    tmp_path: Path,
) -> Callable[[FleetSettings], Awaitable[Bench]]:
    folder = Path(attempt.workspace)
    folder.mkdir(parents=True)

    async def build(settings: FleetSettings) -> Bench:
        recorder = await claim()
        snapshot_store = SnapshotStore(
            journal=journal, home=tmp_path / "a", node="a", settings=settings
        )
        workspace = Workspace(folder=folder)
        made: list[Bench] = []
        snapshot_writer = SnapshotWriter(
            snapshot_store, workspace, seconds=lambda: made[0].now if made else 0.0
        )
        made.append(
            Bench(
                journal=journal, recorder=recorder, snapshot_writer=snapshot_writer, folder=folder
            )
        )
        snapshot_writer.follow(recorder)
        await recorder.record(working_transition())
        return made[0]

    return build


Build = Callable[[FleetSettings], Awaitable[Bench]]


async def test_files_are_saved_before_a_result_is_recorded(bench: Build) -> None:
    built = await bench(FleetSettings(save_seconds=0))
    for text in ("one", "two"):
        await built.act(text)
    assert await built.saved() == [0, 1]


async def test_between_two_saves_some_time_passes(bench: Build) -> None:
    built = await bench(FleetSettings(save_seconds=10))
    for built.now, text in ((1, "one"), (10, "two"), (19, "three"), (20, "four")):
        await built.act(text)
    assert await built.saved() == [1, 3]


async def test_what_waits_is_saved_once_its_time_has_come(bench: Build) -> None:
    built = await bench(FleetSettings(save_seconds=10))
    await built.act("one")
    for built.now in (9, 10, 30):
        if (saving := built.snapshot_writer.wake()) is not None:
            await saving
    assert await built.saved() == [1]


async def test_what_could_not_be_told_is_told_the_next_time(
    bench: Build, claim: Callable[..., Awaitable[Recorder]]
) -> None:
    built = await bench(FleetSettings(save_seconds=0))
    built.folder.rmdir()
    built.folder.touch()
    theirs = await claim(of=built.recorder.attempt)
    with pytest.raises(StaleIncarnationError):
        await built.snapshot_writer.save()
    built.snapshot_writer.follow(theirs)
    await built.snapshot_writer.save()
    assert len(await built.told(Fault)) == 1


@pytest.mark.parametrize("lifecycle", [Lifecycle.INPUT_REQUIRED, Lifecycle.COMPLETED])
async def test_a_park_and_an_end_save_whatever_the_time(bench: Build, lifecycle: Lifecycle) -> None:
    built = await bench(FleetSettings(save_seconds=3600))
    await built.act("one")
    assert await built.saved() == []
    await built.recorder.record(AttemptTransition(lifecycle=lifecycle))
    assert await built.saved() == [1]


async def test_what_cannot_be_saved_is_told_once_and_breaks_nothing(bench: Build) -> None:
    built = await bench(FleetSettings(save_seconds=0, max_bundle_mb=0.0001))
    for text in ("one", "two", "three"):
        await built.act(text)
    await built.recorder.record(AttemptTransition(lifecycle=Lifecycle.COMPLETED))
    error = "the work is larger than 0.0001 MB, so it cannot move"
    assert await built.told(Fault) == [Fault(part="saving", error=error)]
    assert len(await built.told(Step)) == 3


async def test_a_node_that_lost_the_attempt_hears_of_it(
    bench: Build, claim: Callable[..., Awaitable[Recorder]]
) -> None:
    built = await bench(FleetSettings(save_seconds=0))
    await claim()
    with pytest.raises(StaleIncarnationError):
        await built.act("late")
    assert await built.saved() == []


async def test_a_save_that_nobody_waits_for_any_more_is_brought_to_its_end(bench: Build) -> None:
    built = await bench(FleetSettings(save_seconds=3600))
    await built.act("one")
    saving = asyncio.create_task(built.snapshot_writer.save())
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await built.snapshot_writer.leave()
    assert await built.saved() == [1]


async def test_without_a_store_nothing_is_saved(
    claim: Callable[..., Awaitable[Recorder]], tmp_path: Path
) -> None:
    recorder = await claim()
    snapshot_writer = SnapshotWriter(None, Workspace(folder=tmp_path))
    snapshot_writer.follow(recorder)
    await snapshot_writer.leave()
    assert recorder.before is None
