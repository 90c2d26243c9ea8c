"""Of all monitors over a journal, one sends spans of what they keep."""

from collections.abc import Iterator

import pytest

from midwatch_monitor.config.settings import Settings, TelemetrySettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import AttemptTransition, Ending, Keeper, Lifecycle, TaskTransition
from midwatch_stage.collector import Collector, attributes, collector
from midwatch_stage.factories import step
from midwatch_stage.watched import SETTINGS, Fleet

OVER = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK, reason="Stuck.")
DONE = TaskTransition(lifecycle=Lifecycle.FAILED)


@pytest.fixture
def fleet(journal: Journal, location: str) -> Fleet:
    return Fleet(journal, location)


@pytest.fixture
def taken() -> Iterator[Collector]:
    with collector() as opened:
        yield opened


def sending(taken: Collector) -> Settings:
    return SETTINGS.model_copy(update={"telemetry": TelemetrySettings(endpoint=taken.url)})


async def worked(fleet: Fleet, taken: Collector, recorder: Recorder, **fields: object) -> None:
    """Let it work until a monitor sends what it does: at first none has the post."""

    async def sent() -> bool:
        await recorder.record(step(recorder.last_step + 1, tool="late", **fields))
        return bool(taken.spans)

    await fleet.until(sent)


async def test_one_of_two_monitors_sends_and_not_what_a_process_keeps(
    fleet: Fleet, taken: Collector
) -> None:
    settings = sending(taken)
    recorder, other = await fleet.begin(), await fleet.begin(keeper=Keeper.PROCESS)
    await other.record(step(1, tool="elsewhere"))
    async with fleet.monitor("a", settings=settings), fleet.monitor("b", settings=settings):
        await worked(fleet, taken, recorder)
        for each in (other, recorder):
            await each.end(OVER, DONE)
        await fleet.until(lambda: bool(taken.named("invoke_agent")))
    assert {each.name for each in taken.spans} == {"execute_tool late", "invoke_agent w"}
    assert len({each.span_id for each in taken.spans}) == len(taken.spans)
    (attempt,) = taken.named("invoke_agent")
    told = attributes(attempt.attributes)
    assert (told["midwatch.attempt"], told["midwatch.steps"]) == (1, recorder.last_step)
    assert told["error.type"] == "stuck"


async def test_a_step_that_was_a_span_of_its_agent_is_linked_to_it(
    fleet: Fleet, taken: Collector
) -> None:
    async with fleet.monitor("a", settings=sending(taken)):
        recorder = await fleet.begin()
        await worked(fleet, taken, recorder, call=f"span {7:032x} {5:016x}")
        await recorder.end(OVER, DONE)
        await fleet.until(lambda: bool(taken.named("invoke_agent")))
    for span in taken.spans:
        (link,) = span.links
        assert (link.trace_id.hex(), link.span_id.hex()) == (f"{7:032x}", f"{5:016x}")
