"""What an intervention changes once it has arrived at the worker. Pure."""

from collections.abc import Sequence

from midwatch_monitor.words import (
    Action,
    Budget,
    Change,
    Delivery,
    DeliveryState,
    Grant,
    Intervention,
    Plan,
    Record,
)
from midwatch_tools.revision import change, with_remaining
from midwatch_tools.spending import raised

Numbered = tuple[int, Intervention]
"""An intervention with its journal id."""


def grants(interventions: Sequence[Numbered]) -> list[Grant]:
    """What the interventions grant."""
    return [each.terms.grant for _, each in interventions if each.action is Action.GRANT_BUDGET]


def arrived(
    interventions: Sequence[Numbered], *, plan: Plan, budget: Budget, model: str, step: int
) -> tuple[Record, ...]:
    """What to record of interventions that have arrived, in their order.

    Args:
        interventions: Those that now stand in the history.
        plan: The plan as it stands.
        budget: What is used by this moment.
        model: The name of the other model that answers now; empty for the worker's own.
        step: The attempt's last step.
    """
    records: list[Record] = []
    for id, each in interventions:
        records.append(stamp(id, step))
        if each.action is Action.REPLAN:
            plan = with_remaining(plan, each.plan or plan.open_titles)
            records += [plan, change(plan)]
        elif each.action is Action.GRANT_BUDGET:
            budget = raised(budget, [each.terms.grant])
            records.append(Change(budget=budget))
        elif each.action is Action.SWITCH_MODEL and model and each.terms.model == model:
            records.append(Change(model=model))
    return tuple(records)


def stamp(id: int, step: int) -> Delivery:
    """The stamp on an intervention that has arrived."""
    return Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step)
