"""An attempt has at most one open escalation."""

import asyncio
from dataclasses import replace

import pytest

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    AlertKey,
    Attempt,
    Escalation,
    EscalationState,
)
from midwatch_stage.factories import WHOSE, commit
from midwatch_stage.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)

ALERTS = (AlertKey(rule="cycle"), AlertKey(rule="repeated_edits", subject="a.py"))


async def opened(journal: Journal, attempt: Attempt, guard: int | None = None) -> Escalation | None:
    of, task, at = attempt.id, attempt.task, attempt.started_at
    return await journal.open_escalation(
        attempt=of, task=task, alerts=ALERTS, reason="stuck", at=at, guard=guard
    )


async def moved(journal: Journal, attempt: Attempt, to: EscalationState, id_: int = 1) -> None:
    record = Escalation(id=id_, attempt=attempt.id, state=to, alerts=ALERTS, reason="stuck")
    await journal.commit(commit(attempt, record))


async def test_an_escalation_is_stored_when_it_is_opened(
    journal: Journal, attempt: Attempt
) -> None:
    escalation = await opened(journal, attempt)
    assert escalation == Escalation(
        id=1, attempt=attempt.id, state=EscalationState.OPEN, alerts=ALERTS, reason="stuck"
    )
    (entry,) = await journal.entries(kinds=[Escalation])
    assert (entry.record, entry.attempt) == (escalation, attempt.id)


async def test_a_monitor_without_the_lease_opens_none(journal: Journal, attempt: Attempt) -> None:
    with pytest.raises(StaleIncarnationError, match="attempt 1 is watched at incarnation None"):
        await opened(journal, attempt, guard=1)
    assert await opened(journal, attempt)


async def test_only_one_of_many_at_once_is_opened(journal: Journal, attempt: Attempt) -> None:
    answers = await asyncio.gather(*(opened(journal, attempt) for _ in range(20)))
    assert len([each for each in answers if each]) == 1
    assert len(await journal.entries(kinds=[Escalation])) == 1


async def test_an_answered_one_is_still_in_the_way(journal: Journal, attempt: Attempt) -> None:
    await opened(journal, attempt)
    await moved(journal, attempt, EscalationState.ANSWERED)
    assert await opened(journal, attempt) is None


async def test_a_closed_one_makes_room(journal: Journal, attempt: Attempt) -> None:
    first = await opened(journal, attempt)
    await moved(journal, attempt, EscalationState.CLOSED)
    second = await opened(journal, attempt)
    assert first is not None
    assert second == replace(first, id=2)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (EscalationState.ANSWERED, EscalationState.ANSWERED),
        (EscalationState.ANSWERED, EscalationState.OPEN),
        (EscalationState.CLOSED, EscalationState.ANSWERED),
        (EscalationState.CLOSED, EscalationState.CLOSED),
    ],
)
async def test_an_escalation_is_answered_once_and_closed_once(
    first: EscalationState, then: EscalationState, journal: Journal, attempt: Attempt
) -> None:
    await opened(journal, attempt)
    await moved(journal, attempt, first)
    with pytest.raises(StaleIncarnationError, match=f"escalation 1 is already {first}"):
        await moved(journal, attempt, then)
    assert len(await journal.entries(kinds=[Escalation])) == 2


async def test_attempts_do_not_stand_in_each_others_way(journal: Journal, attempt: Attempt) -> None:
    at = attempt.started_at
    other = await journal.add_attempt(task=attempt.task, number=2, at=at, **WHOSE)
    assert await opened(journal, attempt)
    assert await opened(journal, other)
