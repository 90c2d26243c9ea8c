"""What a person says of alerts, and the monitor takes: acknowledged, and silenced."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from midwatch_monitor.config.settings import Settings, SupervisorSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    AttemptTransition,
    Delivery,
    Ending,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    OutcomeReport,
    Record,
    Step,
)
from midwatch_stage.factories import (
    delivery,
    ended,
    escalation,
    intervention,
    reflecting,
    step,
    transition,
)
from midwatch_stage.reading import records_of

Write = Callable[[Record], Awaitable[int]]

LOW = AlertKey(rule="low_confidence")
BLOCKED = AlertKey(rule="multiple_blockers")
ACKNOWLEDGED = intervention(Action.ACKNOWLEDGE, Actor.OPERATOR, answers=(LOW,))
SILENCED = replace(ACKNOWLEDGED, action=Action.SILENCE)
OPEN = escalation(1, "low_confidence", reason="low_confidence")
PARKED = transition(Lifecycle.INPUT_REQUIRED)
FAILED = ended(Ending.ERROR)


def report(confidence: int, *blockers: str) -> Step:
    return reflecting(0, confidence, confidence, blockers=blockers)


@pytest.fixture
def settings() -> Settings:
    return Settings(supervisor=SupervisorSettings(cooldown=0))


@pytest.mark.parametrize("said", [ACKNOWLEDGED, SILENCED])
async def test_the_monitor_takes_it_once(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write, said: Intervention
) -> None:
    await recorder.record(report(10))
    id = await write(said)
    await monitor.look()
    await monitor.look(everything=True)
    assert await records_of(journal, Delivery) == [delivery(id, step=1)]


async def test_an_acknowledged_alert_is_escalated_all_the_same(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await write(ACKNOWLEDGED)
    await monitor.look()
    assert await records_of(journal, Escalation) == [OPEN]


async def test_a_silenced_alert_is_not_escalated(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await write(SILENCED)
    await monitor.look()
    await recorder.record(report(60), report(15))
    await monitor.look()
    assert await records_of(journal, Escalation) == []


async def test_it_is_not_escalated_again_after_its_escalation_was_closed(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    closed = replace(OPEN, state=EscalationState.CLOSED)
    await write(SILENCED)
    await write(closed)
    await recorder.record(step(), step())
    await monitor.look()
    assert await records_of(journal, Escalation) == [OPEN, closed]


async def test_what_was_not_silenced_is_still_escalated(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await write(SILENCED)
    await monitor.look()
    await recorder.record(report(10, "a", "b", "c"))
    await monitor.look()
    (opened,) = await records_of(journal, Escalation)
    assert opened.alerts == (BLOCKED,)


@pytest.mark.parametrize("state", [PARKED, FAILED])
async def test_it_is_taken_whatever_the_attempt_does(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write, state: AttemptTransition
) -> None:
    await recorder.record(report(10), state)
    id = await write(ACKNOWLEDGED)
    await monitor.look()
    assert await records_of(journal, Delivery) == [delivery(id, step=1)]


async def test_it_is_no_intervention_on_the_worker_and_has_no_outcome(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await write(ACKNOWLEDGED)
    await monitor.look()
    await recorder.end(FAILED)
    await monitor.look()
    view = monitor.view(recorder.attempt.id)
    assert view is not None
    assert (view.trials, view.state.interventions.under_way) == ({}, ())
    assert await records_of(journal, OutcomeReport) == []


async def test_a_monitor_that_starts_anew_remembers_the_silence(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write,
    watching: Callable[[], Monitor],
) -> None:  # fmt: skip
    await recorder.record(report(10))
    await write(SILENCED)
    await monitor.look()
    before = await journal.entries()
    await watching().look(everything=True)
    assert await journal.entries() == before
