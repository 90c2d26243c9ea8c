"""What workers wrote down, and what acts come with, in words for people. Pure."""

import re
from collections.abc import Iterable, Iterator

from midwatch_monitor.records import (
    Action,
    Analysis,
    BudgetRequest,
    Completion,
    Grant,
    Intervention,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Ruling,
    Snapshot,
    Spending,
    Teller,
    Terms,
)

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:us )?([a-z]*?)s?")
_RESOURCES = {
    "": "requests",
    "request": "requests",
    "token": "tokens",
    "dollar": "cost_usd",
    "usd": "cost_usd",
    "minute": "minutes",
}
_BOXES = {PlanStepState.DONE: "x", PlanStepState.SKIPPED: "-", PlanStepState.OPEN: " "}


def grant_words(grant: Grant) -> str:
    """So much of each resource; empty for nothing."""
    amounts = (
        (grant.requests, "request"),
        (grant.tokens, "token"),
        (grant.cost_usd, "US dollar"),
        (grant.minutes, "minute"),
    )
    return ", ".join(_counted(amount, noun) for amount, noun in amounts if amount)


def grant_in(words: str) -> Grant | None:
    """The grant that a person wrote, as `20 requests, 0.5 dollars`; `None` if it is not readable.

    A number without a word counts requests. The same resource twice is added up.
    """
    amounts = dict.fromkeys(_RESOURCES.values(), 0.0)
    for part in (each.strip() for each in words.split(",")):
        found = _AMOUNT.fullmatch(part.lower().removeprefix("$"))
        resource = _RESOURCES.get("dollar" if part.startswith("$") else found[2]) if found else None
        if found is None or resource is None:
            return None
        amounts[resource] += float(found[1])
    requests, tokens = amounts["requests"], amounts["tokens"]
    if not (any(amounts.values()) and requests.is_integer() and tokens.is_integer()):
        return None
    return Grant(
        requests=int(requests),
        tokens=int(tokens),
        cost_usd=amounts["cost_usd"],
        minutes=amounts["minutes"],
    )


def terms_words(terms: Terms) -> str:
    """What exactly an action does, where its name does not say it; empty if it does."""
    parts = (
        grant_words(terms.grant),
        f"model {terms.model}" if terms.model else "",
        f"worker {terms.worker}" if terms.worker else "",
        f"keeps {', '.join(terms.keep)}" if terms.keep else "",
        f"after {terms.after}" if terms.after else "",
        f"parts: {', '.join(part.title for part in terms.parts)}" if terms.parts else "",
    )
    return "; ".join(part for part in parts if part)


def in_brackets(words: str) -> str:
    """The words behind what they belong to; nothing where there are none."""
    return f" ({words})" if words else ""


def steps_words(steps: Iterable[int]) -> str:
    """Step numbers; empty for none."""
    numbers = ", ".join(map(str, steps))
    return f"steps {numbers}" if numbers else ""


def analysis_words(analysis: Analysis) -> str:
    """Why something failed and what changes, behind the class of its cause."""
    about = f", step {analysis.about}" if analysis.about else ""
    by = ", by the watch" if analysis.by is Teller.WATCH else ""
    remedy = f" → {analysis.remedy}" if analysis.remedy else ""
    return f"({analysis.cause}{about}{by}): {analysis.root or analysis.what}{remedy}"


def plan_check_words(check: PlanCheck, answer: Intervention | None = None) -> str:
    """What was believed, what is true, what is to be done, and what was said to that."""
    ruling = check.ruling.value
    if check.ruling is Ruling.PENDING:
        ruling = answer_words(answer)
    reason = in_brackets(check.reason)
    choice = f"; choice: {check.choice}" if check.choice else ""
    proposed = f"; proposes: {'; '.join(check.proposed)}" if check.proposed else ""
    found = f"{check.assumption} → {check.reality}{choice}{proposed}"
    return f"plan step {check.plan_step}, {ruling}{reason}: {found}"


def completion_words(claimed: Completion) -> str:
    """Whether it was believed that something is done, and what stood against that."""
    verdict = "refused"
    if claimed.accepted:
        verdict = "accepted with a flag" if claimed.flag else "accepted"
    what = f"plan step {claimed.plan_step}" if claimed.plan_step else "the task"
    flag = f"; flag: {claimed.flag}" if claimed.flag else ""
    doubts = f"; doubts: {'; '.join(claimed.doubts)}" if claimed.doubts else ""
    return f"{verdict}, {what} at {claimed.confidence} %: {claimed.goal}{flag}{doubts}"


def request_words(asked: BudgetRequest, answer: Intervention | None = None) -> str:
    """How much more is wanted, why, and what was said to that."""
    wanted = grant_words(asked.wanted) or "more budget"
    return f"{wanted} ({answer_words(answer)}): {asked.reason}"


def answer_words(answer: Intervention | None) -> str:
    """What was said to something that a worker asked for."""
    if answer is None:
        return "pending"
    if answer.needs_approval:
        return f"{answer.action} waits for approval"
    match answer.action:
        case Action.GRANT_BUDGET:
            return f"granted {grant_words(answer.terms.grant)}".rstrip()
        case Action.REPLAN:
            return "approved"
        case _:
            return f"refused: {answer.message}" if answer.message else "refused"


def spending_words(spent: Spending) -> str:
    """What somebody other than the worker used of a model."""
    used = Grant(requests=spent.requests, tokens=spent.tokens, cost_usd=spent.cost_usd)
    return f"{spent.role}{in_brackets(spent.model)}: {grant_words(used) or 'nothing'}"


def plan_step_words(step: PlanStep) -> str:
    """What is known of a plan step beside its title and its state; empty for nothing."""
    parts = (
        "" if step.confidence is None else f"confidence {step.confidence} %",
        "" if step.requests is None else _counted(step.requests, "request"),
        f"files: {', '.join(step.files)}" if step.files else "",
        f"flag: {step.flag}" if step.flag else "",
    )
    return "; ".join(part for part in parts if part)


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan, a line for each plan step."""
    for number, step in enumerate(plan.steps, start=1):
        known = in_brackets(plan_step_words(step))
        yield f"[{_BOXES[step.state]}] {number}. {step.title}{known}"


def _counted(amount: float, noun: str) -> str:
    number = f"{amount:d}" if isinstance(amount, int) else f"{round(amount, 4):g}"
    return f"{number} {noun}" if amount == 1 else f"{number} {noun}s"


def saved_words(saved: Snapshot) -> str:
    """What was saved of an attempt's work, and where that is."""
    size = max(1, round(saved.size / 1000))
    where = f"on the branch {saved.branch}" if saved.branch else f"{size:,} kB in the journal"
    return f"the work as of step {saved.step}, {where} (commit {saved.commit[:12]})"
