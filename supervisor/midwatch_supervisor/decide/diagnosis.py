"""Diagnoses the cause of alerts, and finds the failure that an attempt keeps hitting. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from midwatch_monitor.budget import share_used
from midwatch_monitor.records import (
    Action,
    Activity,
    Alert,
    AnalysisAuthor,
    Cause,
    CheckpointDecision,
    Diagnosis,
    PlanStepState,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.act import CheckKind, Normaliser
from midwatch_monitor.rules.failure_text import (
    environment_obstacle,
    failure_line,
    failure_lines,
    has_failed,
)
from midwatch_monitor.rules.identity import HELD_BACK, NO_WORK, command, was_refused
from midwatch_monitor.rules.plain_output import unwrap
from midwatch_monitor.shell.claimed_edits import changing
from midwatch_supervisor.decide.context import DecisionContext, DiagnosedCause, was_in_vain

_RECENT = 12
"""Newest steps of work whose failures count."""
_FRESH = 2
"""Steps for which a recent fault of the provider still counts as the cause."""
_GONE = 0.9
"""Share of the budget at which it counts as used up; `budget_burn` warns there, too."""
_CHECKPOINTS = 5
"""Checkpoints after which low confidence with less than half the plan done means too much work."""
_TAIL = 4_000

_DOUBTFUL = frozenset({"low_confidence", "declining_confidence"})
_CALLS = frozenset({"explicit_escalation"})
"""A worker that asks for help is never a false alarm, even if the work has improved since."""
_APPROACH = frozenset(
    {
        "repeated_edits",
        "redundant_steps",
        "fruitless_steps",
        "repeated_call",
        "cycle",
        "same_failure",
        "error_streak",
        "stalled_progress",
        "revert_churn",
        "unsupported_claim",
    }
)
"""Rules whose alerts suggest that the approach does not work."""

_MISSING = re.compile(
    r"ModuleNotFoundError|No module named\b|ImportError: cannot import\b|\bcommand not found\b"
    r"|(?i:\bcannot find (?:module|package)\b|\b(?:package|module|program|library) \S+ (?:is )?"
    r"not (?:found|installed)\b|\bis not installed\b|\bno matching distribution\b"
    r"|\bunable to locate package\b|\bcould not find a version that satisfies\b"
    r"|\bno required module provides package\b|\bunresolved import\b)"
    r"|(?:\bsh|zsh|bash|dash): (?:\d+: )?\S+: not found\b",
)
_WITHOUT = re.compile(r"(?i)^\s*Unknown tool\b|\bunknown tool name\b|\bno such tool\b")
_LACKS = re.compile(
    r"(?i)\b(?:no|lacks?|lacking|missing|without|don'?t have|do not have|not have|need)\b"
    r"[^.;]{0,40}\b(?:tools?|permissions?|access|rights)\b"
    r"|\b(?:tool|permission|access)\b[^.;]{0,30}\b(?:missing|lacking|not (?:there|available|"
    r"granted|given))\b"
)
_IMPOSSIBLE = re.compile(
    r"(?i)\bimpossible\b|\binfeasible\b|\bunsatisfiable\b|\bcontradict\w*|\bmutually exclusive\b"
    r"|\bcan(?:not|'t| not) (?:both |ever )?be (?:done|satisfied|met|solved|fulfilled|true)\b"
    r"|\bconflicting (?:requirements?|demands?|checks?|tests?)\b|\bno (?:possible )?solution\b"
)


CauseSteps = tuple[int, ...] | None
"""Steps that show a cause; `None` if the cause does not apply."""


def diagnose(context: DecisionContext) -> DiagnosedCause:
    """Return the first cause of the table that applies, or `unknown`."""
    for cause, look in TABLE:
        steps = look(context)
        if steps is not None:
            return DiagnosedCause(cause=cause, steps=_known_steps(steps, context))
    return DiagnosedCause(steps=_known_steps(_evidence_steps(context.alerts), context))


def _provider(context: DecisionContext) -> CauseSteps:
    """Check whether a request was retried just now, or the attempt waits for the provider."""
    if context.fires("silence") and context.activity is Activity.RATE_LIMITED:
        return (context.last_step,)
    recent = [
        noted.step
        for noted in context.analyses
        if noted.analysis.by is AnalysisAuthor.WATCH and noted.step >= context.last_step - _FRESH
    ]
    return tuple(recent) or None


def _missing_dependency(context: DecisionContext) -> CauseSteps:
    """Check whether the last failures say that something is not installed."""
    return _last_failures(context, _lacks_program)


def _environment(context: DecisionContext) -> CauseSteps:
    """Check for obstacles outside the work, or another attempt that edits the same file."""
    if blocked := context.fires("blocked_environment"):
        return _evidence_steps(blocked)
    if any(each.elder for each in context.concurrent) and len(
        context.fires("workspace_conflict")
    ) == len(context.alerts):
        return _evidence_steps(context.alerts)
    return _last_failures(context, lambda step: bool(environment_obstacle(step.output)))


def _budget(context: DecisionContext) -> CauseSteps:
    """Check whether the budget ends before the work does, and nothing else is wrong."""
    others = [each for each in context.fires(*_APPROACH) if each.severity.alarm]
    burns = context.fires("budget_burn")
    if others or not (burns or share_used(context.budget) >= _GONE):
        return None
    return _evidence_steps(burns) or (context.last_step,)


def _wrong_worker(context: DecisionContext) -> CauseSteps:
    """Check whether the worker lacks a tool or a permission that the work needs."""
    unknown = [
        step.number
        for step in _recent_work(context)
        if step.ok is False and _WITHOUT.search(step.output) is not None
    ]
    lacking = [
        step.number
        for step in context.checkpoints[-1:]
        if step.checkpoint and any(map(_LACKS.search, step.checkpoint.blockers))
    ]
    return tuple(unknown + lacking) or None


def _infeasible(context: DecisionContext) -> CauseSteps:
    """Check whether the worker reports a permanent obstacle, or both replan and restart failed."""
    failed = {past.action for past in context.task_wide if was_in_vain(past)}
    if {Action.REPLAN, Action.RESTART} <= failed:
        return _evidence_steps(context.alerts)
    last = context.checkpoints[-1] if context.checkpoints else None
    told = last.checkpoint if last else None
    lasting = [noted for noted in context.analyses if noted.analysis.cause is Cause.PERMANENT]
    if (
        last is None
        or told is None
        or told.decision is not CheckpointDecision.ESCALATE
        or not lasting
    ):
        return None
    words = [told.notes, *told.blockers]
    words += [text for each in lasting for text in (each.analysis.what, each.analysis.root)]
    said = any(_IMPOSSIBLE.search(text) for text in words)
    return (*(each.analysis.about for each in lasting), last.number) if said else None


def _needs_split(context: DecisionContext) -> CauseSteps:
    """Check whether a plan step takes too long, or the whole plan does without going in circles."""
    if long := context.fires("steps_on_plan_step"):
        return _evidence_steps(long)
    if any(alert.severity.alarm for alert in context.fires(*_APPROACH)):
        return None
    done = sum(step.state is not PlanStepState.OPEN for step in context.plan.steps)
    told = [step for step in context.checkpoints if step.number > context.revised_at]
    last = told[-1].checkpoint if told else None
    slow = (
        last is not None
        and last.confidence < 50
        and len(told) >= _CHECKPOINTS
        and len(context.plan.steps) > 1
        and 2 * done < len(context.plan.steps)
    )
    return tuple(step.number for step in told[-_CHECKPOINTS:]) if slow else None


def _false_alarm(context: DecisionContext) -> CauseSteps:
    """Check whether the work has improved since, or only doubt fires while the checks pass."""
    if not context.alerts or context.fires(*_CALLS):
        return None
    if all(context.track.improved_since(alert.step) for alert in context.alerts):
        return (context.track.better_at,)
    doubts = context.fires(*_DOUBTFUL)
    if len(doubts) == len(context.alerts) == 1 and context.track.passing_at:
        return (context.track.passing_at,)
    return None


def _wrong_approach(context: DecisionContext) -> CauseSteps:
    """Check whether the worker goes in circles, or keeps hitting the same failure."""
    found = context.fires(*_APPROACH)
    return _evidence_steps(found) if found else None


TABLE: tuple[tuple[Diagnosis, Callable[[DecisionContext], CauseSteps]], ...] = (
    (Diagnosis.PROVIDER, _provider),
    (Diagnosis.MISSING_DEPENDENCY, _missing_dependency),
    (Diagnosis.ENVIRONMENT, _environment),
    (Diagnosis.BUDGET, _budget),
    (Diagnosis.WRONG_WORKER, _wrong_worker),
    (Diagnosis.INFEASIBLE, _infeasible),
    (Diagnosis.NEEDS_SPLIT, _needs_split),
    (Diagnosis.FALSE_ALARM, _false_alarm),
    (Diagnosis.WRONG_APPROACH, _wrong_approach),
)
"""In order; the first cause that applies counts.

