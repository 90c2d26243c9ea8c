"""What exactly the table's action does: how much, which model, which worker, which parts. Pure."""

from itertools import pairwise

from midwatch_monitor.records import (
    Action,
    Diagnosis,
    Grant,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Terms,
)
from midwatch_supervisor.decide.allowance import only, tight
from midwatch_supervisor.decide.standing import Rival, Standing

ALL = ("**",)
"""Every changed file."""

_KEEPING = frozenset(
    {
        Diagnosis.BUDGET,
        Diagnosis.PROVIDER,
        Diagnosis.ENVIRONMENT,
        Diagnosis.MISSING_DEPENDENCY,
        Diagnosis.WRONG_WORKER,
    }
)
"""Causes that lie outside the work: it is worth taking over. Else it begins clean on purpose."""


def terms_for(action: Action, standing: Standing, cause: Diagnosis) -> Terms:
    """The terms of an action for which the standing has the means."""
    match action:
        case Action.GRANT_BUDGET:
            return Terms(grant=grant(standing))
        case Action.SWITCH_MODEL:
            return Terms(model=next(iter(standing.means.models), ""))
        case Action.RESTART:
            return _restart(standing, cause)
        case Action.SPLIT:
            return Terms(parts=parts(standing.plan, most=standing.policy.max_parts))
        case _:
            return Terms()


def grant(standing: Standing) -> Grant:
    """What one grant adds: of the resource that is nearly gone, as much as it may."""
    found = only(standing.means.grant, tight(standing.budget))
    return found or standing.means.grant


def elder(standing: Standing) -> Rival | None:
    """The attempt to which this one yields a file, if its alerts are about nothing else."""
    if any(alert.key.rule != "workspace_conflict" for alert in standing.alerts):
        return None
    found = (standing.yields_to(alert.key.subject) for alert in standing.alerts)
    return next((each for each in found if each is not None), None)


def parts(plan: Plan, *, most: int) -> tuple[Part, ...]:
    """The open plan steps as tasks of their own, in order; at most `most`, so some go together."""
    steps = [step for step in plan.steps if step.state is PlanStepState.OPEN]
    count = min(most, len(steps))
    if not count:
        return ()
    bounds = [round(n * len(steps) / count) for n in range(count + 1)]
    return tuple(_part(steps[first:end]) for first, end in pairwise(bounds))


def _restart(standing: Standing, cause: Diagnosis) -> Terms:
    rival = elder(standing)
    if rival is not None:  # its work is built upon, so this one's is not brought along
        return Terms(after=rival.task)
    workers = standing.means.workers if cause is Diagnosis.WRONG_WORKER else ()
    return Terms(worker=next(iter(workers), ""), keep=ALL if cause in _KEEPING else ())


def _part(steps: list[PlanStep]) -> Part:
    titles = [step.title for step in steps]
    files = [file for step in steps for file in step.files]
    goal = ". ".join(titles)
    if files:
        goal += f". It leaves behind: {', '.join(dict.fromkeys(files))}"
    checks = tuple(dict.fromkeys(check for step in steps for check in step.acceptance))
    return Part(title="; ".join(titles), goal=f"{goal}.", acceptance=checks)
