"""The task file: what is to be done, by which workers, with which models."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from midwatch_monitor.config.section import Name, Percent, Refusal, Section, nearest_to

_URL = re.compile(r"(https?|ssh|git|file)://|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:")
_LOGIN = re.compile(r"(https?|git)://[^/]*@|ssh://[^/@]*:[^/]*@")


class WorkerKind(StrEnum):
    """What a worker is given to work with."""

    CODER = "coder"
    """Files, a shell and the repository's own instructions."""
    TASK = "task"
    """Only what `tools` and `mcp` name."""


class Role(StrEnum):
    """Who uses a model."""

    WORKER = "worker"
    SUPERVISOR = "supervisor"
    PLANNER = "planner"
    REVIEWER = "reviewer"
    REFLECTOR = "reflector"


class ModelSpec(Section):
    """A model by pydantic-ai's own name, or `none`."""

    name: str
    """`openai:…`, `anthropic:…`, `ollama:…`, `scripted:…`, or `none` for the policy table only."""
    base_url: str | None = None
    """Of a server that speaks the OpenAI protocol."""
    api_key_env: str | None = None
    """The environment variable that holds the key for `base_url`."""
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """How long one model request may take."""
    tries: Annotated[int, Field(ge=1, le=10)] = 4
    """How often a request that failed for a passing reason is tried."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


class WorkerSpec(Section):
    """A kind of worker that tasks can name."""

    kind: Annotated[WorkerKind | Name, Field(union_mode="left_to_right")] = WorkerKind.CODER
    """`coder`, `task`, `acp`, or an agent that is known by its name, such as `opencode`."""
    command: tuple[str, ...] = ()
    """Starts an agent that speaks ACP: the program and its arguments."""
    steering: Literal["cancel", "join", "method"] | None = None
    """How such an agent is told something in its turn; by default as it is known to take it."""
    state: tuple[str, ...] = ()
    """Where such an agent may write beside its workspace; `~` is the home directory."""
    permission: Literal["allow", "reject", "ask"] = "allow"
    """The answer to what such an agent asks a permission for; `ask` leaves it to a person."""
    model: ModelSpec | None = None
    """Default: the model of the role `worker`."""
    instructions: str = ""
    """Put before Midwatch's own protocol."""
    tools: tuple[str, ...] = ()
    """Import paths of functions, `package.module:name`."""
    mcp: tuple[str, ...] = ()
    """Commands or URLs of MCP servers."""
    agent: str = ""
    """Import path of a ready pydantic-ai agent, `package.module:name`; used instead of the rest."""
    other_models: tuple[ModelSpec, ...] = ()
    """Models that `switch_model` may go to, in this order."""


class BudgetSpec(Section):
    """The limits of a task, over all its attempts. What is absent has no limit."""

    requests: Annotated[int, Field(ge=1)] | None = 60
    """Model requests."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Input and output tokens."""
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, by the published prices of the model."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Minutes of work; waiting for a person is free."""


class FileCheck(Section):
    """An acceptance check: the file exists and is not empty."""

    file: str
    """Relative to the workspace."""


def _kind_of_check(value: object) -> str:
    return "command" if isinstance(value, str) else "file"


AcceptanceSpec = Annotated[
    Annotated[str, Tag("command")] | Annotated[FileCheck, Tag("file")],
    Discriminator(_kind_of_check),
]
"""A command that must exit with 0, or a file that must be there."""


class PlanStepSpec(Section):
    """A plan step that the owner of a task wrote; a plain text is its title."""

    title: Annotated[str, Field(min_length=1)]
    """What is reached with it."""
    files: tuple[str, ...] = ()
    """Files that it should leave behind, relative to the workspace."""
    acceptance: tuple[str, ...] = ()
    """Commands that exit with 0 once it is done."""
    confidence: Percent | None = None
    """How sure one is of it; less sure plan steps get more of the model requests."""

    @model_validator(mode="before")
    @classmethod
    def _from_title(cls, value: object) -> object:
        return {"title": value} if isinstance(value, str) else value


AUTO = "auto"
"""Instead of plan steps: the planner writes them."""


class TaskSpec(Section):
    """One task."""

    id: Name
    """Its name in commands, other tasks and branches."""
    title: str = ""
    """What people see; without one, the id."""
    goal: Annotated[str, Field(min_length=1)]
    """What the worker is told to reach."""
    worker: str = ""
    """Default: the only worker, or a coder."""
    workspace: str | None = None
    """A git repository gives a worktree and branch, another folder a copy, none an empty folder.

    A repository may be a git URL too: `https://…`, `ssh://…`, `git@host:path` or `file://…`.
    """
    project: str = ""
    """What its lessons, guidelines and facts belong to.

    Default: the repository or folder that it works on; without any, the task file's folder.
    """
    tags: tuple[Name, ...] = ()
    """Words that lessons and facts for it are found by, such as `python` or `database`."""
    labels: tuple[Name, ...] = ()
    """What a node of a fleet must offer to be given it, such as `gpu`; `run` does not look."""
    plan: tuple[PlanStepSpec, ...] | Literal["auto"] = ()
    """Plan steps, or `auto` for the planner's; none means that the goal is the only one.

    Where the task file names a model for the role `planner`, none means `auto`.
    """
    acceptance: Annotated[tuple[AcceptanceSpec, ...], Field(min_length=1)]
    """Checks that Midwatch runs itself; only they make a task `completed`."""
    budget: BudgetSpec = BudgetSpec()
    """What it may use."""
    depends_on: tuple[str, ...] = ()
    """Tasks of the same file that must be completed first."""
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 2
    """How often it is begun at most; a restart that a person orders comes on top."""
    other_workers: tuple[str, ...] = ()
    """Workers that may take the task over after a restart, in this order."""
    review: bool = False
    """Whether the role `reviewer` looks at the work, reading only, before it counts as done."""

    @field_validator("workspace")
    @classmethod
    def _without_login(cls, workspace: str | None) -> str | None:
        """A task stands in the journal and on the screen: no place for a password or a token."""
        if workspace is not None and _LOGIN.match(workspace):
            raise Refusal("names who logs in: leave that to git's credential helper")
        return workspace

    @property
    def label(self) -> str:
        """What people see."""
        return self.title or self.id

    @property
    def origin(self) -> str:
        """The workspace if it is a git URL; else empty."""
        return self.workspace if self.workspace and _URL.match(self.workspace) else ""


