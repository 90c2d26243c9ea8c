"""The policy table: what is allowed, how often, how much, and the choice without a model. Pure."""

from dataclasses import replace
from itertools import pairwise
from math import ceil, floor
from typing import get_args

from midwatch_monitor.config.policy import Decidable, PolicySettings
from midwatch_monitor.config.settings import Mode
from midwatch_monitor.config.tasks import BudgetSpec
from midwatch_monitor.escalation import REPORTING
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    Budget,
    Decision,
    Diagnosis,
    Grant,
    Meter,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Severity,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.decide import wording
from midwatch_supervisor.decide.context import ConcurrentEdit, DecisionContext
from midwatch_supervisor.decide.diagnosis import find_refused, repeated_failure

RESOURCES = ("requests", "tokens", "cost_usd", "minutes")
"""The four resources, as every budget type names them."""
COUNTED = frozenset({"requests", "tokens"})
"""Those of which there are whole numbers only."""
_TIGHT = 0.75
"""Share used at which a resource counts as scarce; `budget_burn` gives notice there, too."""


def meter(budget: Budget, resource: str) -> Meter:
    found: Meter = getattr(budget, resource)
    return found


def amount(grant: Grant, resource: str) -> float:
    found: float = getattr(grant, resource)
    return found


def scarce_resources(budget: Budget) -> tuple[str, ...]:
    """Return the resources that are nearly used up, or else the one that is used most."""
    shares = {
        name: _used_share(meter(budget, name))
        for name in RESOURCES
        if meter(budget, name).limit is not None
    }
    found = tuple(name for name, share in shares.items() if share >= _TIGHT)
    return found or tuple(sorted(shares, key=lambda name: -shares[name])[:1])


def grant_room(given: BudgetSpec, granted: Grant, *, grants: int, policy: PolicySettings) -> Grant:
    """Return the most that one more grant may add to each limit; empty if none is allowed.

    All grants together add at most `grant_share` of the task's original limits. The remainder is
    divided by the number of grants left, so that the first does not take all of it.
    """
    left = policy.max_grants - grants
    if left <= 0:
        return Grant()
    limits = {name: getattr(given, name) for name in RESOURCES}
    return grant_of(
        {
            name: _share_of(limit * policy.grant_share - amount(granted, name), left, name)
            for name, limit in limits.items()
            if limit is not None
        }
    )


def _share_of(rest: float, grants: int, resource: str) -> float:
    """Return one grant's share of the rest; a whole number for requests and tokens."""
    if resource in COUNTED:
        return min(ceil(rest / grants), floor(rest))
    return rest / grants


def capped_grant(wanted: Grant, most: Grant) -> Grant:
    """Return `wanted`, cut to `most`."""
    return grant_of({name: min(amount(wanted, name), amount(most, name)) for name in RESOURCES})


def limited_to(grant: Grant, resources: tuple[str, ...]) -> Grant:
    return grant_of({name: amount(grant, name) for name in resources})


def sum_of_grants(one: Grant, other: Grant) -> Grant:
    return grant_of({name: amount(one, name) + amount(other, name) for name in RESOURCES})


def grant_of(amounts: dict[str, float]) -> Grant:
    """Make a grant from amounts by resource; requests and tokens are whole, nothing is below 0."""
    above = {name: max(0.0, amounts.get(name, 0.0)) for name in RESOURCES}
    return Grant(
        requests=int(above["requests"]),
        tokens=int(above["tokens"]),
        cost_usd=round(above["cost_usd"], 6),
        minutes=round(above["minutes"], 6),
    )


def _used_share(meter: Meter) -> float:
    return meter.used / meter.limit if meter.limit else 0.0


ACTIONS: tuple[Action, ...] = get_args(Decidable)
"""Actions that a decision can take, in rising order of force."""

CONFIDENCE_RULES = frozenset({"low_confidence", "declining_confidence"})
"""Stated confidence is weak evidence, so these rules alone never justify force."""

