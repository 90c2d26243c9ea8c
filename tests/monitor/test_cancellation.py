"""What is sheltered comes to its end, whoever is cancelled meanwhile."""

import asyncio
import gc

import pytest

from midwatch_monitor.cancellation import finish_before_cancel


@pytest.mark.parametrize(("times", "fails"), [(1, False), (3, False), (1, True)])
async def test_a_cancellation_takes_effect_once_the_work_has_ended_and_asyncio_reports_nothing(
    times: int, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.append("written")
        if fails:
            raise ValueError("too late")

    task = asyncio.create_task(finish_before_cancel(work()))
    await begun.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (task.done(), done) == (False, [])
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["written"]
    del task
    gc.collect()
    assert caplog.messages == []


async def test_what_the_work_answers_or_raises_is_the_callers() -> None:
    async def say(text: str) -> str:
        if not text:
            raise ValueError("nothing")
        return text

    assert await finish_before_cancel(say("so")) == "so"
    with pytest.raises(ValueError, match="nothing"):
        await finish_before_cancel(say(""))