class Defaults(Section):
    """What tasks have that do not say otherwise."""

    worker: str = ""
    workspace: str | None = None
    project: str = ""
    tags: tuple[Name, ...] = ()
    labels: tuple[Name, ...] = ()
    budget: BudgetSpec = BudgetSpec()
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 2


class TaskFile(Section):
    """A whole task file."""

    defaults: Defaults = Defaults()
    """What tasks have that do not say otherwise."""
    models: dict[Role, ModelSpec] = Field(default_factory=dict[Role, ModelSpec])
    """One per role; a role without one uses the worker's."""
    workers: dict[Name, WorkerSpec] = Field(default_factory=dict[str, WorkerSpec])
    """By the names that tasks give; without any, a coder does them all."""
    tasks: Annotated[tuple[TaskSpec, ...], Field(min_length=1)]
    """In any order: `depends_on` says what waits for what."""

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, value: object) -> object:
        """Put the defaults into each task that does not say otherwise."""
        if not isinstance(value, dict):
            return value
        raw: dict[str, object] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        defaults, tasks = raw.get("defaults"), raw.get("tasks")
        if isinstance(defaults, dict) and isinstance(tasks, list):
            raw["tasks"] = [
                {**defaults, **task} if isinstance(task, dict) else task
                for task in tasks  # pyright: ignore[reportUnknownVariableType]
            ]
        return raw

    @field_validator("tasks")
    @classmethod
    def _consistent(cls, tasks: tuple[TaskSpec, ...]) -> tuple[TaskSpec, ...]:
        names: list[str] = []
        for at, task in enumerate(tasks):
            if task.id in names:
                raise Refusal(f"two tasks have the id {task.id!r}", at=(at, "id"))
            names.append(task.id)
        for at, task in enumerate(tasks):
            for position, other in enumerate(task.depends_on):
                if other not in names:
                    raise Refusal(
                        f"there is no task {other!r}",
                        at=(at, "depends_on", position),
                        nearest=nearest_to(other, names),
                    )
        _refuse_cycle({task.id: task.depends_on for task in tasks})
        return tasks

    @model_validator(mode="after")
    def _workers_exist(self) -> "TaskFile":
        for at, task in enumerate(self.tasks):
            for position, other in enumerate(task.other_workers):
                if other not in self.workers:
                    raise Refusal(
                        f"there is no worker {other!r}",
                        at=("tasks", at, "other_workers", position),
                        nearest=nearest_to(other, self.workers),
                    )
            if task.worker and task.worker not in self.workers:
                raise Refusal(
                    f"there is no worker {task.worker!r}",
                    at=("tasks", at, "worker"),
                    nearest=nearest_to(task.worker, self.workers),
                )
            if not task.worker and len(self.workers) > 1:
                raise Refusal(
                    f"must name one of the workers: {', '.join(self.workers)}",
                    at=("tasks", at, "worker"),
                )
        return self

    def worker_of(self, task: TaskSpec) -> tuple[str, WorkerSpec]:
        """The name and the specification of the worker that does a task."""
        if task.worker:
            return task.worker, self.workers[task.worker]
        for name, spec in self.workers.items():
            return name, spec
        return "coder", WorkerSpec()

    def model_of(self, role: Role, worker: WorkerSpec | None = None) -> ModelSpec | None:
        """The model of a role: its own, else the worker's own, else the role `worker`'s."""
        if role is Role.WORKER and worker is not None and worker.model is not None:
            return worker.model
        return self.models.get(role, self.models.get(Role.WORKER))


def _refuse_cycle(needs: dict[str, tuple[str, ...]]) -> None:
    open_names = dict(needs)
    while open_names:
        ready = [name for name, others in open_names.items() if not set(others) & set(open_names)]
        if not ready:
            raise Refusal(
                f"tasks depend on each other in a circle: {', '.join(sorted(open_names))}"
            )
        for name in ready:
            del open_names[name]


def resolve_workspace(task: TaskSpec, beside: Path) -> Path | None:
    """The task's workspace as an absolute path; relative ones start beside the task file.

    `None` where it has none on this machine: an empty folder, or a git URL.
    """
    if task.workspace is None or task.origin:
        return None
    return (beside / Path(task.workspace).expanduser()).resolve()