_GENTLE = frozenset({Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR})
_TALK = frozenset({Action.OBSERVE, Action.NUDGE, Action.REPLAN, Action.ASK_OPERATOR})
"""Actions that end nothing and grant nothing; they do not require that an earlier rung failed."""
_LAST = frozenset({Action.ASK_OPERATOR, Action.STOP})
_FREE = frozenset({Action.OBSERVE, Action.ASK_OPERATOR})
_LATE = _LAST | {Action.OBSERVE, Action.GRANT_BUDGET, Action.RESTART}
"""Actions left once a person must be called.

A grant is itself the answer to a budget that runs out, and a restart, as long as the task has an
attempt left, may do what a person would be asked for.
"""
_FORCE = (Action.OBSERVE, Action.NUDGE, Action.REPLAN, Action.RESTART, Action.ASK_OPERATOR)
"""Actions that may replace one that is not allowed: they need no terms of their own."""
_MANY = 2
"""Fewest open plan steps for which the table splits a task."""


def order_for(
    rule: str, severity: Severity, diagnosis: Diagnosis, policy: PolicySettings
) -> tuple[Action, ...]:
    """Return the rungs that an alert reaches, in order.

    The first of these applies: a row that names the rule, the rule's own order, a row for any rule,
    the ladder. A rule about stated confidence never reaches forceful actions, whatever a row says.
    """
    rows = [row for row in policy.table if row.fits(rule, severity, diagnosis)]
    named = [row.actions for row in rows if row.rule is not None]
    others = [row.actions for row in rows if row.rule is None]
    own = [policy.rules[rule]] if rule in policy.rules else []
    order = (*named, *own, *others, policy.ladder)[0]
    kept = _GENTLE if rule in CONFIDENCE_RULES else frozenset(ACTIONS)
    return tuple(action for action in order if action in kept)


def allowed_actions(context: DecisionContext, diagnosis: Diagnosis) -> tuple[Action, ...]:
    """Return the actions allowed without a person, in rising order of force; never empty.

    Observing and asking a person are always allowed. An action that ends the attempt, grants more
    or switches the model must be the first rung of its order, or an earlier rung must have failed.
    Once a cap is reached, only asking a person is left, and stopping if an alert's order has it.
    """
    reached = {Action.OBSERVE, Action.ASK_OPERATOR}
    for alert in context.alerts:
        order = _possible_actions(context, alert, diagnosis)
        reached |= {action for action in order if context.capped or _is_due(action, order, context)}
    if context.capped:
        reached &= _LAST
    elif _must_call_person(context):
        reached &= _LATE - (context.in_vain & {Action.OBSERVE})
    return tuple(action for action in ACTIONS if action in reached)


def choose(context: DecisionContext) -> Decision:
    """Return the table's own decision: the next rung in the order of the worst alert's rule.

    Rungs that failed since the last recovery are skipped; if none is left, a person is asked.
    """
    reading = context.reading
    worst = _worst_alert(context)
    action = _next_rung(context, worst)
    rule = worst.key.rule if worst else "none"
    terms = terms_for(action, context, reading.cause)
    return Decision(
        escalation=context.escalation,
        action=action,
        diagnosis=reading.cause,
        message=action_message(action, context, reading.cause, terms),
        rationale=(
            f"by the policy table ({rule}, {reading.cause}): {_history_text(context, action)}, "
            f"so {action.value}"
        ),
        terms=terms,
        steps=reading.steps,
        by=Actor.POLICY,
    )


def action_message(action: Action, context: DecisionContext, cause: Diagnosis, terms: Terms) -> str:
    """Return the table's message for an action: to the worker, its successor or a person."""
    work = tuple(alert for alert in context.alerts if alert.key.rule not in REPORTING)
    matter = wording.MessageSubject(
        alerts=work or context.alerts,
        cause=cause,
        earlier=tuple(_past_words(past) for past in context.earlier),
        terms=terms,
        concurrent=context.concurrent,
        failure=repeated_failure(context.steps),
        refused=find_refused(context.steps),
        failed_before=context.failed_before,
        report=context.checkpoints[-1].checkpoint if context.checkpoints else None,
    )
    return wording.message(action, matter)


