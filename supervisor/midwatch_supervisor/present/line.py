"""One line of a run as other programs read it: the wire format of `--json`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Course,
    Diagnosis,
    Ending,
    EscalationState,
    Lifecycle,
    Outcome,
    Resolution,
    Severity,
    StepKind,
)
from midwatch_monitor.state.intervention import InterventionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How many acceptance checks pass, of how many."""

    passed: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What every line of a run begins with."""

    type: str
    at: datetime
    task: str
    """The name that its owner wrote in the task file."""
    attempt: int | None
    """The attempt's id; `None` on the line of a task."""
    number: int | None
    """The attempt's ordinal within its task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine(_Line):
    """A task's status has changed."""

    type: Literal["task"] = "task"
    status: Lifecycle
    title: str
    reason: str
    acceptance: Checks


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine(_Line):
    """An attempt's status has changed."""

    type: Literal["attempt"] = "attempt"
    id: int | None
    status: Lifecycle
    worker: str
    model: str
    reason: str
    ending: Ending | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine(_Line):
    """A step that is no checkpoint."""

    type: Literal["step"] = "step"
    step: int
    kind: StepKind
    tool: str
    args: str
    ok: bool | None
    exit_code: int | None
    output: str
    text: str
    edits: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLine(_Line):
    """What a worker said of itself."""

    type: Literal["checkpoint"] = "checkpoint"
    step: int
    progress_percent: int
    confidence: int
    decision: Course
    blockers: tuple[str, ...]
    files_done: tuple[str, ...]
    notes: str
    estimated_steps_left: int | None
    plan_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine(_Line):
    """An alert's state or severity has changed."""

    type: Literal["alert"] = "alert"
    rule: str
    subject: str
    state: AlertState
    severity: Severity
    step: int
    value: int | float | None
    """`None` where it is no finite number, which JSON cannot say."""
    summary: str
    evidence: tuple[int, ...]
    resolution: Resolution | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationLine(_Line):
    """An escalation was opened, joined, answered or closed."""

    type: Literal["escalation"] = "escalation"
    id: int
    state: EscalationState
    rules: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLine(_Line):
    """What was decided about an escalation."""

    type: Literal["decision"] = "decision"
    escalation: int
    action: Action
    diagnosis: Diagnosis
    by: Actor
    author: str
    message: str
    rationale: str
    steps: tuple[int, ...] = ()
    """The steps that the diagnosis rests on."""
    terms: str = ""
    """What exactly the action does, in words, where its name does not say it."""
    refused: str = ""
    """Why nothing came of it; empty where it was carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionLine(_Line):
    """An intervention was issued, went further on its way, or has an outcome."""

    type: Literal["intervention"] = "intervention"
    id: int
    """Its journal id, which `approve` and `reject` take."""
    action: Action
    by: Actor
    author: str
    message: str
    state: InterventionStatus
    outcome: Outcome | None
    reason: str
    """Of the outcome."""
    answers: tuple[str, ...]
    """The rules whose alerts it is meant to resolve."""
    diagnosis: Diagnosis | None = None
    """The cause that it acts on, if one was found."""
    terms: str = ""
    """What exactly it does, in words, where its action does not say it."""


Line = (
    TaskLine
    | AttemptLine
    | StepLine
    | CheckpointLine
    | AlertLine
    | EscalationLine
    | DecisionLine
    | InterventionLine
)
"""One line of a run. The last one is a `DoneLine`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSum:
    """One task at the end of a run."""

    id: str
    status: Lifecycle
    attempts: int
    alerts: int
    """How many times an alert fired; a severity that rises is no further alert."""
    interventions: int
    """The delivered ones."""
    recovered: int
    acceptance: Checks


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneLine:
    """The end of a run."""

    type: Literal["done"] = "done"
    at: datetime
    exit_code: int
    tasks: tuple[TaskSum, ...]


def fields(line: Line | DoneLine) -> Mapping[str, object]:
    """The line as JSON takes it."""
    return asdict(line) | {"at": moment(line.at)}


def moment(at: datetime) -> str:
    """A moment as lines have it: in UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
