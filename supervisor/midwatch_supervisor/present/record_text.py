"""The text of each kind of record: one line, and paragraphs with everything. Pure.

The feed, `show`, the console, the report and a run's progress all use these lines.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    BudgetRequest,
    Change,
    Checkpoint,
    Claim,
    ClaimState,
    Completion,
    Delivery,
    Ending,
    Fault,
    Intervention,
    Lifecycle,
    Outage,
    OutcomeReport,
    PermissionRequest,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Recall,
    Record,
    Ruling,
    Snapshot,
    Spending,
    Step,
    StepKind,
    TaskTransition,
)
from midwatch_monitor.rules.identity import END_UNKNOWN, HELD_BACK, was_refused
from midwatch_monitor.state.attempt_details import ENDED_AS, AttemptStatus, planned
from midwatch_supervisor.present.call_arguments import arguments_text
from midwatch_supervisor.present.intervention_text import (
    INTERVENTION_TEXTS,
    delivery_text,
    intervention_text,
    outcome_text,
    reach_text,
)
from midwatch_supervisor.present.learning_text import (
    LEARNING_TEXTS,
    NOTHING,
    GivenLearning,
    recall_text,
)
from midwatch_supervisor.present.numbers import (
    amount,
    checks_text,
    count_noun,
    grant_text,
    kilobytes,
    paid,
    usage_text,
)
from midwatch_supervisor.present.text_line import (
    LEARNING,
    LIFECYCLE_SIGNS,
    NODE,
    STATUS_SIGNS,
    Parts,
    TextLine,
    Tone,
    because,
    blocker_words,
    brief,
    in_brackets,
    number_lines,
)
from midwatch_supervisor.present.waiting import round_time

RULES = frozenset(Rules.model_fields)
_CALL_FIRST = re.compile(r"\bcall (?:first )?`(\w+)`", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:(?!\.\s).)+", re.DOTALL)


def line(
    record: Record,
    about: Intervention | None = None,
    given: GivenLearning = NOTHING,
    *,
    id: int = 0,
    plan_steps: int = 0,
) -> TextLine:
    """Return a record's text.

    `about` is the intervention that a stamp or an outcome is about, that answers a worker's
    request, or that an attempt waits for; `given` is what a recall selected, in its present state;
    `id` is the journal id, shown if a command takes it; `plan_steps` is the number of steps in the
    plan of the attempt that reports progress.
    """
    if isinstance(record, Step):
        return _step_text(record, plan_steps)
    if isinstance(record, Recall):
        return recall_text(record, given)
    if describe := _WITH_INTERVENTION.get(type(record)):
        return describe(record, about)
    if isinstance(record, Intervention):
        return intervention_text(record, id)
    return _TEXTS[type(record)](record)


# Tasks and attempts.

_LIFECYCLES: Mapping[Lifecycle, Tone] = {
    Lifecycle.INPUT_REQUIRED: Tone.WARN,
    Lifecycle.COMPLETED: Tone.GOOD,
    Lifecycle.FAILED: Tone.BAD,
}
_PLAIN_ENDINGS = frozenset({None, Ending.DONE, Ending.CANCELED})


def lifecycle_text(lifecycle: Lifecycle, about: Intervention | None = None) -> str:
    """Return a lifecycle in words; `about` is what a waiting attempt waits for."""
    if lifecycle is not Lifecycle.INPUT_REQUIRED:
        return lifecycle.value
    paused = about is not None and about.action is Action.PAUSE
    return "paused" if paused else "waiting for a person"


def _task_text(state: TaskTransition) -> TextLine:
    if state.lifecycle is Lifecycle.COMPLETED and not state.total:
        return _ended_as(AttemptStatus.ENDED, state.reason)  # a checked task has at least one check
    checks = f" ({checks_text(state.passed, state.total)})" if state.total else ""
    text = f"{lifecycle_text(state.lifecycle)}{checks}{because(state.reason)}"
    return _status_text(state.lifecycle, text)


def _attempt_text(state: AttemptTransition, about: Intervention | None) -> TextLine:
    if state.ending is not None and state.ending in ENDED_AS:
        return _ended_as(ENDED_AS[state.ending], state.reason)
    ending = "" if state.ending in _PLAIN_ENDINGS else f" ({state.ending})"
    standing = lifecycle_text(state.lifecycle, about)
    return _status_text(state.lifecycle, f"{standing}{ending}{because(state.reason)}")


def _ended_as(status: AttemptStatus, reason: str) -> TextLine:
    return TextLine(STATUS_SIGNS[status], "status", f"{status}{because(reason)}", Tone.DIM)


def _status_text(lifecycle: Lifecycle, text: str) -> TextLine:
    tone = _LIFECYCLES.get(lifecycle, Tone.DIM)
    return TextLine(LIFECYCLE_SIGNS[lifecycle], "status", text, tone)


CONFIDENCE_SILENT = "confidence is worthless: low_confidence and declining_confidence are silent"


def _change_text(change: Change) -> TextLine:
    if change.node is not None:
        text = f"continues on {brief(change.node)}"
        return TextLine("→", "node", text, Tone.WARN)
    if change.lifecycle is not None:
        return _status_text(change.lifecycle, lifecycle_text(change.lifecycle))
    if change.outage is not None:
        return _outage_text(change.outage, change.at or change.outage.since)
    facts = (
        f"model {brief(change.model)}" if change.model else "",
        CONFIDENCE_SILENT if change.confidence_counts is False else "",
        f"plan step {change.plan_step}" if change.plan_step else "",
        brief(change.doing) or (change.activity.value if change.activity else ""),
        f"sandbox {brief(change.sandbox)}" if change.sandbox else "",
        reach_text(change.acts) if change.acts is not None else "",
    )
    return TextLine("·", "change", ", ".join(filter(None, facts)), Tone.DIM)


def _outage_text(outage: Outage, at: datetime) -> TextLine:
    """Return the text of a provider's outage at that moment."""
    url, past = brief(outage.url), at - outage.since
    if outage.over:
        return TextLine("→", "provider", f"{url} answers, after {round_time(past)}", Tone.GOOD)
    lasted = f" {round_time(past)}" if past >= timedelta(seconds=1) else ""
    if outage.next_try is None:
        then = "it is not called again before the run is resumed"
    else:
        then = f"next try in {round_time(outage.next_try - at)}"
    text = f"waiting{lasted} for {url}: {brief(outage.reason)}; {then}"
    return TextLine("✗", "provider", text, Tone.WARN)


