"""How much of a task's budget is gone, and how much more may be given without a person. Pure."""

from math import ceil, floor

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.tasks import BudgetSpec
from midwatch_monitor.records import Budget, Grant, Meter

RESOURCES = ("requests", "tokens", "cost_usd", "minutes")
"""The four resources, as every value about budgets names them."""
_COUNTED = frozenset({"requests", "tokens"})
_TIGHT = 0.75
"""From this share on a resource counts as tight; where `budget_burn` gives its notice."""


def meter(budget: Budget, resource: str) -> Meter:
    """The meter of one of `RESOURCES`."""
    found: Meter = getattr(budget, resource)
    return found


def amount(grant: Grant, resource: str) -> float:
    """How much of one of `RESOURCES` is granted."""
    found: float = getattr(grant, resource)
    return found


def tight(budget: Budget) -> tuple[str, ...]:
    """The resources that are nearly gone; where none is, the one that goes first."""
    shares = {
        name: _share(meter(budget, name))
        for name in RESOURCES
        if meter(budget, name).limit is not None
    }
    found = tuple(name for name, share in shares.items() if share >= _TIGHT)
    return found or tuple(sorted(shares, key=lambda name: -shares[name])[:1])


def room(given: BudgetSpec, granted: Grant, *, grants: int, policy: PolicySettings) -> Grant:
    """The most that one more grant may add to each limit; empty where no more may be granted.

    All grants together add at most `grant_share` of what the task was given. What is left of that
    is shared by the grants that are left, so that the first does not take it all.
    """
    left = policy.max_grants - grants
    if left <= 0:
        return Grant()
    limits = {name: getattr(given, name) for name in RESOURCES}
    return grant_of(
        {
            name: _part(limit * policy.grant_share - amount(granted, name), left, name)
            for name, limit in limits.items()
            if limit is not None
        }
    )


def _part(rest: float, grants: int, resource: str) -> float:
    """One grant's part of the rest: a whole number where the resource is counted."""
    if resource in _COUNTED:
        return min(ceil(rest / grants), floor(rest))
    return rest / grants


def within(wanted: Grant, most: Grant) -> Grant:
    """What is wanted, cut to what may be granted."""
    return grant_of({name: min(amount(wanted, name), amount(most, name)) for name in RESOURCES})


def only(grant: Grant, resources: tuple[str, ...]) -> Grant:
    """The grant of some resources alone."""
    return grant_of({name: amount(grant, name) for name in resources})


def together(one: Grant, other: Grant) -> Grant:
    """Both grants as one."""
    return grant_of({name: amount(one, name) + amount(other, name) for name in RESOURCES})


def grant_of(amounts: dict[str, float]) -> Grant:
    """A grant from amounts by resource; requests and tokens are whole, nothing is below 0."""
    above = {name: max(0.0, amounts.get(name, 0.0)) for name in RESOURCES}
    return Grant(
        requests=int(above["requests"]),
        tokens=int(above["tokens"]),
        cost_usd=round(above["cost_usd"], 6),
        minutes=round(above["minutes"], 6),
    )


def _share(meter: Meter) -> float:
    return meter.used / meter.limit if meter.limit else 0.0