def bound_decision(decision: Decision, context: DecisionContext) -> Decision:
    """Return the decision if it is allowed, else the nearest allowed one of no greater force.

    The rationale then says what was refused. If none is that gentle, a person is asked.
    """
    may = allowed_actions(context, decision.diagnosis)
    if decision.action in may:
        return decision
    force = _force_rank(decision.action)
    gentler = [action for action in may if action in _FORCE and _force_rank(action) <= force]
    action = gentler[-1] if gentler else Action.ASK_OPERATOR
    terms = terms_for(action, context, decision.diagnosis)
    words = decision.message or action_message(action, context, decision.diagnosis, terms)
    refusal = (
        f"the model wanted {decision.action.value}; the policy allows only "
        f"{', '.join(item.value for item in may)}"
    )
    return replace(
        decision,
        action=action,
        message="" if action is Action.OBSERVE else words,
        plan=decision.plan if action is Action.REPLAN else (),
        terms=terms,
        rationale=f"{decision.rationale} [{refusal}]".strip(),
    )


def approval_needed(
    action: Action, mode: Mode, policy: PolicySettings, *, acts: tuple[Action, ...] | None = None
) -> bool:
    """Whether an operator must approve a decision before it is delivered.

    Observing affects nobody, and asking a person is itself the question, so neither waits. If
    `acts` is set, Midwatch did not start the worker, and stopping it always needs approval.
    """
    if action in _FREE:
        return False
    if action is Action.STOP and acts is not None:
        return True
    return mode is not Mode.ACT or action in policy.needs_approval


def _possible_actions(
    context: DecisionContext, alert: Alert, diagnosis: Diagnosis
) -> tuple[Action, ...]:
    """Return the rungs of an alert for which the task has the means."""
    if _keeps_file(context, alert):
        return (Action.OBSERVE,)
    order = order_for(alert.key.rule, alert.severity, diagnosis, context.policy)
    return tuple(action for action in order if _has_means(action, context, diagnosis))


def _keeps_file(context: DecisionContext, alert: Alert) -> bool:
    """Whether the alert is a conflict about a file that this attempt keeps and the other yields."""
    return _is_conflict(alert) and context.yields_to(alert.key.subject) is None


def _is_conflict(alert: Alert) -> bool:
    return alert.key.rule == "workspace_conflict"


def _has_means(action: Action, context: DecisionContext, diagnosis: Diagnosis) -> bool:
    means, policy = context.means, context.policy
    if means.acts is not None and action not in _FREE.union(means.acts):
        return False
    match action:
        case Action.REPLAN:
            return context.count(action) < policy.max_replans
        case Action.GRANT_BUDGET:
            return bool(means.grant)
        case Action.SWITCH_MODEL:
            return bool(means.models) and context.count(action) < policy.max_switches
        case Action.RESTART:
            other = diagnosis is not Diagnosis.WRONG_WORKER or bool(means.workers)
            return means.attempts > 0 and other
        case Action.SPLIT:
            return means.may_split
        case _:
            return True


def _is_due(action: Action, order: tuple[Action, ...], context: DecisionContext) -> bool:
    """Whether an action's turn has come: an earlier rung of its order failed."""
    before = order[: order.index(action)]
    return action in _TALK or not before or bool(context.in_vain.intersection(before))


def _worst_alert(context: DecisionContext) -> Alert | None:
    """Return the most severe alert, with those about the work before those about reporting."""
    return max(
        context.alerts,
        key=lambda alert: (
            not _keeps_file(context, alert),
            alert.key.rule not in REPORTING,
            alert.severity.rank,
        ),
        default=None,
    )


def _next_rung(context: DecisionContext, worst: Alert | None) -> Action:
    if worst is None or _keeps_file(context, worst):
        return Action.ASK_OPERATOR if worst is None else Action.OBSERVE
    cause = context.reading.cause
    divisible = len(context.plan.open_titles) >= _MANY
    left = [
        action
        for action in _possible_actions(context, worst, cause)
        if action not in context.in_vain and (divisible or action is not Action.SPLIT)
    ]
    if context.capped:
        left = [action for action in left if action in _LAST]
    elif Action.GRANT_BUDGET in left and context.then_used >= 1:
        return Action.GRANT_BUDGET  # the outcome of an earlier rung could no longer be judged
    elif _must_call_person(context) and left[:1] not in ([Action.OBSERVE], [Action.GRANT_BUDGET]):
        left = [action for action in left if action in _LAST or action is Action.RESTART]
    # Two edits of one file do no harm before the work is merged.
    last = Action.OBSERVE if _is_conflict(worst) else Action.ASK_OPERATOR
    return next(iter(left), last)


