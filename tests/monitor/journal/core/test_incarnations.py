"""Commits under many leases and guards are looked up together; who was replaced is refused."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.records import Attempt, Commit
from midwatch_stage import factories as make
from midwatch_stage.factories import WHOSE
from midwatch_stage.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)


@pytest.fixture
async def attempts(journal: Journal, attempt: Attempt) -> list[Attempt]:
    """Attempts at one task, each claimed for the second time."""
    task, at = attempt.task, attempt.started_at
    more = [
        await journal.add_attempt(task=task, number=number, at=at, **WHOSE) for number in (2, 3)
    ]
    for each in [attempt, *more] * 2:
        await journal.claim(each.id, holder="it", at=at)
    return [attempt, *more]


def commit(attempt: Attempt, **held: int) -> Commit:
    return make.commit(attempt, make.message(), **held)


async def settled(journal: Journal, commits: Iterable[Commit]) -> list[str]:
    """What became of each: which attempt it wrote of, or why it is refused."""
    outcomes = await asyncio.gather(*map(journal.commit, commits), return_exceptions=True)
    return [
        str(each) if isinstance(each, BaseException) else f"wrote {each[0].attempt}"
        for each in outcomes
    ]


async def test_each_commit_of_a_group_needs_its_own_lease(
    journal: Journal, attempts: list[Attempt]
) -> None:
    one, two, three = attempts
    given = [
        commit(one, incarnation=2),
        commit(two, incarnation=1),
        commit(three, incarnation=2),
        commit(three, incarnation=3),
        commit(two, incarnation=2),
    ]
    assert await settled(journal, given) == [
        f"wrote {one.id}",
        f"attempt {two.id} is at incarnation 2, not 1: another process has taken it over",
        f"wrote {three.id}",
        f"attempt {three.id} is at incarnation 2, not 3: another process has taken it over",
        f"wrote {two.id}",
    ]


async def test_each_commit_of_a_group_needs_its_own_guard(
    journal: Journal, attempts: list[Attempt]
) -> None:
    one, two, three = attempts
    monitor_leases = MonitorLeases(journal, clock=lambda: datetime.now(UTC))
    await monitor_leases.take([one.id, two.id], holder="it", seconds=60)
    given = [commit(one, guard=1), commit(two, guard=2), commit(three, guard=1)]
    assert await settled(journal, given) == [
        f"wrote {one.id}",
        f"attempt {two.id} is watched at incarnation 1, not 2: another monitor has taken it over",
        f"attempt {three.id} is watched at incarnation None, not 1: another monitor has taken it "
        "over",
    ]


async def test_leases_and_guards_are_not_taken_for_one_another(
    journal: Journal, attempts: list[Attempt]
) -> None:
    one, *_ = attempts
    await MonitorLeases(journal).take([one.id], holder="it", seconds=60)
    both = [commit(one, incarnation=2, guard=1), commit(one, incarnation=1, guard=2)]
    wrote, refused = await settled(journal, both)
    assert wrote == f"wrote {one.id}"
    assert "not 1: another process has taken it over" in refused


async def test_a_lease_that_changes_hands_within_a_transaction_counts_from_then_on(
    journal: Journal, attempts: list[Attempt]
) -> None:
    one, *_ = attempts
    wrote, number, stale, wrote_again = await asyncio.gather(
        journal.commit(commit(one, incarnation=2)),
        journal.claim(one.id, holder="other", at=one.started_at),
        journal.commit(commit(one, incarnation=2)),
        journal.commit(commit(one, incarnation=3)),
        return_exceptions=True,
    )
    assert [type(wrote), number, type(wrote_again)] == [tuple, 3, tuple]
    assert "is at incarnation 3, not 2" in str(stale)
