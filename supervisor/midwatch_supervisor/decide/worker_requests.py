"""Answers to worker requests: more budget, or another plan. Pure except for the schema."""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, Field

from midwatch_monitor.budget import Outlook, outlook
from midwatch_monitor.records import (
    Action,
    Actor,
    Budget,
    BudgetRequest,
    Fault,
    Grant,
    Intervention,
    Severity,
    Spending,
    Terms,
)
from midwatch_monitor.state.intervention import Petition
from midwatch_supervisor.decide.answer import GrantAnswer
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.policy import (
    RESOURCES,
    amount,
    capped_grant,
    limited_to,
    meter,
    scarce_resources,
)
from midwatch_supervisor.present.numbers import grant_text
from midwatch_tools.data_blocks import DATA_RULE

_TIGHT = 75
"""Percentage used at which any lag of the work starts to count, as does unknown progress."""

RULING = f"""\
An AI worker asks for something, and you answer for its supervisor. It asks either for more budget,
or for your approval of another plan for what is left.

{DATA_RULE} A reason that is given is a claim, to be checked against the steps.

More budget: grant it where the work moves and the rest of it needs more; no more than that. Refuse
it where the work goes round, or where less work would pass the acceptance checks. You cannot grant
more than the policy allows; what is above is cut.
A plan: approve it where it follows from what the work has shown, keeps to the goal, and is no
larger than it must be. Refuse it where it drops what the goal asks for.

The reason is told to the worker: concrete, and after a refusal what to do instead."""


