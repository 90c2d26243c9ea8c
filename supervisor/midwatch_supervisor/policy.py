"""The policy table: what may be done, how often, and what is done where no model decides. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from midwatch_monitor.config.settings import Mode, PolicySettings
from midwatch_monitor.words import (
    Action,
    Actor,
    Alert,
    Decision,
    Diagnosis,
    Outcome,
)
from midwatch_supervisor import wording

ACTIONS = (
    Action.OBSERVE,
    Action.NUDGE,
    Action.REPLAN,
    Action.RESTART,
    Action.ASK_OPERATOR,
    Action.STOP,
)
"""What a decision can be, in rising order of force. The others are a person's own."""

CONFIDENCE_RULES = frozenset({"low_confidence", "declining_confidence"})
"""What a worker says of its confidence is weak evidence: never the only ground for force."""

_GENTLE = frozenset({Action.OBSERVE, Action.NUDGE, Action.ASK_OPERATOR})
_LAST = frozenset({Action.ASK_OPERATOR, Action.STOP})
_FREE = frozenset({Action.OBSERVE, Action.ASK_OPERATOR})

_CAUSES = {
    "repeated_edits": Diagnosis.WRONG_APPROACH,
    "stalled_progress": Diagnosis.WRONG_APPROACH,
}
"""Where the rule itself names a cause; of the others the table knows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An intervention that reached the attempt, and what came of it."""

    action: Action
    outcome: Outcome | None = None
    """`None` until it is judged."""
    by: Actor = Actor.POLICY
    message: str = ""

    @property
    def helped(self) -> bool:
        """Whether the attempt recovered."""
        return self.outcome is Outcome.RECOVERED

    @property
    def failed(self) -> bool:
        """Whether it was judged and the attempt did not recover."""
        return self.outcome is not None and not self.helped


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that a decision about one escalation depends on."""

    escalation: int
    """The journal id of the question."""
    alerts: tuple[Alert, ...]
    """The alerts to answer."""
    interventions: tuple[Tried, ...] = ()
    """The delivered ones of this attempt, oldest first."""
    escalations: int = 0
    """How many the attempt had before this one."""
    replans: int = 0
    """How many revisions of its plan the attempt had."""
    attempts_left: int = 0
    """How many attempts the task has after this one."""
    policy: PolicySettings

    @property
    def capped(self) -> bool:
        """Whether so much was done already that only a person, or the end, remains."""
        return (
            len(self.interventions) >= self.policy.max_interventions
            or self.escalations >= self.policy.max_escalations
        )

    @property
    def since_recovery(self) -> tuple[Tried, ...]:
        """The interventions after the last one that helped."""
        for index in range(len(self.interventions) - 1, -1, -1):
            if self.interventions[index].helped:
                return self.interventions[index + 1 :]
        return self.interventions


def allowed(standing: Standing) -> tuple[Action, ...]:
    """What may be done without asking anybody, in rising order of force; never empty.

    To observe and to ask a person are always allowed; once a cap is reached, only to ask a
    person, and to stop where a rule reaches that.
    """
    reached = {Action.OBSERVE, Action.ASK_OPERATOR}
    for alert in standing.alerts:
        reached.update(_order(alert.key.rule, standing.policy))
    if standing.attempts_left <= 0:
        reached.discard(Action.RESTART)
    if standing.replans >= standing.policy.max_replans:
        reached.discard(Action.REPLAN)
    if standing.capped:
        reached &= _LAST
    return tuple(action for action in ACTIONS if action in reached)


def choose(standing: Standing) -> Decision:
    """The table's own answer: the next rung in the order of the worst alert's rule.

    A rung that was tried without success since the last recovery is passed over; where none is
    left, a person is asked.
    """
    worst = _worst(standing.alerts)
    action = _rung(standing, worst)
    rule = worst.key.rule if worst else "none"
    return Decision(
        escalation=standing.escalation,
        action=action,
        diagnosis=_CAUSES.get(rule, Diagnosis.UNKNOWN),
        message=said(action, standing),
        rationale=f"the policy table for {rule}: {_history(standing)}, so {action.value}",
        by=Actor.POLICY,
    )


def said(action: Action, standing: Standing) -> str:
    """What the table tells with an action: the worker, its successor or a person."""
    tried = [f"{past.action.value} ({past.outcome})" for past in standing.since_recovery]
    return wording.message(action, standing.alerts, tuple(tried))


def bounded(decision: Decision, standing: Standing) -> Decision:
    """The decision if it is allowed, else the nearest allowed one of no greater force.

    The refusal stands in the rationale. Only where nothing so gentle is left (a cap is reached)
    a person is asked instead.
    """
    may = allowed(standing)
    if decision.action in may:
        return decision
    force = _force(decision.action)
    gentler = [action for action in may if _force(action) <= force]
    action = gentler[-1] if gentler else Action.ASK_OPERATOR
    message = "" if action is Action.OBSERVE else decision.message or said(action, standing)
    refusal = (
        f"{decision.action.value} was wanted, and the policy allows only "
        f"{', '.join(item.value for item in may)}"
    )
    return replace(
        decision,
        action=action,
        message=message,
        plan=decision.plan if action is Action.REPLAN else (),
        rationale=f"{decision.rationale} [{refusal}]".strip(),
    )


def approval_needed(action: Action, mode: Mode, policy: PolicySettings) -> bool:
    """Whether an operator must approve a decision before it is delivered.

    To observe touches nobody, and to ask a person is itself the question: neither ever waits.
    """
    if action in _FREE:
        return False
    return mode is not Mode.ACT or action in policy.needs_approval


def _order(rule: str, policy: PolicySettings) -> tuple[Action, ...]:
    order = policy.rules.get(rule, policy.ladder)
    kept = _GENTLE if rule in CONFIDENCE_RULES else frozenset(ACTIONS)
    return tuple(action for action in order if action in kept)


def _worst(alerts: Iterable[Alert]) -> Alert | None:
    """The most severe alert; of equals one with observed grounds, then the first."""
    return max(
        alerts,
        key=lambda alert: (alert.severity.rank, alert.key.rule not in CONFIDENCE_RULES),
        default=None,
    )


def _rung(standing: Standing, worst: Alert | None) -> Action:
    may = allowed(standing)
    failed = {past.action for past in standing.since_recovery if past.failed}
    for action in _order(worst.key.rule, standing.policy) if worst else ():
        if action in may and action not in failed:
            return action
    return Action.ASK_OPERATOR


def _force(action: Action) -> int:
    """The place in the order of force; what only a person does counts as none."""
    return ACTIONS.index(action) if action in ACTIONS else 0


def _history(standing: Standing) -> str:
    if standing.capped:
        return "a cap of the policy is reached"
    failed = [past.action.value for past in standing.since_recovery if past.failed]
    return f"{', '.join(failed)} did not help" if failed else "nothing was tried in vain"
