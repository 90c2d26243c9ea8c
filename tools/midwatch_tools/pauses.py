"""Pauses that a provider imposes: said by the model, recorded by the watch of its run."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

Tell = Callable[[float], Awaitable[None]]

_listener: ContextVar[Tell | None] = ContextVar("midwatch_pauses", default=None)


def listen(tell: Tell) -> None:
    """From here on, in this run, a pause of a model is told to `tell` before it begins."""
    _listener.set(tell)


async def pausing(seconds: float) -> None:
    """A model waits for so long before it asks again; where nobody listens, nothing happens."""
    if (tell := _listener.get()) is not None:
        await tell(seconds)
