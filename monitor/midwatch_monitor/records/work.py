"""Tasks, attempts and their budgets."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from midwatch_monitor.records.fleet import SupervisedBy


class Lifecycle(StrEnum):
    """Where a task or an attempt stands, in the words of the A2A protocol."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"

    @property
    def over(self) -> bool:
        """Whether it is final; a late result must not overwrite it."""
        return self in _OVER


_OVER = frozenset({Lifecycle.COMPLETED, Lifecycle.FAILED, Lifecycle.CANCELED, Lifecycle.REJECTED})


class Ending(StrEnum):
    """Why an attempt ended; what the runner does next depends on it."""

    DONE = "done"
    """Every acceptance check passed."""
    UNCHECKED = "unchecked"
    """It ended by itself, and nobody checked its result."""
    UNACCEPTED = "unaccepted"
    """The worker reported that it was done, but an acceptance check failed."""
    STUCK = "stuck"
    """Stopped by the supervisor or the policy."""
    RESTARTED = "restarted"
    """Ended by an intervention, to begin a new attempt."""
    SPLIT = "split"
    """Ended by an intervention, to begin smaller tasks; there is no further attempt."""
    OUT_OF_BUDGET = "out-of-budget"
    """A limit of the task's budget was reached."""
    ERROR = "error"
    """The worker, its model or its workspace failed."""
    CANCELED = "canceled"
    """Stopped or withdrawn by a person or the end of the run."""


class Activity(StrEnum):
    """What an attempt is doing now; the limits on silence depend on it."""

    MODEL = "model"
    COMMAND = "command"
    WAITING = "waiting"
    RATE_LIMITED = "rate-limited"
    IDLE = "idle"


_LASTING = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A provider's outage that an attempt is waiting out, or the end of one."""

    url: str
    reason: str
    """Why the last request failed."""
    since: datetime
    """Time of the first failed request of this outage."""
    next_try: datetime | None = None
    """Time of the next request; `None` if there is none before the run is resumed."""
    over: bool = False

    @property
    def lasting(self) -> bool:
        """Whether people are told; not while it is retried within five seconds of its start."""
        return self.next_try is None or self.next_try - self.since >= _LASTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Usage of one resource, and its limit (`None`: no limit)."""

    used: float = 0.0
    limit: float | None = None

    @property
    def spent(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.used >= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The four resources of a task: model requests, tokens, US dollars, minutes."""

    requests: Meter = Meter()
    tokens: Meter = Meter()
    cost_usd: Meter = Meter()
    minutes: Meter = Meter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An increase of the four resources."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    minutes: float = 0.0

    def __bool__(self) -> bool:
        return any((self.requests, self.tokens, self.cost_usd, self.minutes))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequest:
    """A worker's request for more budget."""

    wanted: Grant
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A worker's request for permission to do something; the worker waits for a person's answer."""

    tool: str
    """The name or kind of the tool that it would call."""
    what: str
    """What it would do, in words that can follow `asks to`."""
    step: int = 0
    """The attempt's last step at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Usage of a model by anything other than the worker."""

    role: str
    """`supervisor`, `planner`, `reviewer` or `reflector`."""
    model: str
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


SESSION = "session "
"""Prefix of the source of a run that is a session of an agent started elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of Midwatch, with the tasks that were started together."""

    id: int
    started_at: datetime
    source: str
    """Name of the task file, for people."""
    settings: str
    """The configuration in force as JSON, so that a resumed run keeps it."""
    supervised_by: SupervisedBy = SupervisedBy.PROCESS

    @property
    def of_session(self) -> bool:
        """Whether it is a session of an agent that somebody else started and Midwatch watched."""
        return self.source.startswith(SESSION)

    @property
    def agent(self) -> str:
        """The program whose session it is; empty if it is not a session."""
        return self.source.removeprefix(SESSION).partition(" ")[0] if self.of_session else ""


EMBEDDED = "{}"
"""The specification of a task without a task file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task in the journal. `name` is the id that its owner wrote in the task file."""

    id: int
    run: int
    name: str
    title: str
    spec: str
    """The task's whole specification as JSON, so that a run resumes without its file."""
    project: str = ""
    """Project of its lessons, guidelines and facts; empty if nothing is learned from it."""

    @property
    def embedded(self) -> bool:
        """Whether it has no task file: its agent was not started by Midwatch."""
        return self.spec == EMBEDDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of one worker at one task."""

    id: int
    task: int
    number: int
    worker: str
    model: str
    node: str
    workspace: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTransition:
    """A change of a task's lifecycle, with the reason and the acceptance checks so far."""

    lifecycle: Lifecycle
    reason: str = ""
    passed: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTransition:
    """A change of an attempt's lifecycle; `ending` is set once it is over."""

    lifecycle: Lifecycle
    reason: str = ""
    ending: Ending | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of one acceptance check that the runner ran itself."""

    check: str
    passed: bool
    detail: str = ""
