"""Pauses that a provider imposes: said by the model, recorded by the watch of its run."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

Tell = Callable[[float, str], Awaitable[None]]

_listener: ContextVar[Tell | None] = ContextVar("midwatch_pauses", default=None)


def listen(tell: Tell) -> None:
    """From here on, in this run, a pause of a model is told to `tell` before it begins."""
    _listener.set(tell)


async def pausing(seconds: float, said: str) -> None:
    """A model waits for so long before it asks again; where nobody listens, nothing happens.

    `said` is why: "HTTP 429 from openai".
    """
    if (tell := _listener.get()) is not None:
        await tell(seconds, said)
