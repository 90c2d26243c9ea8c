"""A monitor that shares the attempts acts on those that it holds, and on nothing twice."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.guards import Guards, Unguarded
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import AlertKey, Attempt, Escalation, EscalationState, OutcomeReport
from midwatch_supervisor.fleet.monitors.leases import Leases
from midwatch_tests.factories import WHOSE, delivery, ended, intervention, reflecting
from midwatch_tests.reading import records_of

LOW = AlertKey(rule="low_confidence")
NUDGE = intervention(escalation=1, answers=(LOW,))
OVER = ended()
UNSURE = reflecting(0, 10, 10)


@pytest.fixture
def elapsed_seconds() -> list[float]:
    """The seconds that have passed, which a test adds to."""
    return [0.0]


@pytest.fixture
def make_leases(
    journal: Journal, at: datetime, elapsed_seconds: list[float]
) -> Callable[[str], Leases]:
    """The leases of a monitor of that name, for a minute at a time."""

    def lease(holder: str) -> Leases:
        monitor_leases = MonitorLeases(journal, clock=lambda: at)
        return Leases(
            monitor_leases, holder=holder, lease_seconds=60, seconds=lambda: elapsed_seconds[-1]
        )

    return lease


@pytest.fixture
def settings() -> Settings:
    return Settings(monitor=MonitorSettings(outcome_after=1))


MakeLeases = Callable[[str], Leases]
MakeMonitor = Callable[..., Monitor]


async def test_what_was_missed_is_looked_at_once_it_is_held_and_finished_once_it_is_judged(
    journal: Journal, recorder: Recorder, make_leases: MakeLeases, make_monitor: MakeMonitor
) -> None:
    leases = make_leases("a")
    monitor = make_monitor(guards=leases)
    await recorder.record(UNSURE)
    await monitor.look(everything=True)
    assert (await records_of(journal, Escalation), monitor.unfinished) == ([], {1})
    turnover = await leases.take([1])
    assert turnover.won == {1}
    monitor.touch(turnover.won)
    await monitor.look()
    assert [each.id for each in await records_of(journal, Escalation)] == [1]
    await recorder.end(OVER)
    assert monitor.unfinished == {1}
    await monitor.look()
    assert (monitor.unfinished, monitor.finished) == (frozenset(), {1})
    await leases.finish(monitor.finished)
    assert not leases.holds(1)


async def test_what_is_won_while_a_look_reads_is_looked_at_by_that_look(
    journal: Journal, recorder: Recorder, make_leases: MakeLeases, make_monitor: MakeMonitor
) -> None:
    class WonLater(Unguarded):
        """Everything is held, but not yet when the first look begins."""

        def __init__(self) -> None:
            self.moments: list[Guards] = [make_leases("nobody").now()]

        def now(self) -> Guards:
            return self.moments.pop() if self.moments else Unguarded()

    guards = WonLater()
    monitor = make_monitor(guards=guards)
    guards.moments.append(make_leases("nobody").now())  # one was taken when the monitor was made
    await recorder.record(UNSURE)
    await monitor.look()
    assert [each.id for each in await records_of(journal, Escalation)] == [1]


async def test_of_two_monitors_one_asks_and_one_judges(
    journal: Journal,
    recorder: Recorder,
    make_leases: MakeLeases,
    make_monitor: MakeMonitor,
    attempt: Attempt,
) -> None:
    held = [make_leases("a"), make_leases("b")]
    monitors = [make_monitor(guards=each) for each in held]

    async def all_look() -> None:
        for leases, monitor in zip(held, monitors, strict=True):
            monitor.touch((await leases.take([attempt.id])).won)
        for monitor in monitors:
            await monitor.look(everything=True)

    await recorder.record(UNSURE)
    await all_look()
    asked = (await records_of(journal, Escalation))[0]
    (id,) = [entry.id for entry in await recorder.record(NUDGE)]
    await recorder.record(delivery(id))
    for leases in held:
        await all_look()
        await leases.release()
    await recorder.record(UNSURE)
    await all_look()
    await recorder.end(OVER)
    await all_look()
    assert [each.intervention for each in await records_of(journal, OutcomeReport)] == [id]
    states = [each.state for each in await records_of(journal, Escalation) if each.id == asked.id]
    assert states == [EscalationState.OPEN, EscalationState.CLOSED]


async def test_who_lost_an_attempt_says_nothing_more_of_it_and_goes_on_with_the_others(
    journal: Journal,
    recorder: Recorder,
    make_leases: MakeLeases,
    make_monitor: MakeMonitor,
    attempt: Attempt,
    claim: Callable[..., Awaitable[Recorder]],
    at: datetime,
) -> None:
    second = await journal.add_attempt(task=attempt.task, number=2, at=at, **WHOSE)
    leases, other = make_leases("a"), make_leases("b")
    monitor = make_monitor(guards=leases)
    await leases.take([attempt.id, second.id])
    # In the journal, unknown to it.
    await MonitorLeases(journal, clock=lambda: at).release(holder="a")
    await other.take([attempt.id])
    later = await claim(of=second)
    await later.record(working_transition(), UNSURE)
    await recorder.record(UNSURE)
    await monitor.look()
    assert [each.attempt for each in await records_of(journal, Escalation)] == [second.id]
    assert leases.holds(attempt.id)


async def test_a_lease_that_cannot_be_renewed_runs_out_here_too(
    journal: Journal,
    recorder: Recorder,
    make_leases: MakeLeases,
    make_monitor: MakeMonitor,
    elapsed_seconds: list[float],
) -> None:
    leases = make_leases("a")
    monitor = make_monitor(guards=leases)
    await leases.take([1])
    elapsed_seconds.append(60.0)
    await recorder.record(UNSURE)
    await monitor.look()
    assert (leases.holds(1), await records_of(journal, Escalation)) == (False, [])
    assert (await leases.take([1])).won == {1}  # nobody took it, but something was missed
