"""The monitor's loop sees what no event tells: nothing is heard, or nothing moves."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.silence import SILENT
from midwatch_tests.factories import ended, escalation, step
from midwatch_tests.reading import records_of

Claim = Callable[..., Awaitable[Recorder]]
SilenceRow = tuple[str, r.AlertState, r.Resolution | None, int]

FIRES = ("", r.AlertState.FIRING, None)
CLEARED = ("", r.AlertState.RESOLVED, r.Resolution.CLEARED)
ENDED = ended(r.Ending.STUCK)


@dataclass
class Scene:
    """One attempt under a monitor, at minutes after the attempt's beginning."""

    recorder: Recorder
    bus: LocalBus
    begin: datetime
    settings: Settings

    def __post_init__(self) -> None:
        self.now = self.begin
        self.monitor = self.another()

    def another(self) -> Monitor:
        """A monitor that begins now."""
        of: dict[str, Any] = {"journal": self.recorder.journal, "bus": self.bus, "run": 1}
        return Monitor(settings=self.settings, clock=lambda: self.now, **of)

    def at(self, minutes: float) -> datetime:
        return self.begin + timedelta(minutes=minutes)

    async def look(self, minutes: float) -> None:
        """Let the monitor look at that minute."""
        self.now = self.at(minutes)
        await self.monitor.look()

    async def hear(self, minutes: float, event: r.Step | r.Change) -> None:
        """Something happens, and the monitor looks a moment later."""
        await self.recorder.record(replace(event, at=self.at(minutes)))
        await self.look(minutes + 0.01)

    async def recorded_silences(self) -> list[SilenceRow]:
        """What the journal holds of silence, in order."""
        return [
            (each.key.subject, each.state, each.resolution, each.step)
            for each in await records_of(self.recorder.journal, r.Alert)
            if each.key.rule == SILENT.rule
        ]


@pytest.fixture
def scene(claim: Claim, bus: LocalBus, at: datetime) -> Callable[..., Awaitable[Scene]]:
    """An attempt that began to work at minute 0."""

    async def begin(*, mode: Mode = Mode.ACT, **silence: Any) -> Scene:
        recorder = await claim()
        await recorder.record(working_transition(), r.Change(lifecycle=r.Lifecycle.WORKING))
        rules = {"silence": {"unmoved": 0, "cooldown": 0, **silence}}
        return Scene(recorder, bus, at, Settings.model_validate({"mode": mode, "rules": rules}))

    return begin


Begin = Callable[..., Awaitable[Scene]]


async def test_silence_is_one_question_without_a_hint_and_health_is_unknown(scene: Begin) -> None:
    silence = await scene()
    await silence.hear(1, r.Change(activity=r.Activity.MODEL))
    for minute in (10.9, 11, 12, 40):
        await silence.look(minute)
    assert await silence.recorded_silences() == [(*FIRES, 0)]
    view = silence.monitor.view(1)
    assert view is not None
    assert view.state.health is r.Health.UNKNOWN
    assert await records_of(silence.recorder.journal, r.Escalation) == [
        escalation(1, "silence", reason="silence")
    ]


async def test_a_sign_of_life_clears_it_and_the_next_silence_fires_anew(scene: Begin) -> None:
    silence = await scene()
    await silence.hear(1, step(args="1"))
    await silence.look(32)
    await silence.hear(33, step(args="2"))
    await silence.look(64)
    assert await silence.recorded_silences() == [(*FIRES, 1), (*CLEARED, 2), (*FIRES, 2)]


async def test_a_silence_ends_with_the_attempt(scene: Begin) -> None:
    silence = await scene()
    await silence.look(0)
    await silence.look(30)
    silence.now = silence.at(31)
    await silence.recorder.end(ENDED)
    await silence.look(31)
    await silence.look(500)
    assert (await silence.recorded_silences())[1:] == [
        ("", r.AlertState.RESOLVED, r.Resolution.ENDED, 0)
    ]


async def test_who_starts_anew_repeats_nothing(
    scene: Begin, claim: Claim, journal: Journal
) -> None:
    silence = await scene()
    await silence.look(0)
    await silence.look(30)
    silence.monitor = silence.another()
    for minute in (31, 90):
        await silence.look(minute)
    await silence.hear(91, step())
    await silence.look(122)
    assert await silence.recorded_silences() == [(*FIRES, 0), (*CLEARED, 1), (*FIRES, 1)]
    before = await journal.last_id()
    assert (await claim()).firing == ()  # a recorder leaves alerts of time alone
    assert await journal.last_id() == before


async def test_the_time_before_the_monitor_began_is_held_against_nobody(scene: Begin) -> None:
    silence = await scene(unmoved="1h")
    await silence.look(600)
    assert await silence.recorded_silences() == []
    await silence.hear(601, r.Change(lifecycle=r.Lifecycle.WORKING, activity=r.Activity.COMMAND))
    await silence.look(630)
    assert await silence.recorded_silences() == []
    await silence.look(631)
    assert await silence.recorded_silences() == [(*FIRES, 0)]


async def test_limits_are_the_workers_and_in_mode_off_there_are_none(
    scene: Begin, attempt: r.Attempt
) -> None:
    silence, off = (
        await scene(workers={attempt.worker: {"command": "5m"}}),
        await scene(mode=Mode.OFF),
    )
    for minute in (0, 5):
        await off.look(minute * 1000)
        assert await off.recorded_silences() == []
    for minute in (0, 5):
        await silence.look(minute)
    assert await silence.recorded_silences() == [(*FIRES, 0)]
