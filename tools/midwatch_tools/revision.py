"""How a plan changes. Pure: what is finished or skipped stays, what is open may be replaced."""

from collections.abc import Sequence
from dataclasses import replace

from midwatch_monitor.words import Change, Plan, PlanStep, PlanStepState


def with_remaining(plan: Plan, titles: Sequence[str]) -> Plan:
    """The plan with its open plan steps replaced: one revision more."""
    kept = tuple(step for step in plan.steps if step.state is not PlanStepState.OPEN)
    fresh = tuple(PlanStep(title=title) for title in titles)
    return Plan(steps=(*kept, *fresh), revision=plan.revision + 1)


def with_current_done(plan: Plan) -> Plan:
    """The plan with its first open plan step finished."""
    steps = list(plan.steps)
    current = plan.current - 1
    if current < len(steps):
        steps[current] = replace(steps[current], state=PlanStepState.DONE)
    return replace(plan, steps=tuple(steps))


def change(plan: Plan) -> Change:
    """What the rules must know of a plan."""
    return Change(plan_step=plan.current, plan_steps=len(plan.steps), revision=plan.revision)
