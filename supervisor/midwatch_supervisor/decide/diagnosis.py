"""Which one cause the signs point to: the table's answer, and a first reading for a model. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from midwatch_monitor.records import (
    Action,
    Activity,
    Alert,
    Analysis,
    Cause,
    Course,
    Diagnosis,
    Movement,
    Plan,
    PlanStepState,
    Step,
    StepKind,
    Teller,
)
from midwatch_monitor.rules.act import Act, Check, Normaliser
from midwatch_monitor.rules.detector import BETTER, Movements
from midwatch_monitor.rules.failure import failed, surroundings
from midwatch_monitor.rules.identity import NO_WORK, held_back
from midwatch_supervisor.decide.standing import Diagnosed, Tried


@dataclass(slots=True, kw_only=True)
class Track:
    """The course of one attempt, as far as observed evidence tells."""

    better_at: int = 0
    """The last step at which a check passed that had failed, or failed in fewer places."""
    broken_at: int = 0
    """The last step at which a check failed that had passed."""
    passing_at: int = 0
    """The last look at the work, if it went well; 0 if it failed, or before the first."""
    _acts: Normaliser = field(default_factory=Normaliser, compare=False)
    _movements: Movements = field(default_factory=Movements, compare=False)

    def take(self, step: Step) -> None:
        """Take in the next step."""
        act = self._acts.act(step)
        moved = self._movements.observe(act).kinds
        if moved & BETTER:
            self.better_at = step.number
        if Movement.CHECK_BROKEN in moved:
            self.broken_at = step.number
        self._look(act)

    def _look(self, act: Act) -> None:
        if act.check is not Check.NONE and act.failed is not None:
            self.passing_at = 0 if act.failed else act.number

    def improved_since(self, step: int) -> bool:
        """Whether the work got better after a step, and no worse again."""
        return self.better_at > step and self.better_at > self.broken_at


_RECENT = 12
"""Steps of work whose failures count: what failed before that is history."""
_FRESH = 2
"""Steps within which what the provider did is still its doing."""
_GONE = 0.9
"""From this share on a budget is as good as gone; where `budget_burn` warns."""
_CHECKPOINTS = 5
"""So many reports with less than half of the plan done, and little confidence, are too many."""
_TAIL = 4_000

_DOUBTFUL = frozenset({"low_confidence", "declining_confidence"})
_CALLS = frozenset({"explicit_escalation"})
"""Who asks for help is heard, whatever got better meanwhile."""
_APPROACH = frozenset(
    {
        "repeated_edits",
        "redundant_steps",
        "repeated_call",
        "cycle",
        "same_failure",
        "error_streak",
        "stalled_progress",
        "revert_churn",
        "unsupported_claim",
    }
)
"""Rules whose condition is itself a sign of an approach that does not get there."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """An analysis, and the attempt's last step when it was written."""

    analysis: Analysis
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What a cause is read from. Steps, analyses and checkpoints are those of one attempt."""

    alerts: tuple[Alert, ...]
    steps: tuple[Step, ...] = ()
    """The last ones, oldest first."""
    checkpoints: tuple[Step, ...] = ()
    """All of them, oldest first."""
    revised_at: int = 0
    """The last step before the plan was last written anew; 0 if it never was."""
    analyses: tuple[Noted, ...] = ()
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    used: float = 0.0
    """The share of the tightest limit that is used."""
    tried: tuple[Tried, ...] = ()
    """In the whole task, oldest first."""
    track: Track = field(default_factory=Track)
    activity: Activity | None = None
    conflict: bool = False
    """Whether another attempt keeps a file which this one changed too."""

    @property
    def last_step(self) -> int:
        """The number of the newest step; 0 before the first."""
        return max((step.number for step in (*self.steps, *self.checkpoints)), default=0)

    def fires(self, *rules: str) -> tuple[Alert, ...]:
        """The alerts of some rules."""
        return tuple(alert for alert in self.alerts if alert.key.rule in rules)


Found = tuple[int, ...] | None
"""The steps by which a cause shows itself; `None` where it does not."""


def diagnose(signs: Signs) -> Diagnosed:
    """The first cause of the table that shows itself; `unknown` where none does."""
    for cause, look in TABLE:
        steps = look(signs)
        if steps is not None:
            return Diagnosed(cause=cause, steps=_known(steps, signs))
    return Diagnosed(steps=_known(_evidence(signs.alerts), signs))


def _provider(signs: Signs) -> Found:
    """The provider was asked again just now, or lets the attempt wait."""
    if signs.fires("silence") and signs.activity is Activity.RATE_LIMITED:
        return (signs.last_step,)
    recent = [
        noted.step
        for noted in signs.analyses
        if noted.analysis.by is Teller.WATCH and noted.step >= signs.last_step - _FRESH
    ]
    return tuple(recent) or None


def _missing_dependency(signs: Signs) -> Found:
    """The last failures say that something is not installed."""
    return _last_failures(signs, _lacks_program)


def _environment(signs: Signs) -> Found:
    """Something around the work stands in its way, or another attempt works on the same file."""
    if blocked := signs.fires("blocked_environment"):
        return _evidence(blocked)
    if signs.conflict and len(signs.fires("workspace_conflict")) == len(signs.alerts):
        return _evidence(signs.alerts)
    return _last_failures(signs, lambda step: bool(surroundings(step.output)))


def _budget(signs: Signs) -> Found:
    """The budget ends before the work does, and nothing else is wrong with the work."""
    others = [each for each in signs.fires(*_APPROACH) if each.severity.alarm]
    burns = signs.fires("budget_burn")
    if others or not (burns or signs.used >= _GONE):
        return None
    return _evidence(burns) or (signs.last_step,)


def _wrong_worker(signs: Signs) -> Found:
    """It lacks a tool, or a permission, that the work needs."""
    unknown = [
        step.number
        for step in _work(signs)
        if step.ok is False and _WITHOUT.search(step.output) is not None
    ]
    lacking = [
        step.number
        for step in signs.checkpoints[-1:]
        if step.checkpoint and any(map(_LACKS.search, step.checkpoint.blockers))
    ]
    return tuple(unknown + lacking) or None


def _infeasible(signs: Signs) -> Found:
    """The worker says so, with a cause that stays; or neither another plan nor a restart helped."""
    failed = {past.action for past in signs.tried if past.failed}
    if {Action.REPLAN, Action.RESTART} <= failed:
        return _evidence(signs.alerts)
    last = signs.checkpoints[-1] if signs.checkpoints else None
    told = last.checkpoint if last else None
    lasting = [noted for noted in signs.analyses if noted.analysis.cause is Cause.PERMANENT]
    if last is None or told is None or told.decision is not Course.ESCALATE or not lasting:
        return None
    words = [told.notes, *told.blockers]
    words += [text for each in lasting for text in (each.analysis.what, each.analysis.root)]
    said = any(_IMPOSSIBLE.search(text) for text in words)
    return (*(each.analysis.about for each in lasting), last.number) if said else None


def _needs_split(signs: Signs) -> Found:
    """One plan step takes too long, or the plan as a whole does and nothing goes round."""
    if long := signs.fires("steps_on_plan_step"):
        return _evidence(long)
    if any(alert.severity.alarm for alert in signs.fires(*_APPROACH)):
        return None
    done = sum(step.state is not PlanStepState.OPEN for step in signs.plan.steps)
    told = [step for step in signs.checkpoints if step.number > signs.revised_at]
    last = told[-1].checkpoint if told else None
    slow = (
        last is not None
        and last.confidence < 50
        and len(told) >= _CHECKPOINTS
        and len(signs.plan.steps) > 1
        and 2 * done < len(signs.plan.steps)
    )
    return tuple(step.number for step in told[-_CHECKPOINTS:]) if slow else None


def _false_alarm(signs: Signs) -> Found:
    """The work got better since, or only the worker's own doubt fires while the checks pass."""
    if not signs.alerts or signs.fires(*_CALLS):
        return None
    if all(signs.track.improved_since(alert.step) for alert in signs.alerts):
        return (signs.track.better_at,)
    doubts = signs.fires(*_DOUBTFUL)
    if len(doubts) == len(signs.alerts) == 1 and signs.track.passing_at:
        return (signs.track.passing_at,)
    return None


