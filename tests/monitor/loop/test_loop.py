"""The monitor's loop: one question at a time, and every answer judged."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.bus import LocalBus, Subscription
from midwatch_monitor.config.settings import (
    Mode,
    MonitorSettings,
    PolicySettings,
    Settings,
    SupervisorSettings,
)
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    CheckpointDecision,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Hint,
    Intervention,
    Lifecycle,
    Meter,
    Outcome,
    OutcomeReport,
    Record,
    Step,
    TaskTransition,
)
from midwatch_stage.factories import (
    WHOSE,
    delivery,
    ended,
    escalation,
    intervention,
    outcome,
    reflecting,
    step,
    task_transition,
    transition,
)
from midwatch_stage.monitored import Monitored

Claim = Callable[..., Awaitable[Recorder]]
Until = Callable[[Record], Awaitable[Entry]]

LOW = AlertKey(rule="low_confidence")
FAILED = ended(Ending.STUCK)
OPEN = escalation(1, "low_confidence", reason="low_confidence")
ANSWERED = replace(OPEN, state=EscalationState.ANSWERED)
CLOSED = replace(OPEN, state=EscalationState.CLOSED)
NUDGE = intervention(escalation=1, answers=(LOW,))
RESTART = replace(NUDGE, action=Action.RESTART)


def report(
    confidence: int, *blockers: str, decision: CheckpointDecision = CheckpointDecision.CONTINUE
) -> Step:
    return reflecting(0, confidence, confidence, blockers=blockers, decision=decision)


def act(exit_code: int | None = None) -> Step:
    return step(args="pytest", ok=None, exit_code=exit_code)


@pytest.fixture
def settings() -> Settings:
    return Settings(
        monitor=MonitorSettings(poll_seconds=0.01, outcome_after=3),
        supervisor=SupervisorSettings(cooldown=3),
        policy=PolicySettings(max_escalations=2),
    )


async def answered(scene: Monitored, answer: Intervention) -> int:
    """An alert, its escalation, and an answer that has been delivered; the answer's id."""
    await scene.hear(act(1), report(10))
    return await scene.delivered(ANSWERED, answer)


async def test_an_escalation_is_opened_once(scene: Monitored) -> None:
    await scene.hear(report(10))
    await scene.recorder.record(act(), report(10))
    await scene.monitor.look(everything=True)
    assert await scene.records(Escalation) == [OPEN]


async def test_it_is_stored_before_the_hint(scene: Monitored) -> None:
    class Reading(LocalBus):
        """Notes what could be read at the moment of each hint."""

        def publish(self, hint: Hint) -> None:
            super().publish(hint)
            seen.append(asyncio.ensure_future(scene.records(Escalation)))

    seen: list[asyncio.Future[list[Escalation]]] = []
    await scene.recorder.record(report(10))
    await scene.watching(bus=Reading()).look()
    assert await asyncio.gather(*seen) == [[OPEN]]


async def test_what_fires_while_it_is_open_joins_it(scene: Monitored) -> None:
    await scene.hear(report(10))
    await scene.hear(report(10, "a", "b", "c"))
    joined = replace(OPEN, alerts=(LOW, AlertKey(rule="multiple_blockers")))
    assert await scene.records(Escalation) == [OPEN, joined]


async def test_after_a_cooldown_the_same_attempt_may_be_asked_about_again(scene: Monitored) -> None:
    await scene.hear(report(10))
    await scene.write(CLOSED)
    counts: list[int] = []
    for _ in range(3):
        await scene.hear(act())
        counts.append(len(await scene.records(Escalation)))
    assert counts == [2, 2, 3]


async def test_an_alert_about_the_work_waits_for_no_answer_about_reporting(
    scene: Monitored,
) -> None:
    await scene.hear(report(10))
    told = await scene.write(NUDGE)
    await scene.write(ANSWERED)
    await scene.hear(report(10, "a", "b", "c"))
    await scene.monitor.look()
    *_, closed, opened = await scene.records(Escalation)
    assert (closed.id, closed.state) == (1, EscalationState.CLOSED)
    assert (opened.id, opened.alerts) == (2, (AlertKey(rule="multiple_blockers"),))
    (lost,) = await scene.records(Delivery)
    assert (lost.intervention, lost.state) == (told, DeliveryState.EXPIRED)