def _snapshot_text(saved: Snapshot) -> TextLine:
    if not saved.kept:
        text = f"too large (fleet.max_bundle_mb): the work as of step {saved.step} cannot move"
        return TextLine("✗", "not saved", text, Tone.WARN)
    journal = f"{kilobytes(saved.size)} in the journal"
    where = f"on branch {saved.branch}" if saved.branch else journal
    text = brief(f"the work as of step {saved.step}, {where} (commit {saved.commit[:12]})")
    return TextLine("·", "saved", text, Tone.DIM)


def _acceptance_text(check: Acceptance) -> TextLine:
    sign, tone = ("✓", Tone.GOOD) if check.passed else ("✗", Tone.BAD)
    verdict = "passed" if check.passed else "FAILED"
    return TextLine(
        sign,
        "check",
        f"{verdict} {brief(check.check)}{because(check.detail, 160)}",
        tone,
        (("check", check.check), ("result", verdict), ("detail", check.detail)),
    )


# Steps.


def _step_text(step: Step, plan_steps: int) -> TextLine:
    parts = _step_parts(step, plan_steps)
    if step.checkpoint is not None:
        return _checkpoint_text(step.checkpoint, parts, plan_steps)
    if step.kind is StepKind.MESSAGE and (step.text or step.ok is not False):
        return TextLine("“", "says", brief(step.text), parts=parts)
    tool = brief(step.tool) or ("model" if step.kind is StepKind.MESSAGE else "tool")
    if was_refused(step):
        return TextLine("⊘", tool, f"REFUSED: {_refusal_text(step.output)}", Tone.WARN, parts)
    code = f" (exit code {step.exit_code})" if step.exit_code else ""
    changed = ", ".join(edit.path for edit in step.edits)
    asked = step.path or arguments_text(step.args)
    if step.ok is None and step.output == END_UNKNOWN:
        return TextLine("?", tool, f"INTERRUPTED{because(changed or asked)}", Tone.WARN, parts)
    if step.ok is not False and not step.exit_code:
        return TextLine("·", tool, brief(changed or asked or step.output), Tone.PLAIN, parts)
    # A change in the meantime may be the work of a concurrent call.
    why = "" if step.exit_code else brief(step.output, 160)
    said = ": ".join(filter(None, (asked or changed, why)))
    return TextLine("✗", tool, f"FAILED{code}{because(said)}", Tone.WARN, parts)


def _refusal_text(output: str) -> str:
    """Return what to do before the call, according to the refusal; else its first sentence."""
    reason = output.removeprefix(HELD_BACK)
    if tool := _CALL_FIRST.search(reason):
        return f"call {tool[1]} first"
    sentence = _SENTENCE.match(reason)
    return brief(sentence[0] if sentence else reason, 160)