Causes outside the work come first, because they look like a wrong approach; causes that the worker
cannot change come before those that it can.
"""


def _recent_work(context: DecisionContext) -> list[Step]:
    return [
        step
        for step in context.steps
        if step.kind is StepKind.TOOL and step.tool not in NO_WORK and not was_refused(step)
    ][-_RECENT:]


def _last_failures(context: DecisionContext, tells: Callable[[Step], bool]) -> CauseSteps:
    """Return the latest failures that `tells` accepts, in order.

    `None` if it does not accept the newest failure, or if the work has improved since.
    """
    found: list[int] = []
    for step in reversed(_recent_work(context)):
        if not has_failed(step):
            continue
        if not tells(step):
            break
        found.append(step.number)
    if not found or context.track.improved_since(found[0]):
        return None
    return tuple(sorted(found))


def _lacks_program(step: Step) -> bool:
    missing = _MISSING.search(step.output[-_TAIL:]) is not None
    return missing or environment_obstacle(step.output).startswith("missing program")


def _evidence_steps(alerts: tuple[Alert, ...]) -> tuple[int, ...]:
    return tuple(number for alert in alerts for number in alert.evidence or (alert.step,))


def _known_steps(steps: tuple[int, ...], context: DecisionContext) -> tuple[int, ...]:
    """Return the steps that exist, each once and in order; the newest step if none is left."""
    last = context.last_step
    found = sorted({number for number in steps if 1 <= number <= last})
    return tuple(found) or ((last,) if last else ())


_LONGEST = 160
_RECENT_FAILURES = 10
"""Number of newest calls that are searched for refused ones."""
_TEST = re.compile(r"^(?:-+ )?(?:FAIL|FAILED|ERROR):? (\S*[A-Za-z_]\S*)", re.MULTILINE)
_ASKED = re.compile(r"\b[Cc]all `(\w+)`")
_ONLY_COUNTS = re.compile(r"FAILED \((?:failures|errors)=|=+ .*\b\d+ (?:failed|errors?)\b.*=$")
"""A final line that says how many tests failed, but not which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedFailure:
    """A check that fails in the same way each time it is run or called."""

    check: str
    """The command, or the tool if there is none."""
    told: str
    """The failing test, and the line that says how it failed."""
    steps: tuple[int, ...]
    """Steps in which it ran. Calls that the gate refused are left out: their result is unknown."""
    file: str
    """File that was edited most often in between, or that every edit failed to change; empty if
    no edit was tried.
    """
    edit_failure: str = ""
    """How the newest edit failed, if none succeeded in between."""


