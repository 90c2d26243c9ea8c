"""The monitor's loop: one question at a time, and every answer judged."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus, Subscription
from midwatch_monitor.config.settings import (
    Mode,
    MonitorSettings,
    PolicySettings,
    Settings,
    SupervisorSettings,
)
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_tests import factories as make
from midwatch_tests.monitored import Monitored

Claim = Callable[..., Awaitable[Recorder]]
Until = Callable[[r.Record], Awaitable[r.Entry]]

LOW = r.AlertKey(rule="low_confidence")
FAILED = make.ended(r.Ending.STUCK)
OPEN = make.escalation(1, "low_confidence", reason="low_confidence")
ANSWERED = replace(OPEN, state=r.EscalationState.ANSWERED)
CLOSED = replace(OPEN, state=r.EscalationState.CLOSED)
NUDGE = make.intervention(escalation=1, answers=(LOW,))
RESTART = replace(NUDGE, action=r.Action.RESTART)


def report(
    confidence: int, *blockers: str, decision: r.CheckpointDecision = r.CheckpointDecision.CONTINUE
) -> r.Step:
    return make.reflecting(0, confidence, confidence, blockers=blockers, decision=decision)


def act(exit_code: int | None = None) -> r.Step:
    return make.step(args="pytest", ok=None, exit_code=exit_code)


@pytest.fixture
def settings() -> Settings:
    return Settings(
        monitor=MonitorSettings(poll_seconds=0.01, outcome_after=3),
        supervisor=SupervisorSettings(cooldown=3),
        policy=PolicySettings(max_escalations=2),
    )


async def deliver_answer(scene: Monitored, answer: r.Intervention) -> int:
    """An alert, its escalation, and an answer that has been delivered; the answer's id."""
    await scene.hear(act(1), report(10))
    return await scene.delivered(ANSWERED, answer)


async def test_an_escalation_is_opened_once_before_its_hint_and_later_joined(
    scene: Monitored,
) -> None:
    class ReadingBus(LocalBus):
        """Notes what could be read at the moment of each hint."""

        def publish(self, hint: r.Hint) -> None:
            super().publish(hint)
            seen.append(asyncio.ensure_future(scene.records(r.Escalation)))

    seen: list[asyncio.Future[list[r.Escalation]]] = []
    await scene.recorder.record(report(10))
    await scene.watching(bus=ReadingBus()).look()
    assert await asyncio.gather(*seen) == [[OPEN]]
    await scene.recorder.record(act())
    await scene.monitor.look(everything=True)
    assert await scene.records(r.Escalation) == [OPEN]
    await scene.hear(report(10, "a", "b", "c"))
    joined = replace(OPEN, alerts=(LOW, r.AlertKey(rule="multiple_blockers")))
    assert await scene.records(r.Escalation) == [OPEN, joined]


async def test_an_alert_about_the_work_waits_for_none_about_reporting(scene: Monitored) -> None:
    await scene.hear(report(10))
    told = await scene.write(NUDGE)
    await scene.write(ANSWERED)
    await scene.hear(report(10, "a", "b", "c"))
    await scene.monitor.look()
    *_, closed, opened = await scene.records(r.Escalation)
    assert (closed.id, closed.state) == (1, r.EscalationState.CLOSED)
    assert (opened.id, opened.alerts) == (2, (r.AlertKey(rule="multiple_blockers"),))
    (lost,) = await scene.records(r.Delivery)
    assert (lost.intervention, lost.state) == (told, r.DeliveryState.EXPIRED)


async def test_after_a_cooldown_the_same_attempt_may_be_asked_about_again(scene: Monitored) -> None:
    await scene.hear(report(10))
    await scene.write(CLOSED)
    counts: list[int] = []
    for _ in range(3):
        await scene.hear(act())
        counts.append(len(await scene.records(r.Escalation)))
    assert counts == [2, 2, 3]


