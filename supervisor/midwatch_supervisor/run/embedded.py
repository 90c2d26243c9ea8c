"""Supervision of an agent that has a `Watch`, in the agent's own process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic_ai.models import Model

from midwatch_monitor.bus import Bus
from midwatch_monitor.cancellation import meanwhile
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.loop import Monitor
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_tools.embedding import Embedded


@asynccontextmanager
async def supervision(
    embedded: Embedded, *, bus: Bus, settings: Settings, model: Model | str
) -> AsyncGenerator[None]:
    """Monitor the run of an agent, and answer its alerts, while this context is entered.

    A `model` decides within the policy; with `"policy"`, the policy alone decides.
    """
    journal, run, clock = embedded.recorder.journal, embedded.run.id, embedded.recorder.clock
    supervisor = Supervisor(None if isinstance(model, str) else model, settings.supervisor)
    monitor = Monitor(journal=journal, bus=bus, settings=settings, run=run, clock=clock)
    answering = Supervision(
        journal=journal,
        bus=bus,
        settings=settings,
        run=run,
        clock=clock,
        hire=lambda task: supervisor,
    )
    try:
        async with meanwhile(monitor.run(), answering.run()):
            yield
    finally:
        await monitor.try_to_look(everything=True)