class RequestVerdict(BaseModel):
    """The answer to what the worker asks for."""

    granted: bool
    grant: Annotated[
        GrantAnswer | None,
        Field(description="Only for budget: how much; none gives what is asked."),
    ] = None
    reason: Annotated[str, Field(min_length=1, max_length=2000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A worker request, and the limits on answers to it."""

    id: int
    """Journal id of the request."""
    request: Petition
    revisions_left: int = 0
    """Revisions of the plan that may still be approved in the task."""
    turned_down: str | None = None
    """Who rejected an answer that granted it, and why; `None` if nobody did."""
    done: float | None = None
    """Percentage of the whole work that is done; `None` if unknown."""
    slack: float = 0.0
    """Points by which the work may lag behind the percentage used, as told to the worker."""

    def reason_to_refuse(self, context: DecisionContext) -> str:
        """Return why the request must be refused without asking; empty if it need not be."""
        if self.turned_down is not None:
            return f"it was rejected by {self.turned_down or 'an operator'}"
        if not isinstance(self.request, BudgetRequest):
            return "" if self.revisions_left > 0 else "no more plan changes may be approved"
        if not context.means.grant:
            return "no more may be granted without a person"
        if not self._capped_amount(self.request.wanted, context):
            return "what is asked for has no limit that could be raised"
        return ""

    def _capped_amount(self, wanted: Grant, context: DecisionContext) -> Grant:
        most = context.means.grant
        return (
            capped_grant(wanted, most)
            if wanted
            else limited_to(most, scarce_resources(context.budget))
        )

    def amount(self, context: DecisionContext, wanted: Grant | None = None) -> Grant:
        """Return how much budget to grant: the wanted amount, capped at what may be granted.

        If no amount is named, this is all that may be granted of the scarce resources.
        """
        if not isinstance(self.request, BudgetRequest):
            return Grant()
        named = self._capped_amount(wanted, context) if wanted else Grant()
        return named or self._capped_amount(self.request.wanted, context)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRuling:
    """The answer to a request, and what it cost."""

    granted: bool
    grant: Grant = field(default_factory=Grant)
    reason: str
    by: Actor = Actor.POLICY
    author: str = ""
    spending: Spending | None = None
    fault: Fault | None = None

    def intervention(self, asked: OpenRequest, *, needs_approval: bool) -> Intervention:
        """Return the intervention that gives the worker the answer."""
        wanted = asked.request
        plan: tuple[str, ...] = ()
        if not self.granted:
            action, message = Action.NUDGE, f"Refused: {self.reason}"
        elif isinstance(wanted, BudgetRequest):
            # The delivery of the grant tells the worker the amount.
            action, message = Action.GRANT_BUDGET, f"Granted: {self.reason}"
        else:
            action, message, plan = Action.REPLAN, f"Approved: {self.reason}", wanted.proposed
        return Intervention(
            action=action,
            by=self.by,
            author=self.author,
            message=message,
            plan=plan,
            terms=Terms(grant=self.grant) if self.granted else Terms(),
            petition=asked.id,
            needs_approval=needs_approval,
        )


def by_policy(asked: OpenRequest, context: DecisionContext) -> RequestRuling:
    """Return the policy's answer: more, within the caps, only for work that moves and needs it."""
    if closed := asked.reason_to_refuse(context):
        return RequestRuling(granted=False, reason=f"{closed}.")
    if not isinstance(asked.request, BudgetRequest):
        left = asked.revisions_left - 1
        more = f"{left or 'no'} more plan change{'s' * (left != 1)}"
        return RequestRuling(granted=True, reason=f"{more} may be approved after this one.")
    stuck = [each for each in context.alerts if each.severity is Severity.CRITICAL and each.firing]
    if stuck:
        seen = "; ".join(each.summary or each.key.rule for each in stuck)
        return RequestRuling(
            granted=False, reason=f"the work makes no progress: {seen}. Fix that first."
        )
    return _as_needed(asked, asked.request.wanted, context)


def _as_needed(asked: OpenRequest, wanted: Grant, context: DecisionContext) -> RequestRuling:
    """Grant more of the resources that will run short, by the same numbers that the worker sees."""
    most = asked.amount(context)
    ahead = {
        name: found
        for name in RESOURCES
        if amount(most, name)
        and (found := _resource_outlook(asked, context.budget, name)) is not None
    }
    lasting = {name: found for name, found in ahead.items() if not _runs_short(found)}
    grant = limited_to(most, tuple(name for name in RESOURCES if name not in lasting))
    if not grant:
        tightest = max(lasting.values(), key=lambda found: found.percent)
        return RequestRuling(
            granted=False, reason=f"{_used_words(tightest)}{_refusal_reason(tightest)}"
        )
    short = [f"{_used_words(found)}." for name, found in ahead.items() if name not in lasting]
    if wanted and grant != wanted:
        short.append(f"You asked for {grant_text(wanted)}; only this much is granted now.")
    reason = " ".join(short) or "within what the policy allows."
    return RequestRuling(granted=True, grant=grant, reason=reason)


def _resource_outlook(asked: OpenRequest, budget: Budget, resource: str) -> Outlook | None:
    """Return the outlook of one resource alone; `None` if it has no limit."""
    alone = Budget(**{resource: meter(budget, resource)})
    return outlook(alone, asked.done, slack=asked.slack)


def _runs_short(ahead: Outlook) -> bool:
    # Early on, a lag is tolerated, as the worker is told; near the end it would stop the work.
    if ahead.percent >= _TIGHT:
        return ahead.done is None or ahead.done < ahead.percent
    return not ahead.enough


def _used_words(ahead: Outlook) -> str:
    shares = "" if ahead.done is None else f" for {ahead.done:.0f} % of the work"
    return f"{_number(ahead.used)} of {_number(ahead.limit)} {ahead.resource} are used{shares}"


def _refusal_reason(ahead: Outlook) -> str:
    if ahead.done is None:
        return (
            f", {_number(ahead.left)} are left, and how much of the work is done is unknown. "
            f"Ask again when {_TIGHT} % are used."
        )
    return ": at this rate it is enough. Ask again when it is not."


def _number(value: float) -> str:
    return f"{round(value, 2):,g}"


def by_verdict(
    asked: OpenRequest, verdict: RequestVerdict, context: DecisionContext, *, author: str
) -> RequestRuling:
    """Return the model's answer within the same caps, which it cannot raise."""
    wanted = verdict.grant.as_grant if verdict.grant else None
    return RequestRuling(
        granted=verdict.granted,
        grant=asked.amount(context, wanted) if verdict.granted else Grant(),
        reason=verdict.reason.strip(),
        by=Actor.SUPERVISOR,
        author=author,
    )