def _must_call_person(context: DecisionContext) -> bool:
    """Whether a person must be called now, so that some budget is left for their answer."""
    limit = context.policy.hand_over_at
    return limit < 1 and context.guided_in_vain and context.then_used > limit


def _force_rank(action: Action) -> int:
    """Return the place in the order of force; 0 for actions that only a person takes."""
    return ACTIONS.index(action) if action in ACTIONS else 0


def _past_words(past: InterventionState) -> str:
    reason = f": {past.reason}" if past.reason else ""
    return f"{past.action.value} ({past.outcome or 'not judged yet'}{reason})"


def _history_text(context: DecisionContext, action: Action) -> str:
    """Describe what was tried, and what else supports the chosen action."""
    if context.capped:
        return "a limit of the policy is reached"
    vain = [each for each in ACTIONS if each in context.in_vain - context.rejected]
    refused = [each for each in ACTIONS if each in context.rejected]
    told = [f"{', '.join(vain)} did not help"] * bool(vain)
    if refused:
        told.append(f"{', '.join(refused)} {'was' if len(refused) == 1 else 'were'} turned down")
    if not told:
        return "no earlier action has failed"
    late = ""
    if _must_call_person(context):
        person = "a person must be called while there is budget left"
        late = f", and {person if action in _LAST else 'little budget is left'}"
    return f"{', '.join(told)}{late}"


ALL = ("**",)
"""Keeps every changed file."""

_KEEPING = frozenset(
    {
        Diagnosis.BUDGET,
        Diagnosis.PROVIDER,
        Diagnosis.ENVIRONMENT,
        Diagnosis.MISSING_DEPENDENCY,
        Diagnosis.WRONG_WORKER,
    }
)
"""Causes outside the work, so the work is worth keeping. For others, a restart begins clean."""


def terms_for(action: Action, context: DecisionContext, cause: Diagnosis) -> Terms:
    """Return the terms of an action for which the context has the means."""
    match action:
        case Action.GRANT_BUDGET:
            grant = context.means.grant
            # As much as allowed, of the resources that are nearly used up.
            return Terms(grant=limited_to(grant, scarce_resources(context.budget)) or grant)
        case Action.SWITCH_MODEL:
            return Terms(model=next(iter(context.means.models), ""))
        case Action.RESTART:
            return _restart_terms(context, cause)
        case Action.SPLIT:
            return Terms(parts=parts(context.plan, most=context.policy.max_parts))
        case _:
            return Terms()


def _attempt_yielded_to(context: DecisionContext) -> ConcurrentEdit | None:
    """Return the attempt to which this one yields a file, if all its alerts are such conflicts."""
    if not all(map(_is_conflict, context.alerts)):
        return None
    found = (context.yields_to(alert.key.subject) for alert in context.alerts)
    return next((each for each in found if each is not None), None)


def parts(plan: Plan, *, most: int) -> tuple[Part, ...]:
    """Return the open plan steps as at most `most` tasks, in order; steps may share one."""
    steps = [step for step in plan.steps if step.state is PlanStepState.OPEN]
    count = min(most, len(steps))
    if not count:
        return ()
    bounds = [round(n * len(steps) / count) for n in range(count + 1)]
    return tuple(_part_of_steps(steps[first:end]) for first, end in pairwise(bounds))


def _restart_terms(context: DecisionContext, cause: Diagnosis) -> Terms:
    rival = _attempt_yielded_to(context)
    if rival is not None:  # the next attempt builds on the rival's work instead
        return Terms(after=rival.task)
    workers = context.means.workers if cause is Diagnosis.WRONG_WORKER else ()
    return Terms(worker=next(iter(workers), ""), keep=ALL if cause in _KEEPING else ())


def _part_of_steps(steps: list[PlanStep]) -> Part:
    titles = [step.title for step in steps]
    files = [file for step in steps for file in step.files]
    goal = ". ".join(titles)
    if files:
        goal += f". It leaves behind: {', '.join(dict.fromkeys(files))}"
    checks = tuple(dict.fromkeys(check for step in steps for check in step.acceptance))
    return Part(title="; ".join(titles), goal=f"{goal}.", acceptance=checks)
