"""How the model requests of a task are shared among its plan steps. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from midwatch_monitor.records import Meter, Plan, PlanStepState

UNSTATED = 70
"""Percent; the confidence of a plan step for which nobody said one."""


def shares(confidences: Sequence[int | None], requests: int, least: int) -> tuple[int, ...]:
    """So many requests for each plan step, more where one is less sure of it.

    A plan step weighs `1 + (100 - confidence) / 25`: from 1 where one is certain to 5 where one
    knows nothing, so that 40 % weighs nearly twice what 80 % does, and no plan step starves. Each
    gets `least` first, as far as there is enough for all, and the rest is shared by weight. The
    sum is `requests`, or 0 for an empty plan.
    """
    if not confidences:
        return ()
    floor = min(max(least, 0), max(requests, 0) // len(confidences))
    rest = max(requests, 0) - floor * len(confidences)
    weights = [_weight(UNSTATED if each is None else each) for each in confidences]
    exact = [rest * weight / sum(weights) for weight in weights]
    given = [int(each) for each in exact]
    # What rounding left goes to those who lost most by it, the earlier one first.
    order = sorted(range(len(exact)), key=lambda at: given[at] - exact[at])
    for at in order[: rest - sum(given)]:
        given[at] += 1
    return tuple(floor + each for each in given)


def _weight(confidence: int) -> float:
    return 1 + (100 - confidence) / 25


def shared(plan: Plan, requests: Meter, *, least: int) -> Plan:
    """The plan with the requests that are left shared among its open plan steps.

    One open plan step has all of them, and no share; without a limit nothing is shared.
    """
    at = [n for n, step in enumerate(plan.steps) if step.state is PlanStepState.OPEN]
    if requests.limit is None or len(at) < 2:
        return plan
    left = int(requests.limit - requests.used)
    given = shares([plan.steps[n].confidence for n in at], left, least)
    steps = list(plan.steps)
    for n, share in zip(at, given, strict=True):
        steps[n] = replace(steps[n], requests=share)
    return replace(plan, steps=tuple(steps))