async def test_escalations_are_capped(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    for id in range(1, 6):
        await scene.monitor.look()
        if id <= len({each.id for each in await scene.records(Escalation)}):
            await scene.write(replace(CLOSED, id=id))
        await scene.recorder.record(act(), act(), act())
    assert {each.id for each in await scene.records(Escalation)} == {1, 2, 3}


async def test_in_mode_off_nothing_is_escalated(scene: Monitored) -> None:
    await scene.recorder.record(report(10))
    await scene.watching(settings=Settings(mode=Mode.OFF)).look()
    assert await scene.records(Escalation) == []


ACKNOWLEDGED = intervention(Action.ACKNOWLEDGE, Actor.OPERATOR, answers=(LOW,))
SILENCED = replace(ACKNOWLEDGED, action=Action.SILENCE)


@pytest.mark.parametrize(
    ("said", "state", "asked"),
    [
        (ACKNOWLEDGED, None, [OPEN]),
        (SILENCED, None, []),
        (ACKNOWLEDGED, transition(Lifecycle.INPUT_REQUIRED), []),
        (ACKNOWLEDGED, FAILED, []),
    ],
    ids=["acknowledged", "silenced", "parked", "over"],
)
async def test_the_monitor_takes_what_a_person_says_of_an_alert_once_and_escalates_none_silenced(
    scene: Monitored, said: Intervention, state: AttemptTransition | None, asked: list[Escalation]
) -> None:
    await scene.recorder.record(report(10), *([state] if state else []))
    id = await scene.told(said)
    await scene.monitor.look(everything=True)
    assert await scene.records(Delivery) == [delivery(id, step=1)]
    assert await scene.records(Escalation) == asked
    assert (scene.view.trials, await scene.records(OutcomeReport)) == ({}, [])
    before = await scene.journal.entries()
    await scene.watching().look(everything=True)
    assert await scene.journal.entries() == before


async def test_what_was_not_silenced_is_still_escalated(scene: Monitored) -> None:
    await scene.told(SILENCED)
    await scene.hear(report(10, "a", "b", "c"))
    (opened,) = await scene.records(Escalation)
    assert opened.alerts == (AlertKey(rule="multiple_blockers"),)


async def test_the_outcome_is_judged_after_so_many_steps_and_closes_the_escalation(
    scene: Monitored,
) -> None:
    id = await answered(scene, NUDGE)
    await scene.hear(report(80), act(0))
    assert await scene.records(OutcomeReport) == []
    await scene.hear(act(0))
    verdict = outcome(id, step=5, reason="its alerts resolved; a check passed")
    assert await scene.records(OutcomeReport) == [verdict]
    assert await scene.last_escalation() == replace(CLOSED, reason=verdict.reason)


@pytest.mark.parametrize("action", [Action.NUDGE, Action.ACKNOWLEDGE])
async def test_a_question_beside_the_work_is_judged_from_the_persons_answer_on(
    scene: Monitored, action: Action
) -> None:
    await scene.recorder.record(Change(acts=(Action.NUDGE, Action.STOP)))
    id = await answered(scene, replace(NUDGE, action=Action.ASK_OPERATOR))
    await scene.hear(*[step(args=f"look {n}") for n in range(4)])
    assert await scene.records(OutcomeReport) == []
    assert await scene.last_escalation() == ANSWERED
    answer = intervention(action, Actor.OPERATOR, answers=(LOW,))
    await scene.delivered(answer, then=(report(80), act(0)))
    assert await scene.records(OutcomeReport) == []
    await scene.hear(act(0))
    judged = {each.intervention: each.outcome for each in await scene.records(OutcomeReport)}
    assert judged[id] is Outcome.RECOVERED


NO_EFFECT, WORSE = Outcome.NO_EFFECT, Outcome.MADE_WORSE
ASKS = report(80, decision=CheckpointDecision.ESCALATE)


@pytest.mark.parametrize(
    ("action", "heard", "ending", "expected", "reason"),
    [
        (
            Action.NUDGE,
            [ASKS, act(0), act()],
            None,
            WORSE,
            "then explicit_escalation fired as well",
        ),
        (Action.NUDGE, [], Ending.STUCK, NO_EFFECT, ""),
        (Action.GRANT_BUDGET, [report(80), act(0)], Ending.OUT_OF_BUDGET, NO_EFFECT, ""),
    ],
    ids=["another alarm", "the end came first", "a grant in vain"],
)
async def test_an_outcome_is_what_was_observed(
    scene: Monitored,
    action: Action,
    heard: list[Step],
    ending: Ending | None,
    expected: Outcome,
    reason: str,
) -> None:
    id = await answered(scene, replace(NUDGE, action=action))
    await scene.hear(*heard)
    if ending is not None:
        await scene.recorder.end(ended(ending))
        await scene.monitor.look()
    (verdict,) = await scene.records(OutcomeReport)
    assert (verdict.intervention, verdict.outcome) == (id, expected)
    assert reason in verdict.reason
    closed = {e.id for e in await scene.records(Escalation) if e.state is EscalationState.CLOSED}
    assert closed == {1}


async def test_an_answer_that_is_refused_closes_its_escalation(scene: Monitored) -> None:
    await scene.hear(report(10))
    id = await scene.told(ANSWERED, replace(NUDGE, needs_approval=True))
    assert await scene.last_escalation() == ANSWERED
    await scene.told(delivery(id, DeliveryState.REJECTED))
    assert (await scene.last_escalation()).state is EscalationState.CLOSED


async def test_what_was_not_delivered_expires_at_the_end(scene: Monitored) -> None:
    await scene.hear(act(), report(10))
    id = await scene.write(NUDGE)
    await scene.recorder.end(FAILED)
    await scene.monitor.look()
    await scene.monitor.look(everything=True)
    assert await scene.records(Delivery) == [delivery(id, DeliveryState.EXPIRED, step=2)]
    assert (await scene.last_escalation()).state is EscalationState.CLOSED
    assert await scene.records(OutcomeReport) == []


async def test_a_restart_is_judged_on_the_next_attempt(
    scene: Monitored, attempt: Attempt, claim: Claim
) -> None:
    id = await answered(scene, RESTART)
    await scene.recorder.end(replace(FAILED, ending=Ending.RESTARTED))
    await scene.monitor.look()
    assert await scene.records(OutcomeReport) == []
    at = attempt.started_at
    second = await scene.journal.add_attempt(task=attempt.task, number=2, at=at, **WHOSE)
    successor = await claim(of=second)
    await successor.record(working_transition(), act(1), act(0), act())
    await scene.monitor.look()
    (entry,) = await scene.journal.entries(kinds=[OutcomeReport])
    assert entry.attempt == second.id
    assert entry.record == outcome(id, step=3, reason="its alerts resolved; a check passed")


async def test_a_monitor_that_starts_anew_says_nothing_twice(scene: Monitored) -> None:
    await answered(scene, NUDGE)
    await scene.hear(act(), act(), act())
    before = await scene.journal.entries()
    again = scene.watching()
    await again.look()
    assert await scene.journal.entries() == before
    assert again.view(scene.recorder.attempt.id) == scene.view


async def test_a_bus_that_drops_everything_only_delays(scene: Monitored, until: Until) -> None:
    class Deaf(LocalBus):
        def subscribe(self, attempt: int | None = None) -> Subscription:
            return Subscription()

    running = asyncio.create_task(scene.watching(bus=Deaf()).run())
    await scene.recorder.record(report(10))
    await until(OPEN)
    running.cancel()
    await asyncio.wait({running})


async def test_a_monitor_that_fails_tries_again(
    scene: Monitored, at: datetime, until: Until
) -> None:
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

ACTS = [step(args=f"look {n}") for n in range(3)]


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


@pytest.mark.parametrize(
    ("end", "expected", "reason"),
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
    asked: Monitored, at: datetime, end: TaskTransition, expected: Outcome, reason: str
) -> None:
    id = await asked.write(ANSWERED, replace(NUDGE, action=Action.SPLIT))
    await asked.recorder.end(ended(Ending.SPLIT), delivery(id))
    await asked.monitor.look()
    assert await asked.records(OutcomeReport) == []
    await asked.journal.commit(Commit(drafts=(Draft(record=end, at=at, task=1),)))
    await asked.monitor.look()
    judged = OutcomeReport(intervention=id, outcome=expected, step=1, reason=reason)
    assert await asked.records(OutcomeReport) == [judged]


@pytest.mark.parametrize(("requests", "questions"), [(100, [1]), (12, [1, 2])])
async def test_a_person_is_called_in_time_where_guidance_did_not_help_and_the_alert_fell_silent(
    asked: Monitored, requests: int, questions: list[int]
) -> None:
    used = [Meter(used=spent, limit=float(requests)) for spent in (1, 5)]
    first, last = (Change(budget=Budget(requests=each)) for each in used)
    await asked.recorder.record(first)
    await asked.delivered(ANSWERED, NUDGE, then=(reflecting(0, 10, 80), *ACTS, last))
    assert await _questions(asked) == questions
