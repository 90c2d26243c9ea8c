"""Which runs have tasks to be handed out, followed from the journal; on both databases."""

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.submission import NewTask, moves, submit
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Commit, Draft, Lifecycle, Run, SupervisedBy, TaskTransition
from midwatch_stage.factories import AT
from midwatch_stage.matrix import DATABASES
from midwatch_supervisor.fleet.queue.dispatch import UnfinishedRuns

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)


@pytest.fixture
def unfinished_runs(journal: Journal) -> UnfinishedRuns:
    return UnfinishedRuns(journal)


SPEC = '{"of": "a fleet"}'


async def stored(journal: Journal, *names: str, spec: str = SPEC) -> Run:
    tasks = [NewTask(name=name, title="", spec=spec, project="p") for name in names]
    run, _ = await journal.write(submit, tasks, source="", settings="", at=AT)
    return run


async def become(journal: Journal, task: int, lifecycle: Lifecycle) -> None:
    draft = Draft(record=TaskTransition(lifecycle=lifecycle), at=AT, task=task)
    await journal.commit(Commit(drafts=(draft,)))


async def test_a_run_is_open_until_its_last_task_is_over(
    journal: Journal, unfinished_runs: UnfinishedRuns
) -> None:
    assert await unfinished_runs.open() == []
    first, second = await stored(journal, "a", "b"), await stored(journal, "a")
    assert await unfinished_runs.open() == [first, second]
    await become(journal, 1, Lifecycle.COMPLETED)
    await become(journal, 2, Lifecycle.WORKING)
    assert await unfinished_runs.open() == [first, second]
    await become(journal, 2, Lifecycle.FAILED)
    assert await unfinished_runs.open() == await UnfinishedRuns(journal).open() == [second]


async def test_what_came_by_itself_and_what_a_process_keeps_is_never_open(
    journal: Journal, unfinished_runs: UnfinishedRuns
) -> None:
    await stored(journal, "a", spec="{}")
    run = await journal.add_run(source="", settings="", at=AT, supervised_by=SupervisedBy.PROCESS)
    await journal.add_task(run=run.id, name="a", title="", spec=SPEC, at=AT)
    assert await unfinished_runs.open() == []


async def test_a_look_reads_what_is_new_alone(journal: Journal) -> None:
    await stored(journal, "a", "b")
    first = await journal.read(moves, 0, 0)
    assert (first.open, first.over, first.afresh) == ({1: 1, 2: 1}, frozenset(), False)
    await become(journal, 2, Lifecycle.CANCELED)
    second = await journal.read(moves, first.last, first.erasure)
    assert (second.open, second.over) == ({}, {2})
    third = await journal.read(moves, second.last, second.erasure)
    assert (third.open, third.over, third.last) == ({}, frozenset(), second.last)


async def test_what_was_erased_is_not_open_any_more(
    journal: Journal, unfinished_runs: UnfinishedRuns
) -> None:
    run = await stored(journal, "a")
    assert await unfinished_runs.open() == [run]
    with pytest.raises(UsageError):
        await Learned(journal).forget("q", author="ada", at=AT)
    assert await unfinished_runs.open() == [run]
    await Learned(journal).forget("p", author="ada", at=AT)
    assert await unfinished_runs.open() == []
