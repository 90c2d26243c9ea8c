"""Saved work in the journal, of either database."""

from datetime import datetime

import pytest

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundle, Bundles
from midwatch_monitor.records import Attempt, Commit, Draft, Intervention, Lease, Message, Snapshot
from midwatch_tests.factories import drafts, intervention
from midwatch_tests.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)


def draft(attempt: Attempt, commit: str = "c1") -> Draft:
    (made,) = drafts(attempt, [Snapshot(commit=commit, messages=0, step=2, size=4)])
    return made


async def test_the_newest_work_takes_the_place_of_the_one_before(
    journal: Journal, attempt: Attempt, at: datetime
) -> None:
    bundles = Bundles(journal)
    assert (await bundles.get(attempt.id), await bundles.commit_of(attempt.id)) == (None, "")
    incarnation = await journal.claim(attempt.id, holder="a:1", at=at)
    for commit, body in (("c1", b"\0one"), ("c2", b"\0two")):
        await bundles.put(draft(attempt, commit), body, incarnation=incarnation)
    assert await bundles.get(attempt.id) == Bundle(commit="c2", body=b"\0two")
    assert await bundles.commit_of(attempt.id) == "c2"
    assert [each.commit for each in await bundles.snapshots(attempt.id)] == ["c1", "c2"]
    await bundles.put(draft(attempt, "large"), b"", incarnation=incarnation)  # without a body
    assert await bundles.get(attempt.id) == Bundle(commit="c2", body=b"\0two")
    run = (await journal.task(attempt.task)).run
    assert [await bundles.attempts(each) for each in (run, run + 1)] == [[attempt], []]


async def test_who_lost_the_attempt_stores_neither_snapshot_nor_work(
    journal: Journal, attempt: Attempt, at: datetime
) -> None:
    bundles = Bundles(journal)
    lost = await journal.claim(attempt.id, holder="a:1", at=at)
    await journal.claim(attempt.id, holder="b:1", at=at)
    with pytest.raises(StaleIncarnationError):
        await bundles.put(draft(attempt), b"late", incarnation=lost)
    assert await bundles.get(attempt.id) is None
    assert await bundles.snapshots(attempt.id) == []
    assert await bundles.lease_of(attempt.id) == Lease(holder="b:1", incarnation=2)


async def test_a_snapshot_counts_the_messages(
    journal: Journal, attempt: Attempt, at: datetime
) -> None:
    incarnation = await journal.claim(attempt.id, holder="a:1", at=at)
    messages = tuple(Message(index=n, body=b"[]") for n in range(3))
    await journal.commit(Commit(attempt=attempt.id, incarnation=incarnation, messages=messages))
    await Bundles(journal).put(draft(attempt), b"body", incarnation=incarnation)
    (snapshot,) = await Bundles(journal).snapshots(attempt.id)
    assert snapshot == Snapshot(commit="c1", messages=3, step=2, size=4)


async def test_an_intervention_is_issued_once_for_all_tries(
    journal: Journal, attempt: Attempt
) -> None:
    bundles = Bundles(journal)
    said = [intervention(message=text) for text in ("look", "look", "look again")]
    issued = [await bundles.issue_once(each) for each in drafts(attempt, said)]
    assert issued == [True, False, True]
    assert len(await journal.entries(kinds=(Intervention,))) == 2
