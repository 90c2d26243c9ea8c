"""What is wanted and who tries it: tasks, attempts, budgets."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from midwatch_monitor.records.fleet import Keeper


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
        """Whether nothing can follow: a late result must not overwrite it."""
        return self in _OVER


_OVER = frozenset({Lifecycle.COMPLETED, Lifecycle.FAILED, Lifecycle.CANCELED, Lifecycle.REJECTED})


class Ending(StrEnum):
    """Why an attempt ended; what the runner does next depends on it."""

    DONE = "done"
    """Every acceptance check passed."""
    UNCHECKED = "unchecked"
    """It ended by itself, and nobody checked what it did."""
    UNACCEPTED = "unaccepted"
    """The worker said that it was done, and an acceptance check failed."""
    STUCK = "stuck"
    """Stopped by the supervisor or the policy."""
    RESTARTED = "restarted"
    """Ended by an intervention in favour of a new attempt."""
    SPLIT = "split"
    """Ended by an intervention in favour of smaller tasks; there is no further attempt."""
    OUT_OF_BUDGET = "out-of-budget"
    """A limit of the task's budget was reached."""
    ERROR = "error"
    """The worker, its model or its workspace failed."""
    CANCELED = "canceled"
    """A person, or the end of the run, stopped or withdrew it."""


class Activity(StrEnum):
    """What an attempt is doing right now, so that silence can be judged by its kind."""

    MODEL = "model"
    COMMAND = "command"
    WAITING = "waiting"
    RATE_LIMITED = "rate-limited"
    IDLE = "idle"


_LASTING = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A provider that an attempt waits for, or whose outage is over."""

    url: str
    reason: str
    """Why the last request failed."""
    since: datetime
    """When the first one failed that nothing has answered since."""
    next_try: datetime | None = None
    """`None`: nobody tries before the run is resumed."""
    over: bool = False

    @property
    def lasting(self) -> bool:
        """Whether people are told: not of what passes within five seconds."""
        return self.next_try is None or self.next_try - self.since >= _LASTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How much of one resource is used, and how much there is (`None`: no limit)."""

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
    """So much more of the four resources."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    minutes: float = 0.0

    def __bool__(self) -> bool:
        return any((self.requests, self.tokens, self.cost_usd, self.minutes))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequest:
    """A worker asks for more than its task was given."""

    wanted: Grant
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A worker asks a person whether it may do something, and waits for that."""

    tool: str
    """Which it would call, by its name or its kind."""
    what: str
    """What it would do, in words that may follow `asks to`."""
    step: int = 0
    """The attempt's last step by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What somebody other than the worker used of a model."""

    role: str
    """`supervisor`, `planner`, `reviewer` or `reflector`."""
    model: str
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


SESSION = "session "
"""What the source of a run begins with that is a session of an agent started elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of Midwatch: the tasks that were handed over together."""

    id: int
    started_at: datetime
    source: str
    """The task file as it was named, for people."""
    settings: str
    """The configuration in force as JSON, so that a resumed run keeps it."""
    keeper: Keeper = Keeper.PROCESS

    @property
    def of_session(self) -> bool:
        """Whether it is a session of an agent that somebody else started, and Midwatch watched."""
        return self.source.startswith(SESSION)


EMBEDDED = "{}"
"""The specification of a task that came without a task file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task as the journal knows it. `name` is the id that its owner wrote in the task file."""

    id: int
    run: int
    name: str
    title: str
    spec: str
    """The task's whole specification as JSON, so that a run resumes without its file."""
    project: str = ""
    """What lessons, guidelines and facts of it belong to; empty if nothing is learned from it."""

    @property
    def embedded(self) -> bool:
        """Whether it came without a task file: of an agent that Midwatch did not start."""
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