def _wrong_approach(signs: Signs) -> Found:
    """What it does does not get there: it goes round, or comes back to the same failure."""
    found = signs.fires(*_APPROACH)
    return _evidence(found) if found else None


TABLE: tuple[tuple[Diagnosis, Callable[[Signs], Found]], ...] = (
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
"""In order, and the first that shows itself counts.

What lies outside the work comes first, because it looks like an approach that does not get there;
what the worker cannot help comes before what it can.
"""


def _work(signs: Signs) -> list[Step]:
    return [
        step
        for step in signs.steps
        if step.kind is StepKind.TOOL and step.tool not in NO_WORK and not held_back(step)
    ][-_RECENT:]


def _last_failures(signs: Signs, tells: Callable[[Step], bool]) -> Found:
    """The failures at the end that tell of one thing; none if the newest tells of another.

    Nothing either where the work got better after it.
    """
    found: list[int] = []
    for step in reversed(_work(signs)):
        if not failed(step):
            continue
        if not tells(step):
            break
        found.append(step.number)
    if not found or signs.track.improved_since(found[0]):
        return None
    return tuple(sorted(found))


def _lacks_program(step: Step) -> bool:
    missing = _MISSING.search(step.output[-_TAIL:]) is not None
    return missing or surroundings(step.output).startswith("missing program")


def _evidence(alerts: tuple[Alert, ...]) -> tuple[int, ...]:
    return tuple(number for alert in alerts for number in alert.evidence or (alert.step,))


def _known(steps: tuple[int, ...], signs: Signs) -> tuple[int, ...]:
    """Each once, in order, as far as there is such a step; the newest where nothing is left."""
    last = signs.last_step
    found = sorted({number for number in steps if 1 <= number <= last})
    return tuple(found) or ((last,) if last else ())
