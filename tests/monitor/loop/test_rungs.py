"""The monitor's loop between two rungs of the ladder."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import MonitorSettings, Settings, SupervisorSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Commit,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Draft,
    Ending,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    Meter,
    Outcome,
    OutcomeReport,
    Record,
    Step,
    StepKind,
    TaskTransition,
)

Claim = Callable[..., Awaitable[Recorder]]
Write = Callable[[Record], Awaitable[int]]

LOW = AlertKey(rule="low_confidence")
ASKED = Escalation(
    id=1, attempt=1, state=EscalationState.OPEN, alerts=(LOW,), reason="low_confidence"
)
NUDGE = Intervention(action=Action.NUDGE, by=Actor.POLICY, escalation=1, answers=(LOW,))
DOUBTFUL = Step(
    number=0,
    kind=StepKind.CHECKPOINT,
    tool="reflect",
    checkpoint=Checkpoint(progress_percent=10, confidence=10),
)
ACTS = [Step(number=0, kind=StepKind.TOOL, tool="run", args=f"look {n}") for n in range(3)]


@pytest.fixture
def monitor(journal: Journal, bus: LocalBus, at: datetime) -> Monitor:
    settings = Settings(
        monitor=MonitorSettings(poll_seconds=0.01, outcome_after=3),
        supervisor=SupervisorSettings(cooldown=3),
    )
    return Monitor(journal=journal, bus=bus, settings=settings, run=1, clock=lambda: at)


@pytest.fixture
async def recorder(claim: Claim, monitor: Monitor) -> Recorder:
    """An attempt that fired an alarm and was asked about."""
    recorder = await claim()
    await recorder.record(working_transition(), DOUBTFUL)
    await monitor.look()
    return recorder


async def _questions(journal: Journal) -> list[int]:
    entries = await journal.entries(kinds=[Escalation])
    opened = [each.record for each in entries if isinstance(each.record, Escalation)]
    return [each.id for each in opened if each.state is EscalationState.OPEN]


async def test_the_next_rung_follows_at_once_where_the_last_one_did_not_help(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(NUDGE)
    await recorder.record(Delivery(intervention=id, state=DeliveryState.DELIVERED), *ACTS)
    await monitor.look()
    (entry,) = await journal.entries(kinds=[OutcomeReport])
    assert isinstance(entry.record, OutcomeReport)
    assert entry.record.outcome is Outcome.NO_EFFECT
    assert await _questions(journal) == [1, 2]


async def test_after_nothing_was_done_there_is_a_pause(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    observe = Decision(
        escalation=1,
        action=Action.OBSERVE,
        diagnosis=Diagnosis.FALSE_ALARM,
        message="",
        rationale="it moves",
        by=Actor.POLICY,
    )
    id = await write(observe)
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
            TaskTransition(lifecycle=Lifecycle.COMPLETED, reason="every acceptance check passed"),
            Outcome.RECOVERED,
            "the task is completed: every acceptance check passed",
        ),
        (
            TaskTransition(lifecycle=Lifecycle.FAILED, reason="a part failed"),
            Outcome.NO_EFFECT,
            "the task is failed: a part failed",
        ),
    ],
)
async def test_a_split_is_judged_by_what_becomes_of_the_task(
    journal: Journal, recorder: Recorder, attempt: Attempt, monitor: Monitor, write: Write,
    at: datetime, end: TaskTransition, outcome: Outcome, reason: str,
) -> None:  # fmt: skip
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(replace(NUDGE, action=Action.SPLIT))
    ended = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT)
    await recorder.end(ended, Delivery(intervention=id, state=DeliveryState.DELIVERED))
    await monitor.look()
    assert not await journal.entries(kinds=[OutcomeReport])
    await journal.commit(Commit(drafts=(Draft(record=end, at=at, task=attempt.task),)))
    await monitor.look()
    (entry,) = await journal.entries(kinds=[OutcomeReport])
    assert entry.record == OutcomeReport(intervention=id, outcome=outcome, step=1, reason=reason)


@pytest.mark.parametrize(("requests", "asked"), [(100, [1]), (12, [1, 2])])
async def test_a_person_is_called_in_time_where_guidance_did_not_help_and_the_alert_fell_silent(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write, requests: int,
    asked: list[int],
) -> None:  # fmt: skip
    limit = float(requests)
    await recorder.record(Change(budget=Budget(requests=Meter(used=1, limit=limit))))
    await write(replace(ASKED, state=EscalationState.ANSWERED))
    id = await write(NUDGE)
    calm = replace(DOUBTFUL, checkpoint=Checkpoint(progress_percent=10, confidence=80))
    spent = Change(budget=Budget(requests=Meter(used=5, limit=limit)))
    arrived = Delivery(intervention=id, state=DeliveryState.DELIVERED)
    await recorder.record(arrived, calm, *ACTS, spent)
    await monitor.look()
    assert await _questions(journal) == asked
