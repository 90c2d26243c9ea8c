"""Commits that come together are written together, and what becomes of each is its own affair."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Event

import pytest
from sqlalchemy import Connection, select

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_tests.factories import WHOSE, commit, message, transition
from midwatch_tests.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)


Settled = list[tuple[r.Entry, ...] | BaseException]


async def commit_all(journal: Journal, commits: Sequence[r.Commit]) -> Settled:
    return await asyncio.gather(*map(journal.commit, commits), return_exceptions=True)


async def commit_together(journal: Journal, commits: Sequence[r.Commit]) -> tuple[Settled, int]:
    """What becomes of commits that all wait when the writer comes, and in how many transactions."""
    begun, go = Event(), Event()

    def hold(_: Connection) -> None:
        begun.set()
        go.wait(60)

    before = journal.transactions + 1
    holding = asyncio.create_task(journal.write(hold))
    await asyncio.to_thread(begun.wait, 10)
    asked = asyncio.create_task(commit_all(journal, commits))
    for _ in range(3):  # it begins, so do those who commit, and all of them have asked
        await asyncio.sleep(0)
    go.set()
    await holding
    return await asked, journal.transactions - before


async def test_many_records_of_one_commit_keep_their_order(
    journal: Journal, attempt: r.Attempt
) -> None:
    records: list[r.Record] = [message(number) for number in range(1, 258)]
    for place in (3, 4, 100):
        records.insert(place, transition())
    entries = await journal.commit(commit(attempt, *records, seq=1))
    assert [each.record for each in entries] == records
    assert [each.id for each in entries] == list(range(entries[0].id, entries[0].id + 260))
    assert await journal.entries(entries[0].id - 1, limit=1000) == list(entries)
    assert await journal.last_id() == entries[-1].id


async def test_commits_at_once_are_one_transaction_of_many(
    journal: Journal, attempt: r.Attempt
) -> None:
    commits = [commit(attempt, message(n), message(n + 1), seq=n) for n in range(1, 101, 2)]
    outcomes, transactions = await commit_together(journal, commits)
    assert transactions == 1
    assert outcomes == [
        tuple(await journal.entries(id_, kinds=[r.Step], limit=2)) for id_ in range(2, 102, 2)
    ]


HISTORY = (r.Message(index=0, body=b"1"),)


async def test_a_refused_commit_harms_none_beside_it(journal: Journal, attempt: r.Attempt) -> None:
    naive = r.Draft(
        record=message(9), at=attempt.started_at.replace(tzinfo=None), task=attempt.task
    )
    nowhere = r.Draft(record=message(9), at=attempt.started_at, task=99)
    commits = [
        commit(attempt, message(1), seq=1),
        commit(attempt, message(9), message(9), seq=1),
        r.Commit(drafts=(nowhere,)),
        r.Commit(drafts=(naive,)),
        r.Commit(attempt=attempt.id, incarnation=7),
        commit(attempt, message(2), seq=2, messages=HISTORY),
        r.Commit(attempt=attempt.id, messages=(*HISTORY, r.Message(index=1, body=b"2"))),
        r.Commit(),
    ]
    outcomes = await commit_all(journal, commits)
    kinds = [type(each) for each in outcomes]
    stale = StaleIncarnationError
    assert kinds == [tuple, stale, JournalError, JournalError, stale, tuple, stale, tuple]
    assert await journal.messages(attempt.id) == list(HISTORY)
    assert "already written this part of attempt 1" in str(outcomes[1])
    assert [each.record for each in await journal.entries(kinds=[r.Step])] == [
        message(1),
        message(2),
    ]


async def test_a_bad_commit_costs_few_transactions(journal: Journal, attempt: r.Attempt) -> None:
    commits = [commit(attempt, message(n), seq=n) for n in range(1, 129)]
    commits[77] = commit(attempt, message(1), seq=1)
    outcomes, transactions = await commit_together(journal, commits)
    assert [type(each) for each in outcomes].count(StaleIncarnationError) == 1
    assert transactions == 7  # halves of 64, 32, 16 … and 1 beside the bad one
    stored = [each.record for each in await journal.entries(kinds=[r.Step])]
    assert stored == [each.drafts[0].record for n, each in enumerate(commits) if n != 77]


async def test_a_commit_sees_what_those_before_it_did(journal: Journal, attempt: r.Attempt) -> None:
    over = commit(attempt, transition(r.Lifecycle.CANCELED))
    late = commit(attempt, transition(r.Lifecycle.COMPLETED))
    first, second = await commit_all(journal, [over, late])
    assert isinstance(first, tuple)
    assert isinstance(second, StaleIncarnationError)


async def test_what_is_submitted_between_commits_is_written_between_them(
    journal: Journal, attempt: r.Attempt, at: datetime
) -> None:
    async def task() -> r.Task:
        return await journal.add_task(run=1, name="other", title="", spec="", at=at)

    first, added, second = await asyncio.gather(
        journal.commit(commit(attempt, message(1))),
        task(),
        journal.commit(commit(attempt, message(2))),
    )
    (submitted,) = await journal.entries(task=added.id)
    assert first[0].id < submitted.id < second[0].id


@pytest.mark.parametrize("cancelled", [(1,), (0, 1, 2)], ids=["one", "all"])
async def test_commits_that_nobody_waits_for_any_more_are_written_all_the_same_and_harm_no_other(
    journal: Journal, attempt: r.Attempt, cancelled: tuple[int, ...]
) -> None:
    tasks = [asyncio.create_task(journal.commit(commit(attempt, message(n)))) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    for n in cancelled:
        tasks[n].cancel()
    await asyncio.wait(tasks)
    assert [n for n, task in enumerate(tasks) if task.cancelled()] == [*cancelled]
    await journal.commit(commit(attempt, message(4)))
    stored = await journal.entries(kinds=[r.Step])
    assert [each.record for each in stored] == [message(n) for n in (1, 2, 3, 4)]


async def test_a_moment_is_stored_the_same_by_anyone(journal: Journal, attempt: r.Attempt) -> None:
    await journal.commit(commit(attempt, message(1), message(2)))

    def moments(connection: Connection) -> list[datetime]:
        same = select(tables.entry.c.at).where(tables.entry.c.at == attempt.started_at)
        return list(connection.execute(same).scalars())

    assert await journal.read(moments) == [attempt.started_at] * 4


# -- leases and guards are looked up together ---------------------------------------------------


@pytest.fixture
async def attempts(journal: Journal, attempt: r.Attempt) -> list[r.Attempt]:
    """Attempts at one task, each claimed for the second time."""
    task, at = attempt.task, attempt.started_at
    more = [
        await journal.add_attempt(task=task, number=number, at=at, **WHOSE) for number in (2, 3)
    ]
    for each in [attempt, *more] * 2:
        await journal.claim(each.id, holder="it", at=at)
    return [attempt, *more]


def make_commit(attempt: r.Attempt, **held: int) -> r.Commit:
    return commit(attempt, message(), **held)


async def commit_results(journal: Journal, commits: Sequence[r.Commit]) -> list[str]:
    """What became of each: which attempt it wrote of, or why it is refused."""
    return [
        str(each) if isinstance(each, BaseException) else f"wrote {each[0].attempt}"
        for each in await commit_all(journal, commits)
    ]


async def test_each_commit_needs_its_own_lease_and_guard(
    journal: Journal, attempts: list[r.Attempt]
) -> None:
    one, two, three = attempts
    leases = MonitorLeases(journal, clock=lambda: datetime.now(UTC))
    await leases.take([one.id, two.id], holder="it", seconds=60)
    given = [
        make_commit(one, incarnation=2, guard=1),
        make_commit(two, incarnation=1),
        make_commit(one, incarnation=1, guard=2),
        make_commit(three, incarnation=3),
        make_commit(two, incarnation=2),
        make_commit(two, guard=2),
        make_commit(three, guard=1),
    ]
    process, monitor = ": another process has taken it over", ": another monitor has taken it over"
    assert await commit_results(journal, given) == [
        f"wrote {one.id}",
        f"attempt {two.id} is at incarnation 2, not 1{process}",
        f"attempt {one.id} is at incarnation 2, not 1{process}",
        f"attempt {three.id} is at incarnation 2, not 3{process}",
        f"wrote {two.id}",
        f"attempt {two.id} is watched at incarnation 1, not 2{monitor}",
        f"attempt {three.id} is watched at incarnation None, not 1{monitor}",
    ]


async def test_a_lease_counts_from_when_it_changes_hands(
    journal: Journal, attempts: list[r.Attempt]
) -> None:
    one, *_ = attempts
    wrote, number, stale, wrote_again = await asyncio.gather(
        journal.commit(make_commit(one, incarnation=2)),
        journal.claim(one.id, holder="other", at=one.started_at),
        journal.commit(make_commit(one, incarnation=2)),
        journal.commit(make_commit(one, incarnation=3)),
        return_exceptions=True,
    )
    assert [type(wrote), number, type(wrote_again)] == [tuple, 3, tuple]
    assert "is at incarnation 3, not 2" in str(stale)
