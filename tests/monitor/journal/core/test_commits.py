"""What is committed can be read back; what comes too late is refused."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import reopen
from midwatch_tests import factories as make
from midwatch_tests.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)


async def test_runs_tasks_and_attempts_come_back_and_begin_as_submitted(
    journal: Journal, attempt: r.Attempt, at: datetime
) -> None:
    (run,) = await journal.runs()
    (task,) = await journal.tasks(run.id)
    assert await journal.attempts(task.id) == [attempt]
    assert (await journal.run(run.id), await journal.task(task.id)) == (run, task)
    assert await journal.attempt(attempt.id) == attempt
    submitted = make.task_transition(r.Lifecycle.SUBMITTED), make.transition(r.Lifecycle.SUBMITTED)
    assert await journal.entries() == [
        r.Entry(id=1, record=submitted[0], at=at, task=1),
        r.Entry(id=2, record=submitted[1], at=at, task=1, attempt=1),
    ]


async def test_a_time_comes_back_as_it_is_in_utc(journal: Journal, attempt: r.Attempt) -> None:
    there = datetime(2026, 11, 21, 9, 30, 0, 5, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    await journal.commit(
        r.Commit(drafts=(r.Draft(record=make.message(1), at=there, task=attempt.task),))
    )
    (entry,) = await journal.entries(kinds=[r.Step])
    assert (entry.at, entry.at.utcoffset()) == (there, timedelta(0))


async def test_entries_are_chosen_by_run_task_attempt_kind_and_place(
    journal: Journal, attempt: r.Attempt, at: datetime
) -> None:
    run = await journal.add_run(source="", settings="", at=at)
    task = await journal.add_task(run=run.id, name="other", title="", spec="", at=at)
    await journal.commit(make.commit(attempt, make.message(1), make.message(2)))
    assert [each.id for each in await journal.entries()] == [1, 2, 3, 4, 5]
    assert [each.id for each in await journal.entries(run=run.id)] == [3]
    assert [each.id for each in await journal.entries(task=task.id)] == [3]
    assert [each.id for each in await journal.entries(attempt=attempt.id)] == [2, 4, 5]
    assert [each.id for each in await journal.entries(kinds=[r.TaskTransition, r.Step])] == [
        1,
        3,
        4,
        5,
    ]
    assert [each.id for each in await journal.entries(2, limit=2)] == [3, 4]


async def test_history_and_results_are_kept_as_one_or_not(
    journal: Journal, attempt: r.Attempt
) -> None:
    messages = (r.Message(index=0, body=b'{"a":1}'), r.Message(index=1, body=b"\x00\xff"))
    results = (r.Result(call="call-1", body=b'"done"'),)
    await journal.commit(r.Commit(attempt=attempt.id, messages=messages, results=results))
    again = make.commit(attempt, make.message(1), messages=messages[1:])
    with pytest.raises(StaleIncarnationError, match="already written"):
        await journal.commit(again)
    assert await journal.messages(attempt.id) == list(messages)
    with pytest.raises(StaleIncarnationError, match=f"attempt {attempt.id}"):
        await journal.commit(r.Commit(attempt=attempt.id, results=results))
    assert await journal.results(attempt.id) == list(results)
    assert await journal.entries(kinds=[r.Step]) == []


async def test_each_claim_is_a_new_incarnation(journal: Journal, attempt: r.Attempt) -> None:
    at = attempt.started_at
    assert [await journal.claim(attempt.id, holder=who, at=at) for who in "aba"] == [1, 2, 3]


@pytest.mark.parametrize("end", [each for each in r.Lifecycle if each.over])
async def test_over_is_over(journal: Journal, attempt: r.Attempt, end: r.Lifecycle) -> None:
    await journal.commit(make.commit(attempt, make.transition(), make.transition(end)))
    with pytest.raises(StaleIncarnationError, match=f"attempt 1 is already {end.value}"):
        await journal.commit(make.commit(attempt, make.ended()))


async def test_a_task_stays_over_whatever_attempts_do(journal: Journal, attempt: r.Attempt) -> None:
    await journal.commit(make.commit(attempt, make.task_transition(r.Lifecycle.CANCELED)))
    await journal.commit(make.commit(attempt, make.transition()))
    with pytest.raises(StaleIncarnationError, match="task 1 is already canceled"):
        await journal.commit(make.commit(attempt, make.task_transition()))


async def test_what_does_not_fit_is_refused_and_named(journal: Journal, attempt: r.Attempt) -> None:
    task, at = await journal.task(attempt.task), attempt.started_at
    with pytest.raises(JournalError, match="no time zone"):
        await journal.add_run(source="", settings="", at=at.replace(tzinfo=None))
    with pytest.raises(JournalError, match=r"(?i)unique"):
        await journal.add_task(run=task.run, name=task.name, title="", spec="", at=at)
    with pytest.raises(JournalError, match=r"(?i)foreign key"):
        await journal.commit(r.Commit(drafts=(r.Draft(record=make.message(1), at=at, task=99),)))
    with pytest.raises(JournalError, match="has no attempt 7"):
        await journal.attempt(7)


RESTART = make.intervention(r.Action.RESTART, r.Actor.OPERATOR, author="ada", message="Again.")
FAILED = make.task_transition(r.Lifecycle.FAILED)
OPENED = make.task_transition(r.Lifecycle.SUBMITTED, reason="begun again")


def of_task(record: r.Record, attempt: r.Attempt) -> r.Draft:
    return r.Draft(record=record, at=attempt.started_at, task=attempt.task)


async def test_a_person_opens_a_task_again_and_no_late_word(
    journal: Journal, attempt: r.Attempt
) -> None:
    (over,) = await journal.commit(r.Commit(drafts=(of_task(FAILED, attempt),)))
    with pytest.raises(StaleIncarnationError, match="is already failed"):
        await journal.commit(r.Commit(drafts=(of_task(OPENED, attempt),)))
    order, opened = replace(of_task(RESTART, attempt), attempt=1), of_task(OPENED, attempt)
    entries = await journal.write(reopen, order, [opened], step=7, after=over.id)
    assert entries is not None
    stamp = make.delivery(entries[0].id, step=7)
    assert [entry.record for entry in entries] == [RESTART, stamp, OPENED]
    assert await journal.write(reopen, order, [opened], step=7, after=over.id) is None
    assert await journal.last_id() == entries[-1].id
    await journal.add_attempt(task=attempt.task, number=2, at=attempt.started_at, **make.WHOSE)
    await journal.commit(r.Commit(drafts=(of_task(FAILED, attempt),)))


# -- an attempt has at most one open escalation -------------------------------------------------

ALERTS = (r.AlertKey(rule="cycle"), r.AlertKey(rule="repeated_edits", subject="a.py"))


async def open_escalation(
    journal: Journal, attempt: r.Attempt, guard: int | None = None
) -> r.Escalation | None:
    of, task, at = attempt.id, attempt.task, attempt.started_at
    return await journal.open_escalation(
        attempt=of, task=task, alerts=ALERTS, reason="stuck", at=at, guard=guard
    )


async def set_state(
    journal: Journal, attempt: r.Attempt, to: r.EscalationState, id_: int = 1
) -> None:
    record = r.Escalation(id=id_, attempt=attempt.id, state=to, alerts=ALERTS, reason="stuck")
    await journal.commit(make.commit(attempt, record))


async def test_only_one_of_many_is_opened_and_stored(journal: Journal, attempt: r.Attempt) -> None:
    with pytest.raises(StaleIncarnationError, match="attempt 1 is watched at incarnation None"):
        await open_escalation(journal, attempt, guard=1)
    answers = await asyncio.gather(*(open_escalation(journal, attempt) for _ in range(20)))
    (escalation,) = [each for each in answers if each]
    assert escalation == r.Escalation(
        id=1, attempt=attempt.id, state=r.EscalationState.OPEN, alerts=ALERTS, reason="stuck"
    )
    (entry,) = await journal.entries(kinds=[r.Escalation])
    assert (entry.record, entry.attempt) == (escalation, attempt.id)


async def test_an_answered_one_is_in_the_way_until_closed(
    journal: Journal, attempt: r.Attempt
) -> None:
    first = await open_escalation(journal, attempt)
    await set_state(journal, attempt, r.EscalationState.ANSWERED)
    assert await open_escalation(journal, attempt) is None
    at = attempt.started_at
    other = await journal.add_attempt(task=attempt.task, number=2, at=at, **make.WHOSE)
    assert await open_escalation(journal, other)
    await set_state(journal, attempt, r.EscalationState.CLOSED)
    assert first is not None
    assert await open_escalation(journal, attempt) == replace(first, id=3)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (r.EscalationState.ANSWERED, r.EscalationState.ANSWERED),
        (r.EscalationState.ANSWERED, r.EscalationState.OPEN),
        (r.EscalationState.CLOSED, r.EscalationState.ANSWERED),
        (r.EscalationState.CLOSED, r.EscalationState.CLOSED),
    ],
)
async def test_an_escalation_is_answered_once_and_closed_once(
    first: r.EscalationState, then: r.EscalationState, journal: Journal, attempt: r.Attempt
) -> None:
    await open_escalation(journal, attempt)
    await set_state(journal, attempt, first)
    with pytest.raises(StaleIncarnationError, match=f"escalation 1 is already {first}"):
        await set_state(journal, attempt, then)
    assert len(await journal.entries(kinds=[r.Escalation])) == 2
