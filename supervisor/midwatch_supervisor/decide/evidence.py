"""What the supervisor is shown of an attempt, as text of a bounded length. Pure.

All that came from the worker, its tools or its files stands in data blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Alert, Completion, Plan, PlanCheck, PlanStep, Step
from midwatch_supervisor.decide.diagnosis import Noted
from midwatch_supervisor.decide.standing import Diagnosed, Rival, Tried
from midwatch_supervisor.present.spelling import analysis_words, completion_words, plan_check_words
from midwatch_tools.data_blocks import DataBlocks, cut, escaped

MIN_CHARS = 1000
"""The frame alone takes some hundred characters; the setting starts here too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is known of one attempt when its escalation is decided."""

    title: str
    goal: str
    plan: Plan
    attempt: int
    """The attempt's number within its task."""
    worker: str
    budget: str = ""
    """What is used of what there is, in words."""
    alerts: tuple[Alert, ...] = ()
    steps: tuple[Step, ...] = ()
    """The last ones, oldest first."""
    checkpoints: tuple[Step, ...] = ()
    """Those of kind `checkpoint`, oldest first."""
    before: tuple[Tried, ...] = ()
    """The delivered interventions of the task's earlier attempts, oldest first."""
    interventions: tuple[Tried, ...] = ()
    """The delivered ones, oldest first."""
    analyses: tuple[Noted, ...] = ()
    """Of what failed, oldest first."""
    plan_check: PlanCheck | None = None
    """The last look at the rest of the plan."""
    completions: tuple[Completion, ...] = ()
    """What was claimed of finished plan steps, oldest first."""
    rivals: tuple[Rival, ...] = ()
    """Other attempts at work on the same files."""
    petition: str = ""
    """What the worker asks for, in its words; empty for an escalation."""
    diff: str = ""
    calibration: Calibration | None = None
    """Of the attempt's model."""
    reading: Diagnosed | None = None
    """The cause as the policy table reads it."""

    @property
    def last_step(self) -> int:
        """The number of the newest step; 0 before the first."""
        return max((step.number for step in (*self.steps, *self.checkpoints)), default=0)


def render(case: Case, max_chars: int, blocks: DataBlocks) -> str:
    """The case as a prompt of at most `max_chars` characters (at least `MIN_CHARS`).

    Where it is too long, the long parts lose their middle first, and every cut is marked.
    """
    if max_chars < MIN_CHARS:
        raise ValueError(f"a case needs {MIN_CHARS} characters or more, not {max_chars}")
    head = (
        f"{blocks.head}\n"
        f"Attempt {case.attempt}, last step {case.last_step}.\n"
        f"interventions so far: {len(case.interventions)}\n"
        f"{_read(case)}{_calibrated(case)}"
    )
    parts = {name: escaped(body) for name, body in _parts(case, max_chars) if body}
    frame = sum(len(blocks.framed(name, "")) + 1 for name in parts)
    shares = _shares(tuple(map(len, parts.values())), max_chars - len(head) - frame)
    shown = [
        blocks.framed(name, cut(body, share))
        for (name, body), share in zip(parts.items(), shares, strict=True)
    ]
    return head + "\n".join(shown)


def described(steps: Iterable[Step], max_chars: int) -> str:
    """Steps as text, each of at most `max_chars` characters."""
    return "\n".join(cut(_step(step), max_chars) for step in steps)