def repeated_failure(steps: Sequence[Step]) -> RepeatedFailure | None:
    """Return the newest failure in `steps`, oldest first, if the worker came back to it.

    `None` if the same check has passed since, or failed in another way. A call that was refused
    because it failed before counts as coming back.
    """
    acts = Normaliser()
    between: list[Step] = []
    newest: Step | None = None
    action = failure = 0
    came = 0
    ran: list[int] = []
    for step in steps:
        act = acts.act(unwrap(step))
        if came and act.action == action and was_refused(step):
            came += 1
        elif act.check is CheckKind.NONE or act.failed is None or was_refused(step):
            between.append(step)
        elif act.failed and act.failure:
            if act.failure != failure:
                came, ran, between = 0, [], []
            came += 1
            ran.append(step.number)
            newest, action, failure = step, act.action, act.failure
        elif act.action == action:
            newest, came, ran, failure = None, 0, [], 0
    if newest is None or came < 2:
        return None
    file, edit_failure = _edited_file(between)
    return RepeatedFailure(
        check=_shorten(command(newest) or newest.tool),
        told=_failure_words(newest.output),
        steps=tuple(ran),
        file=file,
        edit_failure=edit_failure,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCalls:
    """Recent calls that the gate refused, so they had no effect."""

    told: str
    """Text of the newest refusal, cut short."""
    steps: tuple[int, ...]
    asked: str = ""
    """Tool that it asks the worker to call first; empty if it names none."""


def find_refused(steps: Sequence[Step]) -> RefusedCalls | None:
    """Return the refused calls among the newest ones; `None` if there are fewer than two."""
    calls = [step for step in steps if step.kind is StepKind.TOOL][-_RECENT_FAILURES:]
    turned = [step for step in calls if was_refused(step)]
    if len(turned) < 2:
        return None
    told = turned[-1].output.removeprefix(HELD_BACK)
    asked = _ASKED.search(told)
    return RefusedCalls(
        told=_shorten(told),
        steps=tuple(step.number for step in turned),
        asked=asked[1] if asked else "",
    )


def _edited_file(steps: Sequence[Step]) -> tuple[str, str]:
    """Return the file that was edited most often, or the one whose edits all failed, and how."""
    edited: Counter[str] = Counter()
    failed: Step | None = None
    for step in steps:
        own = [edit.path for edit in step.edits if edit.writer is Writer.WORKER]
        if own or was_refused(step) or not (step.path and changing(step.tool)):
            edited.update(own)
        elif has_failed(step):
            failed = step
        else:  # writing the same content again leaves no edit
            edited[step.path] += 1
    if edited or failed is None:
        return next((path for path, _ in edited.most_common(1)), ""), ""
    return failed.path, _shorten(failed.output) or "no reason given"


def _failure_words(output: str) -> str:
    lines = [line.strip() for line in failure_lines(output)]
    more = [line for line in lines if not _ONLY_COUNTS.match(line)]
    line = _shorten(more[-1]) if more else failure_line(output)
    test = _TEST.search(output)
    return line if test is None or test[1] in line else f"{_shorten(test[1])}: {line}"


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
