"""Supervision of an agent with a `Watch` in it, in the agent's own process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic_ai.models import Model

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.loop import Monitor
from midwatch_monitor.records import Action
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.supervision import Supervision
from midwatch_tools.embedding import Embedded

_POSSIBLE = frozenset({Action.OBSERVE, Action.NUDGE, Action.REPLAN, Action.ASK_OPERATOR})
"""What can be done to an agent that somebody else runs: it cannot be begun anew."""


@asynccontextmanager
async def supervision(
    embedded: Embedded, *, bus: Bus, settings: Settings, model: Model | str
) -> AsyncGenerator[None]:
    """Have the run of an agent monitored, and its alerts answered, for as long as this is entered.

    A `model` decides within the policy; else, by `"policy"`, the policy does.
    """
    journal, run, clock = embedded.recorder.journal, embedded.run.id, embedded.recorder.clock
    settings = settings.model_copy(update={"policy": possible(settings.policy)})
    supervisor = Supervisor(None if isinstance(model, str) else model, settings.supervisor)
    monitor = Monitor(journal=journal, bus=bus, settings=settings, run=run, clock=clock)
    answering = Supervision(
        journal=journal,
        bus=bus,
        settings=settings,
        run=run,
        tasks={},
        supervisors={},
        clock=clock,
        hire=lambda task: supervisor,
    )
    helpers = [asyncio.create_task(each.run()) for each in (monitor, answering)]
    try:
        yield
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        await monitor.try_to_look(everything=True)


def possible(policy: PolicySettings) -> PolicySettings:
    """The policy without what cannot be done to an agent that somebody else runs."""
    return policy.model_copy(
        update={
            "ladder": _only(policy.ladder),
            "rules": {rule: _only(order) for rule, order in policy.rules.items()},
            "table": tuple(
                row.model_copy(update={"actions": _only(row.actions)}) for row in policy.table
            ),
        }
    )


def _only(order: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(action for action in order if action in _POSSIBLE) or (Action.ASK_OPERATOR,)
