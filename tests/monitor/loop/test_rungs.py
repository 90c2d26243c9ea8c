"""The monitor's loop between two rungs of the ladder."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.config.settings import MonitorSettings, Settings, SupervisorSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    AlertKey,
    Budget,
    Change,
    Commit,
    Draft,
    Ending,
    Escalation,
    EscalationState,
    Lifecycle,
    Meter,
    Outcome,
    OutcomeReport,
    Record,
    TaskTransition,
)
from midwatch_stage.factories import (
    decision,
    delivery,
    ended,
    escalation,
    intervention,
    reflecting,
    step,
    task_transition,
)
from midwatch_stage.reading import records_of

Claim = Callable[..., Awaitable[Recorder]]
Write = Callable[[Record], Awaitable[int]]

LOW = AlertKey(rule="low_confidence")
ASKED = escalation(1, "low_confidence", reason="low_confidence")
NUDGE = intervention(escalation=1, answers=(LOW,))
ACTS = [step(args=f"look {n}") for n in range(3)]


@pytest.fixture
def settings() -> Settings:
    return Settings(
        monitor=MonitorSettings(outcome_after=3), supervisor=SupervisorSettings(cooldown=3)
    )


@pytest.fixture
async def recorder(recorder: Recorder, monitor: Monitor) -> Recorder:
    """An attempt that fired an alarm and was asked about."""
    await recorder.record(reflecting(0, 10, 10))
    await monitor.look()
    return recorder


async def _questions(journal: Journal) -> list[int]:
    opened = await records_of(journal, Escalation)
    return [each.id for each in opened if each.state is EscalationState.OPEN]


async def test_the_next_rung_follows_at_once_where_the_last_one_did_not_help(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(NUDGE)
    await recorder.record(delivery(id), *ACTS)
    await monitor.look()
    (verdict,) = await records_of(journal, OutcomeReport)
    assert verdict.outcome is Outcome.NO_EFFECT
    assert await _questions(journal) == [1, 2]


async def test_after_nothing_was_done_there_is_a_pause(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    id = await write(decision(Action.OBSERVE))
    await write(replace(ASKED, state=EscalationState.CLOSED))
    await recorder.record(*ACTS[:2])
    await monitor.look()
    view = monitor.view(1)
    assert view is not None
    assert view.state.observed == {id: (LOW,)}
    assert await _questions(journal) == [1]


@pytest.mark.parametrize(
    ("end", "outcome", "reason"),
    [
        (
            task_transition(Lifecycle.COMPLETED, reason="every acceptance check passed"),
            Outcome.RECOVERED,
            "the task is completed: every acceptance check passed",
        ),
        (
            task_transition(Lifecycle.FAILED, reason="a part failed"),
            Outcome.NO_EFFECT,
            "the task is failed: a part failed",
        ),
    ],
)
async def test_a_split_is_judged_by_what_becomes_of_the_task(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write,
    at: datetime, end: TaskTransition, outcome: Outcome, reason: str,
) -> None:  # fmt: skip
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(replace(NUDGE, action=Action.SPLIT))
    await recorder.end(ended(Ending.SPLIT), delivery(id))
    await monitor.look()
    assert not await journal.entries(kinds=[OutcomeReport])
    await journal.commit(Commit(drafts=(Draft(record=end, at=at, task=1),)))
    await monitor.look()
    report = OutcomeReport(intervention=id, outcome=outcome, step=1, reason=reason)
    assert await records_of(journal, OutcomeReport) == [report]


@pytest.mark.parametrize(("requests", "asked"), [(100, [1]), (12, [1, 2])])
async def test_a_person_is_called_in_time_where_guidance_did_not_help_and_the_alert_fell_silent(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write, requests: int,
    asked: list[int],
) -> None:  # fmt: skip
    limit = float(requests)
    await recorder.record(Change(budget=Budget(requests=Meter(used=1, limit=limit))))
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(NUDGE)
    spent = Change(budget=Budget(requests=Meter(used=5, limit=limit)))
    await recorder.record(delivery(id), reflecting(0, 10, 80), *ACTS, spent)
    await monitor.look()
    assert await _questions(journal) == asked