def _step_parts(step: Step, plan_steps: int) -> Parts:
    verdict = {True: "ok", False: "failed", None: ""}[step.ok]
    facts = (
        step.tool or step.kind.value,
        "refused" if was_refused(step) else verdict,
        "" if step.exit_code is None else f"exit code {step.exit_code}",
        f"{amount(step.tokens)} tokens" if step.tokens else "",
        paid(step.cost_usd),
    )
    return (
        (f"step {step.number}", ", ".join(filter(None, facts))),
        ("report", _report_text(step.checkpoint, plan_steps) if step.checkpoint else ""),
        ("arguments", "" if step.checkpoint else step.args),
        ("changed", "\n".join(edit.path for edit in step.edits)),
        ("text", step.text),
        ("output", step.output),
    )


def _checkpoint_text(report: Checkpoint, parts: Parts, plan_steps: int) -> TextLine:
    blockers = blocker_words(report.blockers)
    said = ", ".join(filter(None, (_progress_text(report, plan_steps), blockers)))
    return TextLine(
        "◆",
        "checkpoint",
        brief(f"{said}{because(report.notes)}"),
        Tone.ACCENT,
        parts,
    )


def _progress_text(report: Checkpoint, plan_steps: int) -> str:
    found = planned(report.plan_step, plan_steps)
    of = f" of plan step {found[0]}" if found else ""
    return (
        f"progress {report.progress_percent} %{of}, confidence {report.confidence} %, "
        f"{report.decision}"
    )


def _report_text(report: Checkpoint, plan_steps: int) -> str:
    left = report.estimated_steps_left
    lines = (
        _progress_text(report, plan_steps),
        *(f"blocked by: {blocker}" for blocker in report.blockers),
        *(f"reported as done: {path}" for path in report.files_done),
        "" if left is None else f"estimated steps left: {left}",
        report.notes,
    )
    return "\n".join(filter(None, lines))


# Plans, and what a worker says about its work.

_BOXES = {PlanStepState.DONE: "x", PlanStepState.SKIPPED: "-", PlanStepState.OPEN: " "}
_CLAIMS = {ClaimState.PASSED: "✓", ClaimState.FAILED: "✗", ClaimState.UNPROVEN: "?"}
_RULINGS = {Ruling.GRANTED: Tone.DIM, Ruling.REFUSED: Tone.WARN}


def _plan_text(plan: Plan) -> TextLine:
    count = len(plan.steps)
    now = plan.steps[plan.current - 1].title if plan.current <= count else "all done"
    where = f"plan step {min(plan.current, count)} of {count}"
    text = f"revision {plan.revision}, {where}: {brief(now)}"
    parts = ((f"plan, revision {plan.revision}", "\n".join(plan_lines(plan))),)
    return TextLine("≡", "plan", text, Tone.DIM, parts)


def plan_lines(plan: Plan) -> tuple[str, ...]:
    """Return the plan with a line for each plan step: `[x] 1. Read the code (confidence 80 %)`."""
    return tuple(
        f"[{_BOXES[step.state]}] {number}. {brief(step.title)}{in_brackets(plan_step_text(step))}"
        for number, step in enumerate(plan.steps, start=1)
    )


def plan_step_text(step: PlanStep) -> str:
    """Return what is known of a plan step besides its title and state; empty for nothing."""
    parts = (
        "" if step.confidence is None else f"confidence {step.confidence} %",
        "" if step.requests is None else count_noun(step.requests, "request"),
        f"files: {', '.join(step.files)}" if step.files else "",
        f"flag: {step.flag}" if step.flag else "",
    )
    return "; ".join(filter(None, parts))


def _plan_check(check: PlanCheck, answer: Intervention | None) -> TextLine:
    pending = check.ruling is Ruling.PENDING
    ruling = answer_text(answer) if pending else check.ruling.value
    choice = f"; choice: {check.choice}" if check.choice else ""
    proposed = f"; proposes: {'; '.join(check.proposed)}" if check.proposed else ""
    found = f"{check.assumption} → {check.reality}{choice}{proposed}"
    return TextLine(
        "≟",
        "plan check",
        brief(f"plan step {check.plan_step}, {ruling}{in_brackets(check.reason)}: {found}"),
        _request_tone(answer) if pending else _RULINGS[check.ruling],
        (
            (f"plan check before plan step {check.plan_step}", check.assumption),
            ("reality", check.reality),
            ("impact", check.impact),
            ("options", number_lines(check.options)),
            ("choice", check.choice),
            ("plan steps that should remain", number_lines(check.proposed)),
            ("ruling", ruling),
            ("reason", check.reason),
        ),
    )


def _request_tone(answer: Intervention | None) -> Tone:
    return Tone.WARN if answer is None or answer.needs_approval else Tone.DIM


def answer_text(answer: Intervention | None) -> str:
    """Return the answer to a worker's request."""
    if answer is None:
        return "pending"
    if answer.needs_approval:
        return f"{answer.action} waits for approval"
    match answer.action:
        case Action.GRANT_BUDGET:
            return f"granted {grant_text(answer.terms.grant)}".rstrip()
        case Action.REPLAN | Action.RESUME:
            return "approved"
        case _:
            return f"refused{because(answer.message)}"


