"""What is observed about an attempt: steps, edits, checkpoints, and changes around it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.records.intervention import Action
from midwatch_monitor.records.work import Activity, Budget, Lifecycle, Outage


class StepKind(StrEnum):
    """The kinds of steps."""

    TOOL = "tool"
    MESSAGE = "message"
    CHECKPOINT = "checkpoint"


class Writer(StrEnum):
    """Who changed a file. No rule counts a person's edits."""

    WORKER = "worker"
    OTHER = "other"
    PERSON = "person"


class CheckpointDecision(StrEnum):
    """What a worker says it will do next: the `decision` of a checkpoint."""

    CONTINUE = "continue"
    PIVOT = "pivot"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A file that was changed or deleted."""

    path: str
    """Path relative to the workspace, with forward slashes."""
    digest: str = ""
    """Digest of the content afterwards; empty if unknown."""
    before: str = ""
    """Digest of the content before; empty if unknown, or if there was none."""
    writer: Writer = Writer.WORKER
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A worker's own report through `reflect`. Percentages are integers from 0 to 100."""

    progress_percent: int
    """Progress in the current plan step."""
    confidence: int
    """Confidence in the current approach."""
    decision: CheckpointDecision = CheckpointDecision.CONTINUE
    blockers: tuple[str, ...] = ()
    files_done: tuple[str, ...] = ()
    """Files that the worker names as done, for people to read; never counted as edits."""
    notes: str = ""
    estimated_steps_left: int | None = None
    plan_step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One observed act in an attempt: a tool call with its result, a checkpoint, or plain text."""

    number: int
    """Number from 1, without gaps, in the order of completion."""
    kind: StepKind
    at: datetime | None = None
    request: int = 0
    """Number of the model request that it came from; 0 if unknown."""
    tool: str = ""
    args: str = ""
    """The arguments as canonical JSON, or as the text of the source."""
    path: str = ""
    """The file that the arguments name, if any."""
    edits: tuple[Edit, ...] = ()
    ok: bool | None = None
    """Whether it succeeded; `None` if the source does not say."""
    exit_code: int | None = None
    output: str = ""
    output_digest: str = ""
    """Digest of the whole output, if `output` is empty or cut."""
    text: str = ""
    """What the model said along with it."""
    tokens: int = 0
    cost_usd: float = 0.0
    call: str = ""
    """The provider's id of the tool call; a repeated call keeps it."""
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed around an attempt between two steps; only what changed is set."""

    at: datetime | None = None
    reflect: bool | None = None
    """Whether the worker has the `reflect` tool."""
    reflect_every: int | None = None
    """The reminder interval from here on, in requests; steady workers get a longer one."""
    confidence_counts: bool | None = None
    """Whether rules use the stated confidence; false if it proved worthless for this model."""
    plan_step: int | None = None
    plan_steps: int | None = None
    revision: int | None = None
    plan_step_requests: int | None = None
    """The current plan step's share of the task's model requests."""
    plan_step_files: tuple[str, ...] | None = None
    """Files that the current plan step should produce, if no plan says so."""
    model: str | None = None
    """The model from here on."""
    lifecycle: Lifecycle | None = None
    activity: Activity | None = None
    doing: str = ""
    """The commands or tools being run, if an activity is set. For people."""
    budget: Budget | None = None
    node: str | None = None
    """The node of a fleet that continues the attempt from here."""
    sandbox: str | None = None
    """The sandbox of its commands from here on; `none` for none."""
    outage: Outage | None = None
    """An outage of a model's provider that it waits for, or the end of one."""
    acts: tuple[Action, ...] | None = None
    """All actions possible from here on, on a worker that somebody else started."""


Event = Step | Change
"""The input of the rules, in order: live, from the journal, or from a trace."""
