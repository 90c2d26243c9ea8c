"""Of two answers to what a worker asked for, the journal takes the first."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_tests.factories import delivery, intervention
from midwatch_tests.reading import records_of

Write = Callable[[r.Record], Awaitable[int]]
ASKS = r.BudgetRequest(wanted=r.Grant(requests=10), reason="more to do")


def proposed_grant(petition: int) -> r.Intervention:
    return intervention(
        r.Action.GRANT_BUDGET, r.Actor.SUPERVISOR, petition=petition, needs_approval=True
    )


@pytest.fixture
def operator(journal: Journal, at: datetime) -> OperatorActions:
    return OperatorActions(journal, author="ada", clock=lambda: at)


async def intervention_authors(journal: Journal) -> list[str]:
    return [each.author for each in await records_of(journal, r.Intervention)]


async def test_a_second_answer_is_refused_unless_the_first_was_rejected(
    journal: Journal, operator: OperatorActions, attempt: r.Attempt, write: Write
) -> None:
    id = await write(ASKS)
    answer = await write(proposed_grant(id))
    await write(delivery(answer, r.DeliveryState.REJECTED, step=1))
    await operator.settle(attempt, id, ASKS, agreed=True, step=1)
    with pytest.raises(UsageError, match="somebody else has just answered that"):
        await operator.settle(attempt, id, ASKS, agreed=False, comment="No.", step=1)
    assert await intervention_authors(journal) == ["", "ada"]


@pytest.mark.parametrize("first", [True, False])
async def test_what_waits_for_approval_is_settled_once(
    journal: Journal, operator: OperatorActions, attempt: r.Attempt, write: Write, first: bool
) -> None:
    nudge = intervention(r.Action.NUDGE, r.Actor.SUPERVISOR, needs_approval=True)
    id = await write(nudge)
    (entry,) = await journal.entries(id - 1, limit=1)
    seen = InterventionState.begin(entry, nudge)
    await operator.settle(attempt, id, seen, agreed=first, step=1)
    for second in (True, False):
        with pytest.raises(UsageError, match="somebody else has just answered that"):
            await operator.settle(attempt, id, seen, agreed=second, step=1)
    with pytest.raises(UsageError, match="somebody else has just answered that"):
        await operator.modify(attempt, id, nudge, "In other words.", step=1)
    (stamp,) = await records_of(journal, r.Delivery)
    assert stamp.state is (r.DeliveryState.APPROVED if first else r.DeliveryState.REJECTED)


async def test_whoever_rejects_an_answer_may_give_another_with_it(
    journal: Journal, operator: OperatorActions, attempt: r.Attempt, write: Write
) -> None:
    id = await write(ASKS)
    answer = await write(proposed_grant(id))
    (entry,) = await journal.entries(answer - 1, limit=1)
    decision = InterventionState.begin(entry, proposed_grant(id))
    await operator.settle(attempt, answer, decision, agreed=False, comment="No.", step=1)
    assert await intervention_authors(journal) == ["", "ada"]
