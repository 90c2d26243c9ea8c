"""The monitor's loop between two rungs of the ladder."""

from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.config.settings import MonitorSettings, Settings, SupervisorSettings
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
from midwatch_stage.monitored import Monitored

LOW = AlertKey(rule="low_confidence")
ASKED = escalation(1, "low_confidence", reason="low_confidence")
ANSWERED = replace(ASKED, state=EscalationState.ANSWERED)
NUDGE = intervention(escalation=1, answers=(LOW,))
ACTS = [step(args=f"look {n}") for n in range(3)]


@pytest.fixture
def settings() -> Settings:
    return Settings(
        monitor=MonitorSettings(outcome_after=3), supervisor=SupervisorSettings(cooldown=3)
    )


@pytest.fixture
async def asked(scene: Monitored) -> Monitored:
    """An attempt that fired an alarm and was asked about."""
    await scene.hear(reflecting(0, 10, 10))
    return scene


async def _questions(scene: Monitored) -> list[int]:
    opened = await scene.records(Escalation)
    return [each.id for each in opened if each.state is EscalationState.OPEN]


async def test_the_next_rung_follows_at_once_where_the_last_one_did_not_help(
    asked: Monitored,
) -> None:
    await asked.delivered(ANSWERED, NUDGE, then=(*ACTS,))
    (verdict,) = await asked.records(OutcomeReport)
    assert verdict.outcome is Outcome.NO_EFFECT
    assert await _questions(asked) == [1, 2]


async def test_after_nothing_was_done_there_is_a_pause(asked: Monitored) -> None:
    id = await asked.write(decision(Action.OBSERVE))
    await asked.write(replace(ASKED, state=EscalationState.CLOSED))
    await asked.hear(*ACTS[:2])
    assert asked.view.state.observed == {id: (LOW,)}
    assert await _questions(asked) == [1]


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
    asked: Monitored, at: datetime, end: TaskTransition, outcome: Outcome, reason: str
) -> None:
    id = await asked.write(ANSWERED, replace(NUDGE, action=Action.SPLIT))
    await asked.recorder.end(ended(Ending.SPLIT), delivery(id))
    await asked.monitor.look()
    assert not await asked.records(OutcomeReport)
    await asked.journal.commit(Commit(drafts=(Draft(record=end, at=at, task=1),)))
    await asked.monitor.look()
    report = OutcomeReport(intervention=id, outcome=outcome, step=1, reason=reason)
    assert await asked.records(OutcomeReport) == [report]


@pytest.mark.parametrize(("requests", "questions"), [(100, [1]), (12, [1, 2])])
async def test_a_person_is_called_in_time_where_guidance_did_not_help_and_the_alert_fell_silent(
    asked: Monitored, requests: int, questions: list[int]
) -> None:
    used = [Meter(used=spent, limit=float(requests)) for spent in (1, 5)]
    first, last = (Change(budget=Budget(requests=each)) for each in used)
    await asked.recorder.record(first)
    await asked.delivered(ANSWERED, NUDGE, then=(reflecting(0, 10, 80), *ACTS, last))
    assert await _questions(asked) == questions
