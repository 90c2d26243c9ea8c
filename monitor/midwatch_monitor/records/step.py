"""What is observed of an attempt: steps, edits, checkpoints, changes of its circumstances."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.records.intervention import Action
from midwatch_monitor.records.work import Activity, Budget, Lifecycle, Outage


class StepKind(StrEnum):
    """The three shapes of a step."""

    TOOL = "tool"
    MESSAGE = "message"
    CHECKPOINT = "checkpoint"


class Writer(StrEnum):
    """Who changed a file. A person's edits count for no rule."""

    WORKER = "worker"
    OTHER = "other"
    PERSON = "person"


class Course(StrEnum):
    """What a worker says it will do next (the seed's `decision`)."""

    CONTINUE = "continue"
    PIVOT = "pivot"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A file that is no longer what it was."""

    path: str
    """Relative to the workspace, with forward slashes."""
    digest: str = ""
    """Of the content afterwards; empty where it is not known."""
    before: str = ""
    """Of the content before; empty where it is not known or there was none."""
    writer: Writer = Writer.WORKER
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A worker's own report through `reflect`. Percentages are integers from 0 to 100."""

    progress_percent: int
    """Toward the current plan step."""
    confidence: int
    """In the current approach."""
    decision: Course = Course.CONTINUE
    blockers: tuple[str, ...] = ()
    files_done: tuple[str, ...] = ()
    """As told by the worker: for people to read, never counted as edits."""
    notes: str = ""
    estimated_steps_left: int | None = None
    plan_step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One observed act in an attempt: a tool call with its result, a checkpoint, or plain text."""

    number: int
    """From 1, without gaps, in the order of completion."""
    kind: StepKind
    at: datetime | None = None
    request: int = 0
    """The model request that it came from; 0 where it is not known."""
    tool: str = ""
    args: str = ""
    """The arguments as canonical JSON, or as the text that the source had."""
    path: str = ""
    """The file that the arguments name, if any."""
    edits: tuple[Edit, ...] = ()
    ok: bool | None = None
    """Whether the act succeeded; `None` where the source does not say."""
    exit_code: int | None = None
    output: str = ""
    output_digest: str = ""
    """Of the whole output, where `output` is empty or cut."""
    text: str = ""
    """What the model said with it."""
    tokens: int = 0
    cost_usd: float = 0.0
    call: str = ""
    """The provider's id of the tool call; a call that is run again keeps it."""
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed around an attempt between two steps; only what changed is set."""

    at: datetime | None = None
    reflect: bool | None = None
    """Whether the worker has the `reflect` tool."""
    reflect_every: int | None = None
    """The reminder interval now in force, in requests; steady workers earn a longer one."""
    confidence_counts: bool | None = None
    """Whether the rules go by what the worker states of its confidence: not where that of its
    model proved to be worth nothing."""
    plan_step: int | None = None
    plan_steps: int | None = None
    revision: int | None = None
    plan_step_requests: int | None = None
    """The share of the task's model requests that the plan step in hand has."""
    plan_step_files: tuple[str, ...] | None = None
    """The files that the plan step in hand should leave behind, where no plan tells so."""
    model: str | None = None
    """The model that goes on from here."""
    lifecycle: Lifecycle | None = None
    activity: Activity | None = None
    doing: str = ""
    """What exactly, where an activity is set: the commands or tools that run. For people."""
    budget: Budget | None = None
    node: str | None = None
    """The node of a fleet that goes on with it from here."""
    sandbox: str | None = None
    """What its commands run in from here; `none` for nothing."""
    outage: Outage | None = None
    """What became of the provider of a model that it waits for."""
    acts: tuple[Action, ...] | None = None
    """All that can be done to a worker that somebody else started, from here on."""


Event = Step | Change
"""What the rules are fed, in order: live, from the journal, or from a trace."""
