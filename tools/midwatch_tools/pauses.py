"""Pauses imposed by a provider: reported by the model, recorded by the watch of its run."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from midwatch_monitor.records import (
    Activity,
    Analysis,
    AnalysisAuthor,
    Budget,
    Cause,
    Change,
    Outage,
    Record,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A model waits before a retry, or for the provider's first answer."""

    url: str
    reason: str
    """For example "HTTP 429: slow down"."""
    seconds: float
    """Seconds until the next try."""
    asked: float | None = None
    """Seconds that the current request has taken, if there is one; then the work is not paused."""


TellPause = Callable[[Pause | None], Awaitable[None]]
"""Called with a pause before it begins, and with `None` once the provider has answered."""

_listener: ContextVar[TellPause | None] = ContextVar("midwatch_pauses", default=None)


def listen(tell: TellPause) -> None:
    """From now on, call `tell` with the pauses of models in this run, and with their end."""
    _listener.set(tell)


async def tell_pause(pause: Pause | None) -> None:
    """Report a pause (`None` for its end) to the listener, if there is one."""
    if (tell := _listener.get()) is not None:
        await tell(pause)


def pause_records(
    known: Outage | None, pause: Pause | None, at: datetime, budget: Budget | None = None
) -> tuple[Record, ...]:
    """Return the records for a pause or its end; empty for an answer without a previous pause.

    `known` is the attempt's outage so far; each of its reasons is analysed once. `budget` is what
    has been used so far.
    """
    if pause is None:
        return () if known is None else (Change(outage=replace(known, next_try=None, over=True)),)
    began = at - timedelta(seconds=pause.asked or 0)
    outage = Outage(
        url=pause.url,
        reason=pause.reason,
        since=began if known is None else known.since,
        next_try=at + timedelta(seconds=pause.seconds),
    )
    if pause.asked is not None:
        return (Change(outage=outage),)
    waits = Change(
        activity=Activity.RATE_LIMITED,
        doing=f"retries in {pause.seconds:.0f} s",
        budget=budget,
        outage=outage,
    )
    if known is not None and known.reason == pause.reason:
        return (waits,)
    return waits, Analysis(
        what=f"a request to the model failed: {pause.reason} from {pause.url}",
        cause=Cause.TRANSIENT,
        root="the provider cannot answer just now; nothing in the work is the cause",
        remedy=f"the same request again after {pause.seconds:.1f} s",
        by=AnalysisAuthor.WATCH,
    )
