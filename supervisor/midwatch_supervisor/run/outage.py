"""An outage of a worker's provider: whether it passes, and how it is sat out."""

import asyncio

from midwatch_agents.model_retries import passing
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Activity, Analysis, Cause, Change, Teller


def passes(error: WorkerError) -> bool:
    """Whether the same request may succeed later."""
    return error.__cause__ is not None and passing(error.__cause__)


async def sit_out(recorder: Recorder, said: str, seconds: float) -> None:
    """Wait for a provider that could not serve a request however often it was asked."""
    await recorder.record(
        Change(activity=Activity.RATE_LIMITED, doing=f"goes on in {seconds:g} s"),
        Analysis(
            what=said,
            cause=Cause.TRANSIENT,
            root="the provider could not serve the request",
            remedy=f"wait {seconds:g} s and go on",
            by=Teller.WATCH,
        ),
    )
    await asyncio.sleep(seconds)
