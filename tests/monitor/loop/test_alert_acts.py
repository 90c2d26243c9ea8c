"""What a person says of alerts, and the monitor takes: acknowledged, and silenced."""

from dataclasses import replace

import pytest

from midwatch_monitor.config.settings import Settings, SupervisorSettings
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
from midwatch_stage.monitored import Monitored

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


@pytest.mark.parametrize(
    ("said", "state"),
    [(ACKNOWLEDGED, None), (SILENCED, None), (ACKNOWLEDGED, PARKED), (ACKNOWLEDGED, FAILED)],
)
async def test_the_monitor_takes_it_once_whatever_the_attempt_does(
    scene: Monitored, said: Intervention, state: AttemptTransition | None
) -> None:
    await scene.recorder.record(report(10), *([state] if state else []))
    id = await scene.told(said)
    await scene.monitor.look(everything=True)
    assert await scene.records(Delivery) == [delivery(id, step=1)]


async def test_an_acknowledged_alert_is_escalated_all_the_same(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.told(ACKNOWLEDGED)
    assert await scene.records(Escalation) == [OPEN]


async def test_a_silenced_alert_is_not_escalated(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.told(SILENCED)
    await scene.hear(report(60), report(15))
    assert await scene.records(Escalation) == []


async def test_it_is_not_escalated_again_after_its_escalation_was_closed(scene: Monitored) -> None:
    await scene.hear(report(10))
    closed = replace(OPEN, state=EscalationState.CLOSED)
    await scene.write(SILENCED, closed)
    await scene.hear(step(), step())
    assert await scene.records(Escalation) == [OPEN, closed]


async def test_what_was_not_silenced_is_still_escalated(scene: Monitored) -> None:
    await scene.told(SILENCED)
    await scene.hear(report(10, "a", "b", "c"))
    (opened,) = await scene.records(Escalation)
    assert opened.alerts == (BLOCKED,)


async def test_it_is_no_intervention_on_the_worker_and_has_no_outcome(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.told(ACKNOWLEDGED)
    await scene.recorder.end(FAILED)
    await scene.monitor.look()
    assert (scene.view.trials, scene.view.state.interventions.under_way) == ({}, ())
    assert await scene.records(OutcomeReport) == []


async def test_a_monitor_that_starts_anew_remembers_the_silence(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.told(SILENCED)
    before = await scene.journal.entries()
    await scene.watching().look(everything=True)
    assert await scene.journal.entries() == before
