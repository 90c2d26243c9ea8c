"""Where events enter: numbered, judged and stored as one."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_tests.factories import ended, plan, reflecting, task_transition
from midwatch_tests.reading import records_of

Claim = Callable[..., Awaitable[Recorder]]


def act(request: int = 1, call: str = "") -> r.Step:
    return r.Step(number=0, kind=r.StepKind.TOOL, tool="t", args=call, request=request, call=call)


def report(progress: int, confidence: int) -> r.Step:
    return reflecting(0, progress, confidence)


async def test_steps_are_numbered_without_gaps_and_heard_so(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    before = await journal.last_id()
    heard: list[r.Entry] = []
    recorder.listeners.append(heard.extend)
    await recorder.record(working_transition(), act())
    await asyncio.gather(*(recorder.record(act(call=str(n))) for n in range(20)))
    assert heard == await journal.entries(before)
    assert [entry.seq for entry in heard] == list(range(1, 23))
    assert [step.number for step in await records_of(journal, r.Step)] == list(range(1, 22))


async def test_what_belongs_together_is_stored_as_one(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    message, result = r.Message(index=0, body=b"[]"), r.Result(call="1:a", body=b"{}")
    before = journal.transactions
    await recorder.record(report(10, 5), messages=[message], results=[result])
    assert journal.transactions - before == 1
    entries = await journal.entries()
    assert [type(entry.record) for entry in entries[-2:]] == [r.Step, r.Alert]
    with pytest.raises(StaleIncarnationError):
        await recorder.record(act(), messages=[message])
    assert await journal.entries() == entries
    assert await journal.results(recorder.attempt.id) == [result]


async def test_a_hint_comes_after_its_entry(journal: Journal, bus: LocalBus, claim: Claim) -> None:
    recorder = await claim()
    async with bus.subscribe() as hints:
        (entry,) = await recorder.record(act())
        (hint,) = await hints.wait()
    assert (hint.entry, hint.kind, hint.attempt) == (entry.id, "step", recorder.attempt.id)


async def test_an_event_without_a_time_gets_the_recorders(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    await recorder.record(act(), r.Change(reflect=True))
    assert {step.at for step in await records_of(journal, r.Step)} == {recorder.clock()}
    assert {change.at for change in await records_of(journal, r.Change)} == {recorder.clock()}


async def test_a_rebuilt_recorder_is_what_the_living_one_was(claim: Claim) -> None:
    live = await claim()
    budget = r.Budget(requests=r.Meter(used=2, limit=9))
    began = r.Change(plan_step=1, reflect_every=6, budget=budget)
    await live.record(working_transition(), plan("a", "b"), began)
    await live.record(act(1, "call"), report(10, 80))
    await live.record(r.Change(plan_step=2), act(2), report(10, 20), report(10, 20))
    rebuilt = await claim()
    for name in (
        *("plan", "budget", "lifecycle", "last_step", "last_request", "reflect_every"),
        *("plan_step_began", "checkpoints", "firing", "health"),
    ):
        assert getattr(rebuilt, name) == getattr(live, name), name
    assert rebuilt.health is r.Health.SUSPECT
    # The checkpoint of the first plan step ended with it.
    assert [said.progress_percent for _, said in rebuilt.checkpoints] == [10, 10]
    assert rebuilt.plan_step_began == 1
    assert rebuilt.knows("call", request=1)
    assert not rebuilt.knows("call", request=2)


async def test_a_rebuilt_recorder_goes_on_where_another_stopped(
    journal: Journal, claim: Claim
) -> None:
    live = await claim()
    await live.record(working_transition(), report(10, 80), report(10, 80))
    rebuilt = await claim()
    await rebuilt.record(report(10, 80))
    assert [alert.key.rule for alert in rebuilt.firing] == ["stalled_progress"]
    assert [step.number for step in await records_of(journal, r.Step)] == [1, 2, 3]
    assert [alert.evidence for alert in await records_of(journal, r.Alert)] == [(1, 2, 3)]


async def test_what_is_recorded_at_once_or_soon_is_refused_where_another_took_the_attempt_over(
    journal: Journal, claim: Claim
) -> None:
    old, new = await claim(), await claim()

    async def record_again_and_again() -> None:
        while True:
            old.record_soon(act())
            await journal.last_id()

    with pytest.raises(StaleIncarnationError):
        await asyncio.wait_for(record_again_and_again(), 120)
    with pytest.raises(StaleIncarnationError):
        await old.record(act())
    assert await records_of(journal, r.Step) == []
    await new.record(act())
    assert len(await records_of(journal, r.Step)) == 1


async def test_at_the_end_nothing_fires_nor_may_follow(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    await recorder.record(working_transition(), report(10, 5))
    over = ended(r.Ending.STUCK, reason="r")
    await recorder.end(over, task_transition(r.Lifecycle.FAILED))
    assert recorder.firing == ()
    alerts = await records_of(journal, r.Alert)
    assert [alert.resolution for alert in alerts] == [None, r.Resolution.ENDED]
    assert (await records_of(journal, r.AttemptTransition))[-1] == over
    with pytest.raises(StaleIncarnationError):
        await recorder.record(working_transition())


async def test_in_mode_off_nothing_is_judged(journal: Journal, claim: Claim) -> None:
    recorder = await claim(Settings(mode=Mode.OFF))
    await recorder.record(report(10, 5))
    assert (recorder.firing, recorder.health) == ((), r.Health.NOT_JUDGED)
    assert await records_of(journal, r.Alert) == []


async def test_a_record_is_stored_though_nobody_waits_for_it(
    journal: Journal, claim: Claim
) -> None:
    recorder = await claim()
    cancelled = asyncio.create_task(recorder.record(act()))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    await recorder.record(act())
    entries = await journal.entries(kinds=(r.Step,))
    assert cancelled.cancelled()
    assert [entry.seq for entry in entries] == [1, 2]
