"""A run that is handed over under a key is there once, however often it is handed over."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Run
from midwatch_supervisor.fleet.queue.submission import check_key, digest, submit
from midwatch_supervisor.present.assignment import Assignment, assignments
from midwatch_tests.matrix import DATABASES

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)

both = pytest.mark.parametrize("location", DATABASES, indirect=True)


def make_assignments(goal: str = "g", **more: object) -> tuple[Assignment, ...]:
    raw = [{"id": "a", "goal": goal, "acceptance": ["true"], **more}]
    return assignments(TaskFile.model_validate({"tasks": raw}), Path("/"))


async def hand_over(
    journal: Journal,
    tasks: tuple[Assignment, ...],
    key: str | None = "night-1",
    fleet: str = "midwatch",
) -> tuple[Run, bool]:
    settings = Settings(fleet=FleetSettings(name=fleet))
    return await submit(
        journal, tasks, key=key, source="t.yaml", settings=settings, clock=lambda: AT
    )


@both
async def test_two_at_the_same_moment_store_one_run(journal: Journal, location: str) -> None:
    async with await Journal.open(location) as other:
        found = await asyncio.gather(
            *(hand_over(each, make_assignments()) for each in 5 * [journal, other])
        )
    assert sorted(already for _, already in found) == [False, *9 * [True]]
    assert {run.id for run, _ in found} == {run.id for run in await journal.runs()} == {1}


@both
async def test_the_same_key_is_the_same_run_and_with_other_tasks_refused(journal: Journal) -> None:
    run, _ = await hand_over(journal, make_assignments())
    assert await hand_over(journal, make_assignments()) == (run, True)
    with pytest.raises(UsageError, match=r"the key night-1 belongs to run 1, .* other tasks"):
        await hand_over(journal, make_assignments("another goal"))
    assert await journal.runs() == [run]
    assert len(await journal.tasks(run.id)) == 1


@pytest.mark.parametrize(
    ("key", "fleet"), [("night-2", "midwatch"), ("night-1", "other"), (None, "midwatch")]
)
async def test_another_key_another_fleet_and_no_key_have_a_run_of_their_own(
    journal: Journal, key: str | None, fleet: str
) -> None:
    await hand_over(journal, make_assignments(), key and "night-1")
    assert (await hand_over(journal, make_assignments(), key, fleet))[0].id == 2


async def test_what_is_there_is_found_without_its_folder(journal: Journal, tmp_path: Path) -> None:
    (gone,) = make_assignments(workspace=(tmp_path / "gone.git").as_uri())
    await hand_over(journal, (gone.model_copy(update={"base": 40 * "a"}),))
    assert (await hand_over(journal, (gone,)))[1]
    with pytest.raises(WorkspaceError):
        await hand_over(journal, (gone,), "night-2")


async def test_a_forgotten_run_leaves_its_key_free(journal: Journal) -> None:
    tasks = make_assignments(project="shop")
    await hand_over(journal, tasks)
    await Learned(journal).forget("shop", author="ada", at=AT)
    run, already = await hand_over(journal, tasks)
    assert (run.id, already) == (2, False)


def test_a_digest_tells_other_tasks_and_not_other_commits() -> None:
    (one,) = make_assignments()
    assert digest([one]) == digest([one.model_copy(update={"base": 40 * "a"})])
    assert digest([one]) != digest(make_assignments("another goal"))
    assert digest([one]) != digest([one, one])


@pytest.mark.parametrize("key", ["", " a", "a ", "a\nb", 201 * "a"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="a key has 1 to 200 characters"):
        check_key(key)