def _permission_request(request: PermissionRequest, answer: Intervention | None) -> TextLine:
    said = answer_text(answer)
    return TextLine(
        "?",
        "asks to",
        f"{brief(request.what)} ({said})",
        _request_tone(answer),
        (
            ("asks to", request.what),
            ("by the tool", request.tool),
            ("after step", str(request.step)),
            ("answer", said),
        ),
    )


def _budget_request(request: BudgetRequest, answer: Intervention | None) -> TextLine:
    wanted = grant_text(request.wanted) or "more budget"
    return TextLine(
        "+",
        "asks budget",
        f"{wanted} ({answer_text(answer)}){because(request.reason)}",
        _request_tone(answer),
        (
            ("asks for", wanted),
            ("because", request.reason),
            ("answer", answer_text(answer)),
        ),
    )


def _completion_text(claimed: Completion) -> TextLine:
    sign, tone, verdict = "✗", Tone.BAD, "refused"
    if claimed.accepted:
        sign, tone = ("⚑", Tone.WARN) if claimed.flag else ("✓", Tone.GOOD)
        verdict = "accepted with a flag" if claimed.flag else "accepted"
    what = f"plan step {claimed.plan_step}" if claimed.plan_step else "the task"
    flag = f"; flag: {claimed.flag}" if claimed.flag else ""
    unsaid = [each for each in claimed.doubts if each not in claimed.flag]
    doubts = f"; doubts: {'; '.join(unsaid)}" if unsaid else ""
    return TextLine(
        sign,
        "completion",
        brief(f"{verdict}, {what} at {claimed.confidence} %: {claimed.goal}{flag}{doubts}"),
        tone,
        (
            ("completion", f"{verdict}, {what} at {claimed.confidence} %: {claimed.goal}"),
            ("claims", "\n".join(map(_claim_text, claimed.claims))),
            ("doubts", "\n".join(unsaid)),
            ("flag", claimed.flag),
        ),
    )


def _claim_text(claim: Claim) -> str:
    reason = f": {claim.reason}" if claim.reason else ""
    return f"{_CLAIMS[claim.state]} {claim.state.value} {claim.what}{reason}"


def _analysis_text(analysis: Analysis) -> TextLine:
    about = f", step {analysis.about}" if analysis.about else ""
    author = ", by Midwatch" if analysis.by is AnalysisAuthor.WATCH else ""
    remedy = f" → {analysis.remedy}" if analysis.remedy else ""
    head = f"{analysis.cause}{about}{author}"
    return TextLine(
        "∵",
        "analysis",
        brief(f"({head}): {analysis.root or analysis.what}{remedy}"),
        Tone.ACCENT,
        (
            ("analysis", head),
            ("what happened", analysis.what),
            ("root cause", analysis.root),
            ("what changes", analysis.remedy),
        ),
    )


def _spending_text(spent: Spending) -> TextLine:
    used = usage_text(requests=spent.requests, tokens=spent.tokens, cost_usd=spent.cost_usd)
    text = f"{brief(spent.role)}{in_brackets(spent.model)}: {used}"
    return TextLine("$", "spent", text, Tone.DIM)


def _fault_text(fault: Fault) -> TextLine:
    if fault.part == NODE:
        return TextLine("✗", "node", brief(fault.error), Tone.WARN)
    return TextLine("✗", "fault", fault_text(fault), Tone.BAD)


def fault_text(fault: Fault, where: str = "") -> str:
    """Return what failed and how; `where`, as ` in …`, names the attempt."""
    if fault.part in RULES:
        return f"the rule {fault.part} failed and is off{where}{because(fault.error)}"
    the = "" if fault.part.startswith(LEARNING) else "the "
    return f"{the}{brief(fault.part)} failed{where}{because(fault.error)}"


_WITH_INTERVENTION: Mapping[type, Callable[[Any, Intervention | None], TextLine]] = {
    AttemptTransition: _attempt_text,
    PlanCheck: _plan_check,
    BudgetRequest: _budget_request,
    PermissionRequest: _permission_request,
    Delivery: delivery_text,
    OutcomeReport: outcome_text,
}
_TEXTS: Mapping[type, Callable[[Any], TextLine]] = {
    TaskTransition: _task_text,
    Change: _change_text,
    Snapshot: _snapshot_text,
    Acceptance: _acceptance_text,
    Plan: _plan_text,
    Completion: _completion_text,
    Analysis: _analysis_text,
    Spending: _spending_text,
    Fault: _fault_text,
    **INTERVENTION_TEXTS,
    **LEARNING_TEXTS,
}
