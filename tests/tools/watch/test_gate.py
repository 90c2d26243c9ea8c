"""What failed is not tried again without an analysis, and no plan step begins unchecked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.tools import RunContext

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import ErrorSettings, Mode, MonitorSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Activity, Actor, Analysis, Cause, Change, Entry, Step
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tests.factories import intervention, step
from midwatch_tests.reading import turned_away
from midwatch_tests.worker import Build, Claim, Performer
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.gate.gate import ALLOWED, AttemptGate, Gate, Permission

Call = tuple[str, dict[str, Any]]

QUICK = Settings(
    monitor=MonitorSettings(poll_seconds=0.01), errors=ErrorSettings(backoff_seconds=0.001)
)
FAILING: Call = ("run_command", {"command": "a broken"})
LOOKING: Call = ("run_command", {"command": "b fine"})


def error_report(category: str = "transient", what: str = "the server did not answer") -> Call:
    said = {"what_happened": what, "root_cause": "it is overloaded", "change": "wait a little"}
    return ("report_error", {**said, "category": category})


async def test_a_failure_is_refused_until_analysed_in_the_same_turn(perform: Performer) -> None:
    result = await perform([FAILING], [FAILING], [error_report(), FAILING], settings=QUICK)
    assert turned_away(result.all_messages()) == [False, True, False]
    steps = await perform.records(Step)
    assert [(step.tool, step.ok) for step in steps[:4]] == [
        ("run_command", False),
        ("run_command", False),
        ("report_error", True),
        ("run_command", False),
    ]
    assert steps[1].output.startswith(f"{HELD_BACK}`a broken` failed, and nothing")
    assert await perform.records(Analysis) == [
        Analysis(
            what="the server did not answer",
            cause=Cause.TRANSIENT,
            root="it is overloaded",
            remedy="wait a little",
            about=1,
        )
    ]


async def test_a_refused_call_is_not_run_and_costs_no_retry(perform: Performer) -> None:
    runs: list[int] = []

    def fetch() -> str:
        runs.append(1)
        return "[exit code: 1]"

    result = await perform(*[[("fetch", {})]] * 9, settings=QUICK, tools=(fetch,))
    assert turned_away(result.all_messages(), "fetch") == [False] + [True] * 8
    assert (len(runs), result.output) == (1, "Done.")


async def test_a_transient_failure_is_waited_for(perform: Performer) -> None:
    await perform([FAILING], [error_report(), FAILING], [FAILING], settings=QUICK)
    doing = [c.doing for c in await perform.records(Change) if c.activity is Activity.WAITING]
    assert doing == ["waits 0.001 s before it retries", "waits 0.002 s before it retries"]


async def test_nothing_is_refused_where_midwatch_only_records(perform: Performer) -> None:
    off = QUICK.model_copy(update={"mode": Mode.OFF})
    result = await perform(*[[FAILING]] * 4, settings=off)
    assert turned_away(result.all_messages()) == [False] * 4


async def test_an_operators_word_lets_a_permanent_failure_be_tried(perform: Performer) -> None:
    nudge = intervention(by=Actor.OPERATOR, message="It is mended.")

    async def read_log() -> str:
        await perform.write(nudge)
        return "as it was"

    turns: list[list[Call]] = [[FAILING], [error_report("permanent"), FAILING], [("read_log", {})]]
    result = await perform(*turns, [FAILING], settings=QUICK, tools=(read_log,))
    assert turned_away(result.all_messages()) == [False, True, False]


# -- after a crash ---------------------------------------------------------------------------


@pytest.fixture
def crash(perform: Performer) -> Callable[..., Awaitable[None]]:
    """Works until a tool hangs that only reads, and ends there as a killed process would."""

    async def run(*turns: Any) -> None:
        hanging = asyncio.Event()

        async def read_log() -> str:
            hanging.set()
            await asyncio.Event().wait()
            return ""

        working = asyncio.create_task(perform(*turns, settings=QUICK, tools=(read_log,)))
        async with asyncio.timeout(120):
            await hanging.wait()
        working.cancel()
        await asyncio.wait({working})

    return run


def read_log() -> str:
    return "at last"


@pytest.mark.parametrize(
    ("before", "then", "away"),
    [
        ([[FAILING]], [FAILING], [False, True]),
        ([[FAILING], [FAILING]], [FAILING, error_report()], [False, True, False]),
        ([[FAILING], *[[error_report(), FAILING]] * 2], [FAILING], [False, False, False, False]),
        ([[FAILING], [error_report("permanent")]], [FAILING], [False, True]),
    ],
)
async def test_a_crash_changes_no_answer(
    perform: Performer,
    crash: Callable[..., Awaitable[None]],
    before: list[list[Call]],
    then: list[Call],
    away: list[bool],
) -> None:
    pause: list[Call] = [("read_log", {})]
    await crash(*before, pause)
    result = await perform(*before, pause, then, settings=QUICK, tools=(read_log,))
    assert turned_away(result.all_messages()) == away
    straight = [*before, then]
    assert len(away) == sum(FAILING in turn for turn in straight)


async def test_a_refusal_that_was_given_is_given_again(
    perform: Performer, crash: Callable[..., Awaitable[None]]
) -> None:
    turns: list[list[Call]] = [[FAILING], [FAILING, ("read_log", {})]]
    await crash(*turns)
    result = await perform(*turns, settings=QUICK, tools=(read_log,))
    assert turned_away(result.all_messages()) == [False, True]
    assert sum(step.output.startswith(HELD_BACK) for step in await perform.records(Step)) == 1


# -- a gate that fails -----------------------------------------------------------------------


class BrokenGate(AttemptGate):
    """A gate that cannot answer."""

    async def ask(self, step: Step, messages: Sequence[ModelMessage]) -> Permission:
        raise LookupError("no answer")


class WatchWithBrokenGate(AttemptWatch):
    """A watch whose gate is broken."""

    async def _open_session(self, ctx: RunContext[Any], recorder: Recorder) -> None:
        await super()._open_session(ctx, recorder)
        assert self._acts is not None
        gate = Gate(self.settings.errors, self.settings.plan, attempt=1)
        self._acts.entrance = BrokenGate(recorder.journal, recorder.attempt.id, gate)


async def test_a_broken_gate_stops_nothing(
    claim: Claim, worker: Build, bus: LocalBus, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = WatchWithBrokenGate(await claim(QUICK), root=workspace, settings=QUICK, bus=bus)
    result = await worker([FAILING], [FAILING]).run("Fix it.", capabilities=[watch])
    assert turned_away(result.all_messages()) == [False, False]
    assert "the gate cannot judge a call of run_command; it runs" in caplog.text


class FaultyGate(Gate):
    """A gate that cannot take in what happened."""

    def observe(self, entry: Entry) -> None:
        raise LookupError("no place for it")


async def test_a_gate_that_cannot_follow_is_left_open(
    journal: Journal, claim: Claim, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = await claim(QUICK)
    gate = FaultyGate(QUICK.errors, QUICK.plan, attempt=2)
    entrance = AttemptGate(journal, recorder.attempt.id, gate)
    work = step(0, "put", request=1)
    assert (await entrance.ask(work, ())).refusal
    await recorder.record(work)
    assert await entrance.ask(work, ()) == ALLOWED
    assert "it no longer refuses anything" in caplog.text
