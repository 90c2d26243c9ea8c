"""Leases of monitors: one holder at a time, by the database's clock, among any processes."""

import asyncio
from datetime import datetime, timedelta

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.records import Attempt, Hint, Record, SupervisedBy
from midwatch_tests.factories import WHOSE, commit, ended, feedback, transition
from midwatch_tests.matrix import DATABASES

BOTH = pytest.mark.parametrize("location", DATABASES, indirect=True)
OVER = ended()


async def begin(
    journal: Journal,
    at: datetime,
    *,
    supervised_by: SupervisedBy = SupervisedBy.MONITOR,
    spec: str = "{}",
) -> Attempt:
    run = await journal.add_run(
        source="embedded", settings="{}", at=at, supervised_by=supervised_by
    )
    task = await journal.add_task(run=run.id, name="fix", title="Fix it", spec=spec, at=at)
    return await journal.add_attempt(task=task.id, number=1, at=at, **WHOSE)


async def write_record(journal: Journal, of: Attempt, record: Record) -> int:
    (entry,) = await journal.commit(commit(of, record))
    return entry.id


@BOTH
async def test_an_attempt_has_one_holder_until_a_release(journal: Journal, at: datetime) -> None:
    leases = MonitorLeases(journal)
    one, two, three = [(await begin(journal, at)).id for _ in range(3)]
    assert await leases.take([one, two, 999], holder="a", seconds=60) == {one: 1, two: 1}
    assert await leases.take([one, two, three], holder="b", seconds=60) == {three: 1}
    assert await leases.take([one, two, three], holder="a", seconds=60) == {one: 1, two: 1}
    await leases.release(holder="b")
    assert await leases.take([one, two], holder="b", seconds=60) == {}
    await leases.release(holder="a")
    assert await leases.take([one, two], holder="b", seconds=60) == {one: 2, two: 2}


@BOTH
async def test_a_lease_that_ran_out_stays_until_it_is_taken(journal: Journal, at: datetime) -> None:
    leases = MonitorLeases(journal)
    late, runs, new = [(await begin(journal, at)).id for _ in range(3)]
    await leases.take([runs], holder="a", seconds=60)
    for _ in range(2):
        assert await leases.take([late], holder="a", seconds=0) == {late: 1}
    assert await leases.run_out([late, runs, new]) == {late}
    assert await leases.take([late], holder="b", seconds=60) == {late: 2}
    assert await leases.take([late], holder="a", seconds=60) == {}


@BOTH
async def test_of_many_takers_each_has_one(journal: Journal, location: str, at: datetime) -> None:
    ids = [(await begin(journal, at)).id for _ in range(20)]
    async with await Journal.open(location) as other:
        takers = [
            MonitorLeases(opened).take(ids[first:], holder=f"{first}", seconds=60)
            for opened in (journal, other)
            for first in range(5)
        ]
        taken = await asyncio.gather(*takers)
    # The same name twice is one holder, who may take the same twice.
    holders = [{id for each in (taken[n], taken[n + 5]) for id in each} for n in range(5)]
    assert sorted(id for held in holders for id in held) == ids


@pytest.mark.parametrize("location", ["postgresql"], indirect=True)
async def test_a_server_has_its_own_clock(journal: Journal, attempt: Attempt, at: datetime) -> None:
    fast = MonitorLeases(journal, clock=lambda: at + timedelta(days=10_000))
    slow = MonitorLeases(journal, clock=lambda: at - timedelta(days=10_000))
    assert await slow.take([attempt.id], holder="slow", seconds=60) == {attempt.id: 1}
    assert await fast.take([attempt.id], holder="fast", seconds=60) == {}


async def test_a_file_has_a_given_clock(journal: Journal, attempt: Attempt, at: datetime) -> None:
    now, later = (
        MonitorLeases(journal, clock=lambda s=s: at + timedelta(seconds=s)) for s in (0, 60)
    )
    assert await now.take([attempt.id], holder="a", seconds=60) == {attempt.id: 1}
    assert await now.take([attempt.id], holder="b", seconds=60) == {}
    assert await later.take([attempt.id], holder="b", seconds=60) == {attempt.id: 2}


@BOTH
async def test_a_post_has_one_holder(journal: Journal) -> None:
    monitor_leases = MonitorLeases(journal)
    assert await monitor_leases.take_post("learner", holder="a", seconds=60) == 1
    assert await monitor_leases.take_post("dispatch", holder="b", seconds=60) == 1
    assert await monitor_leases.take_post("learner", holder="b", seconds=60) is None
    assert await monitor_leases.take_post("learner", holder="a", seconds=60) == 1
    await monitor_leases.release_post("learner", holder="b")
    assert await monitor_leases.take_post("learner", holder="b", seconds=60) is None
    await monitor_leases.release_post("learner", holder="a")
    assert await monitor_leases.take_post("learner", holder="b", seconds=60) == 2


@BOTH
async def test_unfinished_is_what_nobody_watched_to_its_end(journal: Journal, at: datetime) -> None:
    monitor_leases = MonitorLeases(journal)
    works, ended, unjudged, judged = [await begin(journal, at) for _ in range(4)]
    await begin(journal, at, supervised_by=SupervisedBy.PROCESS)
    for each in (ended, unjudged, judged):
        await write_record(journal, each, OVER)
    await monitor_leases.take([unjudged.id, judged.id], holder="a", seconds=60)
    await monitor_leases.finish([judged.id, unjudged.id], holder="b")
    await monitor_leases.finish([judged.id], holder="a")
    assert await monitor_leases.unfinished(since=at) == [works.task, unjudged.task]
    fleet = await begin(journal, at, spec='{"task": 1}')
    # Only an attempt without a runner is left alone after a time.
    later = at + timedelta(seconds=1)
    assert await monitor_leases.unfinished(since=later) == [fleet.task]


@BOTH
async def test_news_is_the_newest_of_each_kind_and_no_more(journal: Journal, at: datetime) -> None:
    mine, other = (
        await begin(journal, at),
        await begin(journal, at, supervised_by=SupervisedBy.PROCESS),
    )
    before = await MonitorLeases(journal).news(0)
    await write_record(journal, mine, transition())
    newest = await write_record(journal, mine, transition())
    last = await write_record(journal, mine, feedback())
    await write_record(journal, other, feedback())
    news = await MonitorLeases(journal).news(before.last)
    assert news.last == await journal.last_id()
    assert news.hints == {
        mine.task: (
            Hint(entry=newest, kind="attempt_state", task=mine.task, attempt=mine.id),
            Hint(entry=last, kind="feedback", task=mine.task, attempt=mine.id),
        )
    }
    assert (await MonitorLeases(journal).news(news.last)).hints == {}