def _parts(case: Case, max_chars: int) -> tuple[tuple[str, str], ...]:
    # So that one endless output leaves room for the other steps: half of all is theirs.
    each = max(200, max_chars // 2 // max(1, len(case.steps)))
    return (
        ("task", f"{case.title}\n{case.goal}"),
        ("petition", case.petition),
        ("worker", f"{case.worker}\n{case.budget}".strip()),
        ("alerts", "\n".join(map(_alert, case.alerts))),
        ("interventions of earlier attempts", "\n".join(map(_tried, case.before))),
        ("interventions", "\n".join(map(_tried, case.interventions))),
        ("rivals", "\n".join(map(_rival, case.rivals))),
        ("plan", _plan(case.plan)),
        ("plan check", plan_check_words(case.plan_check) if case.plan_check else ""),
        ("completions", "\n".join(_line(completion_words(each)) for each in case.completions)),
        ("analyses", "\n".join(map(_noted, case.analyses))),
        ("checkpoints", described(case.checkpoints, each)),
        ("diff", case.diff),
        ("steps", described(case.steps, each)),
    )


def _read(case: Case) -> str:
    """The table's reading. Numbers and a known word only, so it may stand outside the data."""
    if case.reading is None:
        return ""
    steps = f" (steps {', '.join(map(str, case.reading.steps))})" if case.reading.steps else ""
    return f"first reading of the signs, by rules: {case.reading.cause}{steps}\n"


def _calibrated(case: Case) -> str:
    """What the confidence stated last is worth. Numbers only, so it may stand outside the data."""
    stated = [step.checkpoint.confidence for step in case.checkpoints if step.checkpoint]
    if case.calibration is None or not stated:
        return ""
    return (
        f"stated confidence {stated[-1]} %; attempts of this model that said so succeeded about "
        f"{case.calibration.percent(stated[-1])} % of the time "
        f"({case.calibration.attempts} finished attempts)\n"
    )


def _shares(lengths: tuple[int, ...], room: int) -> tuple[int, ...]:
    """How much of `room` each text gets: short ones all they need, long ones equally much."""
    shares = [0] * len(lengths)
    left = max(0, room)
    for rank, index in enumerate(sorted(range(len(lengths)), key=lambda at: lengths[at])):
        shares[index] = min(lengths[index], left // (len(lengths) - rank))
        left -= shares[index]
    return tuple(shares)


def _alert(alert: Alert) -> str:
    about = f" about {_line(alert.key.subject)}" if alert.key.subject else ""
    steps = f" (steps {', '.join(map(str, alert.evidence))})" if alert.evidence else ""
    return f"{alert.severity} {alert.key.rule}{about}: {_line(alert.summary)}{steps}"


def _tried(past: Tried) -> str:
    said = f": {_line(past.message)}" if past.message else ""
    why = f" ({_line(past.reason)})" if past.reason else ""
    return f"{past.action} by {past.by}, outcome {past.outcome or 'not known yet'}{why}{said}"


def _rival(rival: Rival) -> str:
    turn = "it began first" if rival.elder else "this attempt began first"
    return f"task {_line(rival.task)} works on {_line(rival.path)} too; {turn}"


def _noted(noted: Noted) -> str:
    return f"after step {noted.step}: {_line(analysis_words(noted.analysis))}"


def _plan(plan: Plan) -> str:
    return "\n".join(
        f"{number}. [{step.state}] {_line(step.title)}{_flagged(step)}"
        for number, step in enumerate(plan.steps, start=1)
    )


def _flagged(step: PlanStep) -> str:
    return f" (flag: {_line(step.flag)})" if step.flag else ""


def _step(step: Step) -> str:
    verdict = {True: ", ok", False: ", failed", None: ""}[step.ok]
    code = "" if step.exit_code is None else f", exit code {step.exit_code}"
    edits = ", ".join(edit.path for edit in step.edits)
    lines = [f"step {step.number}: {step.tool or step.kind}{verdict}{code}"]
    if step.checkpoint is not None:
        lines.append(_checkpoint(step))
    for name, text in (
        ("args", step.args),
        ("changed", edits),
        ("text", step.text),
        ("output", step.output),
    ):
        if text:
            lines.append(f"  {name}: {text}")
    return "\n".join(lines)


def _checkpoint(step: Step) -> str:
    told = step.checkpoint
    if told is None:
        return ""
    blockers = "; ".join(told.blockers) or "none"
    notes = f", notes: {_line(told.notes)}" if told.notes else ""
    return (
        f"  plan step {told.plan_step}, progress {told.progress_percent} %, confidence "
        f"{told.confidence} %, {told.decision}, blockers: {_line(blockers)}{notes}"
    )


def _line(text: str) -> str:
    return " ".join(text.split())
