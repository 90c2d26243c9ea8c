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
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    Change,
    CheckpointDecision,
    Delivery,
    DeliveryState,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Hint,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Step,
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
    transition,
)
from midwatch_stage.reading import records_of

Claim = Callable[..., Awaitable[Recorder]]
Write = Callable[[Record], Awaitable[int]]

LOW = AlertKey(rule="low_confidence")
FAILED = ended(Ending.STUCK)
OPEN = escalation(1, "low_confidence", reason="low_confidence")
ANSWERED = replace(OPEN, state=EscalationState.ANSWERED)
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


@pytest.fixture
def answered(
    recorder: Recorder, monitor: Monitor, write: Write
) -> Callable[[Intervention], Awaitable[int]]:
    """An alert, its escalation, and an answer that has been delivered; the answer's id."""

    async def answer(intervention: Intervention) -> int:
        await recorder.record(act(1), report(10))
        await monitor.look()
        await write(ANSWERED)
        id = await write(intervention)
        await recorder.record(delivery(id))
        await monitor.look()
        return id

    return answer


Answered = Callable[[Intervention], Awaitable[int]]


async def test_an_escalation_is_opened_once(
    journal: Journal, recorder: Recorder, monitor: Monitor
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    await recorder.record(act(), report(10))
    await monitor.look(everything=True)
    assert await records_of(journal, Escalation) == [OPEN]


async def test_it_is_stored_before_the_hint(
    journal: Journal, recorder: Recorder, watching: Callable[..., Monitor]
) -> None:
    class Reading(LocalBus):
        """Notes what could be read at the moment of each hint."""

        def publish(self, hint: Hint) -> None:
            super().publish(hint)
            seen.append(asyncio.ensure_future(journal.entries(kinds=[Escalation])))

    seen: list[asyncio.Future[list[Entry]]] = []
    await recorder.record(report(10))
    await watching(bus=Reading()).look()
    (entries,) = await asyncio.gather(*seen)
    assert [entry.record for entry in entries] == [OPEN]


async def test_what_fires_while_it_is_open_joins_it(
    journal: Journal, recorder: Recorder, monitor: Monitor
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    await recorder.record(report(10, "a", "b", "c"))
    await monitor.look()
    joined = replace(OPEN, alerts=(LOW, AlertKey(rule="multiple_blockers")))
    assert await records_of(journal, Escalation) == [OPEN, joined]


async def test_after_a_cooldown_the_same_attempt_may_be_asked_about_again(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    await write(replace(OPEN, state=EscalationState.CLOSED))
    counts: list[int] = []
    for _ in range(3):
        await recorder.record(act())
        await monitor.look()
        counts.append(len(await records_of(journal, Escalation)))
    assert counts == [2, 2, 3]


async def test_an_alert_about_the_work_waits_for_no_answer_about_reporting(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    told = await write(NUDGE)
    await write(ANSWERED)
    await recorder.record(report(10, "a", "b", "c"))
    await monitor.look()
    await monitor.look()
    *_, closed, opened = await records_of(journal, Escalation)
    assert (closed.id, closed.state) == (1, EscalationState.CLOSED)
    assert (opened.id, opened.alerts) == (2, (AlertKey(rule="multiple_blockers"),))
    (lost,) = await records_of(journal, Delivery)
    assert (lost.intervention, lost.state) == (told, DeliveryState.EXPIRED)


async def test_escalations_are_capped(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    for id in range(1, 6):
        await monitor.look()
        if id <= len({each.id for each in await records_of(journal, Escalation)}):
            await write(replace(OPEN, id=id, state=EscalationState.CLOSED))
        await recorder.record(act(), act(), act())
    assert {each.id for each in await records_of(journal, Escalation)} == {1, 2, 3}


async def test_a_parked_attempt_is_not_escalated(
    journal: Journal, recorder: Recorder, monitor: Monitor
) -> None:
    await recorder.record(transition(Lifecycle.INPUT_REQUIRED), report(10))
    await monitor.look()
    assert await records_of(journal, Escalation) == []


@pytest.mark.parametrize("told", [True, False])
async def test_an_attempt_that_is_to_stop_is_not_escalated(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write, told: bool
) -> None:
    stop = await write(intervention(Action.STOP))
    await recorder.record(*([delivery(stop)] if told else []), report(10))
    await monitor.look()
    assert await records_of(journal, Escalation) == []


async def test_in_mode_off_nothing_is_escalated(
    journal: Journal, recorder: Recorder, watching: Callable[..., Monitor]
) -> None:
    await recorder.record(report(10))
    await watching(settings=Settings(mode=Mode.OFF)).look()
    assert await records_of(journal, Escalation) == []


async def test_the_outcome_is_judged_after_so_many_steps_and_closes_the_escalation(
    journal: Journal, recorder: Recorder, monitor: Monitor, answered: Answered
) -> None:
    id = await answered(NUDGE)
    await recorder.record(report(80), act(0))
    await monitor.look()
    assert await records_of(journal, OutcomeReport) == []
    await recorder.record(act(0))
    await monitor.look()
    verdict = outcome(id, step=5, reason="its alerts resolved; a check passed")
    assert await records_of(journal, OutcomeReport) == [verdict]
    closed = replace(OPEN, state=EscalationState.CLOSED, reason=verdict.reason)
    assert (await records_of(journal, Escalation))[-1] == closed


@pytest.mark.parametrize("action", [Action.NUDGE, Action.ACKNOWLEDGE])
async def test_a_question_beside_the_work_is_judged_from_the_persons_answer_on(
    journal: Journal,
    recorder: Recorder,
    monitor: Monitor,
    write: Write,
    answered: Answered,
    action: Action,
) -> None:
    await recorder.record(Change(acts=(Action.NUDGE, Action.STOP)))
    id = await answered(replace(NUDGE, action=Action.ASK_OPERATOR))
    await recorder.record(*[step(args=f"look {n}") for n in range(4)])
    await monitor.look()
    assert await records_of(journal, OutcomeReport) == []
    assert (await records_of(journal, Escalation))[-1] == ANSWERED
    answer = await write(intervention(action, Actor.OPERATOR, answers=(LOW,)))
    await recorder.record(delivery(answer), report(80), act(0))
    await monitor.look()
    assert await records_of(journal, OutcomeReport) == []
    await recorder.record(act(0))
    await monitor.look()
    judged = {each.intervention: each.outcome for each in await records_of(journal, OutcomeReport)}
    assert judged[id] is Outcome.RECOVERED


async def test_a_worker_that_only_says_it_is_better_is_not_better(
    journal: Journal, recorder: Recorder, monitor: Monitor, answered: Answered
) -> None:
    await answered(NUDGE)
    await recorder.record(report(80), report(90), report(95))
    await monitor.look()
    (verdict,) = await records_of(journal, OutcomeReport)
    assert verdict.outcome is Outcome.NO_EFFECT


async def test_another_alarm_makes_it_worse(
    journal: Journal, recorder: Recorder, monitor: Monitor, answered: Answered
) -> None:
    await answered(NUDGE)
    await recorder.record(report(80, decision=CheckpointDecision.ESCALATE), act(0), act())
    await monitor.look()
    (verdict,) = await records_of(journal, OutcomeReport)
    reason = "then explicit_escalation fired as well"
    assert (verdict.outcome, verdict.reason) == (Outcome.MADE_WORSE, reason)


async def test_the_outcome_is_judged_at_the_end_if_that_comes_first(
    journal: Journal, recorder: Recorder, monitor: Monitor, answered: Answered
) -> None:
    id = await answered(NUDGE)
    await recorder.end(FAILED)
    await monitor.look()
    (verdict,) = await records_of(journal, OutcomeReport)
    assert (verdict.intervention, verdict.outcome) == (id, Outcome.NO_EFFECT)
    assert (await records_of(journal, Escalation))[-1].state is EscalationState.CLOSED


@pytest.mark.parametrize(
    ("ending", "expected"),
    [(Ending.DONE, Outcome.RECOVERED), (Ending.OUT_OF_BUDGET, Outcome.NO_EFFECT)],
)
async def test_a_grant_has_helped_if_the_work_went_on_and_the_budget_did_not_end(
    journal: Journal,
    recorder: Recorder,
    monitor: Monitor,
    answered: Answered,
    ending: Ending,
    expected: Outcome,
) -> None:
    id = await answered(replace(NUDGE, action=Action.GRANT_BUDGET))
    await recorder.record(report(80), act(0))
    await recorder.end(ended(ending))
    await monitor.look()
    (verdict,) = await records_of(journal, OutcomeReport)
    assert (verdict.intervention, verdict.outcome) == (id, expected)


async def test_an_answer_that_is_refused_closes_its_escalation(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(report(10))
    await monitor.look()
    await write(ANSWERED)
    id = await write(replace(NUDGE, needs_approval=True))
    await monitor.look()
    assert (await records_of(journal, Escalation))[-1] == ANSWERED
    await write(delivery(id, DeliveryState.REJECTED))
    await monitor.look()
    assert (await records_of(journal, Escalation))[-1].state is EscalationState.CLOSED


async def test_what_was_not_delivered_expires_at_the_end(
    journal: Journal, recorder: Recorder, monitor: Monitor, write: Write
) -> None:
    await recorder.record(act(), report(10))
    await monitor.look()
    id = await write(NUDGE)
    await recorder.end(FAILED)
    await monitor.look()
    await monitor.look(everything=True)
    expired = delivery(id, DeliveryState.EXPIRED, step=2)
    assert await records_of(journal, Delivery) == [expired]
    assert (await records_of(journal, Escalation))[-1].state is EscalationState.CLOSED
    assert await records_of(journal, OutcomeReport) == []


async def test_a_restart_is_judged_on_the_next_attempt(
    journal: Journal, attempt: Attempt, recorder: Recorder, claim: Claim,
    monitor: Monitor, answered: Answered,
) -> None:  # fmt: skip
    id = await answered(RESTART)
    await recorder.end(replace(FAILED, ending=Ending.RESTARTED))
    await monitor.look()
    assert await records_of(journal, OutcomeReport) == []
    at = attempt.started_at
    second = await journal.add_attempt(task=attempt.task, number=2, at=at, **WHOSE)
    successor = await claim(of=second)
    await successor.record(working_transition(), act(1), act(0), act())
    await monitor.look()
    (entry,) = await journal.entries(kinds=[OutcomeReport])
    assert entry.attempt == second.id
    assert entry.record == outcome(id, step=3, reason="its alerts resolved; a check passed")


async def test_a_monitor_that_starts_anew_says_nothing_twice(
    journal: Journal, recorder: Recorder, monitor: Monitor, answered: Answered,
    watching: Callable[..., Monitor],
) -> None:  # fmt: skip
    await answered(NUDGE)
    await recorder.record(act(), act(), act())
    await monitor.look()
    before = await journal.entries()
    again = watching()
    await again.look()
    assert await journal.entries() == before
    one, other = (each.view(recorder.attempt.id) for each in (monitor, again))
    assert one is not None
    assert other is not None
    assert other == one


async def test_a_bus_that_drops_everything_only_delays(
    journal: Journal,
    recorder: Recorder,
    watching: Callable[..., Monitor],
    until: Callable[[Record], Awaitable[Entry]],
) -> None:
    class Deaf(LocalBus):
        def subscribe(self, attempt: int | None = None) -> Subscription:
            return Subscription()

    running = asyncio.create_task(watching(bus=Deaf()).run())
    await recorder.record(report(10))
    await until(OPEN)
    running.cancel()
    await asyncio.wait({running})


async def test_a_monitor_that_fails_tries_again(
    journal: Journal, at: datetime, recorder: Recorder, watching: Callable[..., Monitor],
    until: Callable[[Record], Awaitable[Entry]],
) -> None:  # fmt: skip
    failures = iter([OSError("no clock")])

    def clock() -> datetime:
        if error := next(failures, None):
            raise error
        return at

    monitor = watching(clock=clock)
    await recorder.record(report(10))
    running = asyncio.create_task(monitor.run())
    async with asyncio.timeout(120):
        while monitor.fault is None:
            await journal.last_id()
    await recorder.record(act())
    await until(OPEN)
    running.cancel()
    await asyncio.wait({running})
    assert monitor.fault.error == "OSError: no clock"