async def test_escalations_are_capped(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    for id in range(1, 6):
        await scene.monitor.look()
        if id <= len({each.id for each in await scene.records(r.Escalation)}):
            await scene.write(replace(CLOSED, id=id))
        await scene.recorder.record(act(), act(), act())
    assert {each.id for each in await scene.records(r.Escalation)} == {1, 2, 3}


async def test_in_mode_off_nothing_is_escalated(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.watching(settings=Settings(mode=Mode.OFF)).look()
    assert await scene.records(r.Escalation) == []


ACKNOWLEDGED = make.intervention(r.Action.ACKNOWLEDGE, r.Actor.OPERATOR, answers=(LOW,))
SILENCED = replace(ACKNOWLEDGED, action=r.Action.SILENCE)


@pytest.mark.parametrize(
    ("said", "state", "asked"),
    [
        (ACKNOWLEDGED, None, [OPEN]),
        (SILENCED, None, []),
        (ACKNOWLEDGED, make.transition(r.Lifecycle.INPUT_REQUIRED), []),
        (ACKNOWLEDGED, FAILED, []),
    ],
    ids=["acknowledged", "silenced", "parked", "over"],
)
async def test_the_monitor_takes_what_a_person_says_of_an_alert_once_and_escalates_none_silenced(
    scene: Monitored,
    said: r.Intervention,
    state: r.AttemptTransition | None,
    asked: list[r.Escalation],
) -> None:
    await scene.recorder.record(report(10), *([state] if state else []))
    id = await scene.told(said)
    await scene.monitor.look(everything=True)
    assert await scene.records(r.Delivery) == [make.delivery(id, step=1)]
    assert await scene.records(r.Escalation) == asked
    assert (scene.view.trials, await scene.records(r.OutcomeReport)) == ({}, [])
    before = await scene.journal.entries()
    await scene.watching().look(everything=True)
    assert await scene.journal.entries() == before


async def test_what_was_not_silenced_is_still_escalated(scene: Monitored) -> None:
    await scene.told(SILENCED)
    await scene.hear(report(10, "a", "b", "c"))
    (opened,) = await scene.records(r.Escalation)
    assert opened.alerts == (r.AlertKey(rule="multiple_blockers"),)


async def test_the_outcome_is_judged_after_so_many_steps_and_closes_it(scene: Monitored) -> None:
    id = await deliver_answer(scene, NUDGE)
    await scene.hear(report(80), act(0))
    assert await scene.records(r.OutcomeReport) == []
    await scene.hear(act(0))
    verdict = make.outcome(id, step=5, reason="its alerts resolved; a check passed")
    assert await scene.records(r.OutcomeReport) == [verdict]
    assert await scene.last_escalation() == replace(CLOSED, reason=verdict.reason)


@pytest.mark.parametrize("action", [r.Action.NUDGE, r.Action.ACKNOWLEDGE])
async def test_a_question_beside_the_work_is_judged_once_answered(
    scene: Monitored, action: r.Action
) -> None:
    await scene.recorder.record(r.Change(acts=(r.Action.NUDGE, r.Action.STOP)))
    id = await deliver_answer(scene, replace(NUDGE, action=r.Action.ASK_OPERATOR))
    await scene.hear(*[make.step(args=f"look {n}") for n in range(4)])
    assert await scene.records(r.OutcomeReport) == []
    assert await scene.last_escalation() == ANSWERED
    answer = make.intervention(action, r.Actor.OPERATOR, answers=(LOW,))
    await scene.delivered(answer, then=(report(80), act(0)))
    assert await scene.records(r.OutcomeReport) == []
    await scene.hear(act(0))
    judged = {each.intervention: each.outcome for each in await scene.records(r.OutcomeReport)}
    assert judged[id] is r.Outcome.RECOVERED


@pytest.mark.parametrize(
    ("action", "heard", "ending"),
    [
        (r.Action.NUDGE, [], r.Ending.STUCK),
        (r.Action.GRANT_BUDGET, [report(80), act(0)], r.Ending.OUT_OF_BUDGET),
    ],
    ids=["the end came first", "a grant in vain"],
)
async def test_at_the_end_an_outcome_is_what_was_observed(
    scene: Monitored, action: r.Action, heard: list[r.Step], ending: r.Ending
) -> None:
    id = await deliver_answer(scene, replace(NUDGE, action=action))
    await scene.hear(*heard)
    await scene.recorder.end(make.ended(ending))
    await scene.monitor.look()
    (verdict,) = await scene.records(r.OutcomeReport)
    assert (verdict.intervention, verdict.outcome) == (id, r.Outcome.NO_EFFECT)
    assert (await scene.last_escalation()).state is r.EscalationState.CLOSED


async def test_an_answer_that_is_refused_closes_its_escalation(scene: Monitored) -> None:
    await scene.hear(report(10))
    id = await scene.told(ANSWERED, replace(NUDGE, needs_approval=True))
    assert await scene.last_escalation() == ANSWERED
    await scene.told(make.delivery(id, r.DeliveryState.REJECTED))
    assert (await scene.last_escalation()).state is r.EscalationState.CLOSED


async def test_what_was_not_delivered_expires_at_the_end(scene: Monitored) -> None:
    await scene.hear(act(), report(10))
    id = await scene.write(NUDGE)
    await scene.recorder.end(FAILED)
    await scene.monitor.look()
    await scene.monitor.look(everything=True)
    assert await scene.records(r.Delivery) == [make.delivery(id, r.DeliveryState.EXPIRED, step=2)]
    assert (await scene.last_escalation()).state is r.EscalationState.CLOSED
    assert await scene.records(r.OutcomeReport) == []


async def test_a_restart_is_judged_on_the_next_attempt(
    scene: Monitored, attempt: r.Attempt, claim: Claim
) -> None:
    id = await deliver_answer(scene, RESTART)
    await scene.recorder.end(replace(FAILED, ending=r.Ending.RESTARTED))
    await scene.monitor.look()
    assert await scene.records(r.OutcomeReport) == []
    at = attempt.started_at
    second = await scene.journal.add_attempt(task=attempt.task, number=2, at=at, **make.WHOSE)
    successor = await claim(of=second)
    await successor.record(working_transition(), act(1), act(0), act())
    await scene.monitor.look()
    (entry,) = await scene.journal.entries(kinds=[r.OutcomeReport])
    assert entry.attempt == second.id
    assert entry.record == make.outcome(id, step=3, reason="its alerts resolved; a check passed")


async def test_a_monitor_that_starts_anew_says_nothing_twice(scene: Monitored) -> None:
    await deliver_answer(scene, NUDGE)
    await scene.hear(act(), act(), act())
    before = await scene.journal.entries()
    again = scene.watching()
    await again.look()
    assert await scene.journal.entries() == before
    assert again.view(scene.recorder.attempt.id) == scene.view


async def test_a_bus_that_drops_everything_only_delays(scene: Monitored, until: Until) -> None:
    class SilentBus(LocalBus):
        def subscribe(self, attempt: int | None = None) -> Subscription:
            return Subscription()

    running = asyncio.create_task(scene.watching(bus=SilentBus()).run())
    await scene.recorder.record(report(10))
    await until(OPEN)
    running.cancel()
    await asyncio.wait({running})


async def test_a_failing_monitor_tries_again(scene: Monitored, at: datetime, until: Until) -> None:
    failures = iter([OSError("no clock")])

    def clock() -> datetime:
        if error := next(failures, None):
            raise error
        return at

    monitor = scene.watching(clock=clock)
    await scene.recorder.record(report(10))
    running = asyncio.create_task(monitor.run())
    async with asyncio.timeout(120):
        while monitor.fault is None:
            await scene.journal.last_id()
    await scene.recorder.record(act())
    await until(OPEN)
    running.cancel()
    await asyncio.wait({running})
    assert monitor.fault.error == "OSError: no clock"


# -- between two rungs of the ladder ------------------------------------------------------------

ACTS = [make.step(args=f"look {n}") for n in range(3)]


@pytest.fixture
async def escalated_attempt(scene: Monitored) -> Monitored:
    """An attempt that fired an alarm and was asked about."""
    await scene.hear(make.reflecting(0, 10, 10))
    return scene


async def _questions(scene: Monitored) -> list[int]:
    opened = await scene.records(r.Escalation)
    return [each.id for each in opened if each.state is r.EscalationState.OPEN]


async def test_the_next_rung_follows_at_once_where_the_last_was_no_help(
    escalated_attempt: Monitored,
) -> None:
    await escalated_attempt.delivered(ANSWERED, NUDGE, then=(*ACTS,))
    (verdict,) = await escalated_attempt.records(r.OutcomeReport)
    assert verdict.outcome is r.Outcome.NO_EFFECT
    assert await _questions(escalated_attempt) == [1, 2]


@pytest.mark.parametrize(
    ("end", "expected"),
    [(r.Lifecycle.COMPLETED, r.Outcome.RECOVERED), (r.Lifecycle.FAILED, r.Outcome.NO_EFFECT)],
)
async def test_a_split_is_judged_by_what_becomes_of_the_task(
    escalated_attempt: Monitored, at: datetime, end: r.Lifecycle, expected: r.Outcome
) -> None:
    id = await escalated_attempt.write(ANSWERED, replace(NUDGE, action=r.Action.SPLIT))
    await escalated_attempt.recorder.end(make.ended(r.Ending.SPLIT), make.delivery(id))
    await escalated_attempt.monitor.look()
    assert await escalated_attempt.records(r.OutcomeReport) == []
    over = r.Draft(record=make.task_transition(end, reason="as it is"), at=at, task=1)
    await escalated_attempt.journal.commit(r.Commit(drafts=(over,)))
    await escalated_attempt.monitor.look()
    reason = f"the task is {end.value}: as it is"
    judged = r.OutcomeReport(intervention=id, outcome=expected, step=1, reason=reason)
    assert await escalated_attempt.records(r.OutcomeReport) == [judged]


@pytest.mark.parametrize(("requests", "questions"), [(100, [1]), (12, [1, 2])])
async def test_a_person_is_called_in_time_where_guidance_did_not_help_and_the_alert_fell_silent(
    escalated_attempt: Monitored, requests: int, questions: list[int]
) -> None:
    used = [r.Meter(used=spent, limit=float(requests)) for spent in (1, 5)]
    first, last = (r.Change(budget=r.Budget(requests=each)) for each in used)
    await escalated_attempt.recorder.record(first)
    await escalated_attempt.delivered(
        ANSWERED, NUDGE, then=(make.reflecting(0, 10, 80), *ACTS, last)
    )
    assert await _questions(escalated_attempt) == questions
