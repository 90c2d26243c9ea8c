"""The task file: what is to be done, by which workers, with which models."""

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import (
    BaseModel,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticUseDefault

from midwatch_monitor.config.document import Keys
from midwatch_monitor.config.section import Name, Percent, Refusal, Section, nearest_to

_URL = re.compile(r"(https?|ssh|git|file)://|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:")
_LOGIN = re.compile(r"(https?|git)://[^/]*@|ssh://[^/@]*:[^/]*@")


class WorkerKind(StrEnum):
    """What a worker is equipped with."""

    CODER = "coder"
    """Files, a shell and the repository's own instructions."""
    TASK = "task"
    """Only what `tools` and `mcp` name."""


class Role(StrEnum):
    """What a model is used for."""

    WORKER = "worker"
    SUPERVISOR = "supervisor"
    PLANNER = "planner"
    REVIEWER = "reviewer"
    REFLECTOR = "reflector"


class ModelSpec(Section):
    """A model by pydantic-ai's name, or `none`."""

    name: str
    """`openai:…`, `anthropic:…`, `ollama:…`, `scripted:…`, or `none` for only the policy table."""
    base_url: str | None = None
    """The address of a server that speaks the OpenAI protocol."""
    api_key_env: str | None = None
    """The environment variable with the key for `base_url`."""
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """How long one model request may take."""
    tries: Annotated[int, Field(ge=1, le=10)] = 4
    """How often a request that fails for a temporary reason is tried."""

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
    """How a message is sent to such an agent during its turn; the default depends on the agent.
    """
    state: tuple[str, ...] = ()
    """Where such an agent may write besides its workspace; `~` is the home directory."""
    permission: Literal["allow", "reject", "ask"] = "allow"
    """The answer to such an agent's permission requests; `ask` leaves it to a person."""
    model: ModelSpec | None = None
    """By default the model of the role `worker`."""
    instructions: str = ""
    """Placed before Midwatch's own protocol."""
    tools: tuple[str, ...] = ()
    """Import paths of functions, `package.module:name`."""
    mcp: tuple[str, ...] = ()
    """Commands or URLs of MCP servers."""
    agent: str = ""
    """Import path of a ready-made pydantic-ai agent, `package.module:name`; replaces the other
    keys.
    """
    other_models: tuple[ModelSpec, ...] = ()
    """Models that `switch_model` may choose, in this order."""


class BudgetSpec(Section):
    """The limits of a task, over all its attempts. Missing ones are unlimited."""

    requests: Annotated[int, Field(ge=1)] | None = 60
    """Model requests."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Input and output tokens."""
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, by the model's published prices; without effect for a model that has none."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Minutes of work; waiting for a person does not count."""


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
"""A command that must exit with 0, or a file that must exist."""


class PlanStepSpec(Section):
    """A plan step written by the task's owner; a plain text is its title."""

    title: Annotated[str, Field(min_length=1)]
    """What it achieves."""
    files: tuple[str, ...] = ()
    """Files it should leave behind, relative to the workspace."""
    acceptance: tuple[str, ...] = ()
    """Commands that exit with 0 once it is done."""
    confidence: Percent | None = None
    """How certain it is; less certain plan steps get more of the model requests."""

    @model_validator(mode="before")
    @classmethod
    def _from_title(cls, value: object) -> object:
        return {"title": value} if isinstance(value, str) else value


AUTO = "auto"
"""Used instead of plan steps: the planner writes them."""


class TaskSpec(Section):
    """One task."""

    id: Name
    """Its name in commands, other tasks and branches."""
    title: str = ""
    """Shown to people; by default the id."""
    goal: Annotated[str, Field(min_length=1)]
    """What the worker is told to achieve."""
    worker: str = ""
    """By default the only worker, or a coder."""
    workspace: str | None = None
    """A git repository gives a worktree and branch, another folder a copy, none an empty folder. A
    repository may also be a git URL: `https://…`, `ssh://…`, `git@host:path` or `file://…`.
    """
    project: str = ""
    """What its lessons, guidelines and facts belong to. By default the repository or folder it
    works on; without any, the task file's folder.
    """
    tags: tuple[Name, ...] = ()
    """Words that help to find lessons and facts for it, such as `python` or `database`."""
    labels: tuple[Name, ...] = ()
    """What a node of a fleet must offer to get the task, such as `gpu`; `run` ignores it."""
    plan: tuple[PlanStepSpec, ...] | Literal["auto"] = ()
    """Plan steps, or `auto` for the planner's; none means that the goal is the only one. If the
    task file names a model for the role `planner`, none means `auto`.
    """
    acceptance: Annotated[tuple[AcceptanceSpec, ...], Field(min_length=1)]
    """Checks that Midwatch itself runs; only they make a task `completed`."""
    budget: BudgetSpec = BudgetSpec()
    """What it may use."""
    depends_on: tuple[str, ...] = ()
    """Tasks in the same file that must be completed first."""
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 2
    """The most attempts; a restart ordered by a person is extra."""
    other_workers: tuple[str, ...] = ()
    """Workers that may take over the task after a restart, in this order."""
    review: bool = False
    """Whether the model of the role `reviewer` reviews the work, read-only, before it is done."""

    @field_validator("workspace")
    @classmethod
    def _without_login(cls, workspace: str | None) -> str | None:
        """Refuse passwords and tokens: a task is stored in the journal and shown on screen."""
        if workspace is not None and _LOGIN.match(workspace):
            raise Refusal("contains a login: leave that to git's credential helper")
        return workspace

    @property
    def label(self) -> str:
        """The title, or the id."""
        return self.title or self.id

    @property
    def files_wanted(self) -> tuple[str, ...]:
        """The files that its acceptance checks name."""
        return tuple(each.file for each in self.acceptance if isinstance(each, FileCheck))

    @property
    def origin(self) -> str:
        """The workspace if it is a git URL; else empty."""
        return self.workspace if self.workspace and _URL.match(self.workspace) else ""


class Defaults(Section):
    """Defaults for all tasks."""

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
    """Defaults for all tasks."""
    models: dict[Role, ModelSpec] = Field(default_factory=dict[Role, ModelSpec])
    """One for each role; a role without one uses the worker's."""
    workers: dict[Name, WorkerSpec] = Field(default_factory=dict[str, WorkerSpec])
    """By the names used in tasks; without any, a coder does all tasks."""
    tasks: Annotated[tuple[TaskSpec, ...], Field(min_length=1)]
    """In any order: `depends_on` says which task waits for which."""

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, value: object) -> object:
        return (
            _with_defaults(cast("dict[str, object]", value)) if isinstance(value, dict) else value
        )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for first in contradictions(self.model_dump(include={"tasks", "workers"})):
            raise first
        return self

    def worker_of(self, task: TaskSpec) -> tuple[str, WorkerSpec]:
        """Return the name and the specification of a task's worker."""
        if task.worker:
            return task.worker, self.workers[task.worker]
        for name, spec in self.workers.items():
            return name, spec
        return "coder", WorkerSpec()

    def model_of(self, role: Role, worker: WorkerSpec | None = None) -> ModelSpec | None:
        """Return the model of a role: its own, else the worker's own, else the role `worker`'s."""
        if role is Role.WORKER and worker is not None and worker.model is not None:
            return worker.model
        return self.models.get(role, self.models.get(Role.WORKER))


def _with_defaults(raw: dict[str, object]) -> dict[str, object]:
    """Return a task file with the defaults filled into each task."""
    defaults, tasks = raw.get("defaults"), raw.get("tasks")
    if not isinstance(defaults, dict) or not isinstance(tasks, list):
        return raw
    over, given = cast("dict[str, object]", defaults), cast("list[dict[str, object] | str]", tasks)
    return raw | {"tasks": [over | task if isinstance(task, dict) else task for task in given]}


def _or_default(value: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(value)
    except ValidationError:
        raise PydanticUseDefault from None


_Readable = WrapValidator(_or_default)


class _TaskLinks(BaseModel):
    """What a task refers to, as far as it can be read."""

    id: Annotated[str, _Readable] = ""
    worker: Annotated[str, _Readable] = ""
    other_workers: Annotated[tuple[str, ...], _Readable] = ()
    depends_on: Annotated[tuple[str, ...], _Readable] = ()
    acceptance: Annotated[tuple[object, ...], _Readable] = ()
    plan: Annotated[tuple[object, ...], _Readable] = ()


class _Links(BaseModel):
    """A task file's references; the rest of it may be invalid."""

    workers: dict[str, object] = Field(default_factory=dict[str, object])
    tasks: tuple[_TaskLinks, ...] = ()


def contradictions(raw: dict[str, object]) -> Iterator[Refusal]:
    """Return impossible references between tasks and to workers, even if the rest is invalid."""
    try:
        links = _Links.model_validate(_with_defaults(raw))
    except ValidationError:
        return
    names = [task.id for task in links.tasks]
    for at, task in enumerate(links.tasks):
        if task.id and task.id in names[:at]:
            yield Refusal(f"two tasks have the id {task.id!r}", at=("tasks", at, "id"))
        yield from _unknown_names("task", task.depends_on, names, ("tasks", at, "depends_on"))
        yield from _unknown_names(
            "worker", task.other_workers, links.workers, ("tasks", at, "other_workers")
        )
        yield from _wrong_checks(task, ("tasks", at))
        if task.worker and task.worker not in links.workers:
            yield _there_is_no("worker", task.worker, links.workers, ("tasks", at, "worker"))
        if not task.worker and len(links.workers) > 1:
            listed = ", ".join(links.workers)
            yield Refusal(f"must name one of the workers: {listed}", at=("tasks", at, "worker"))
    if circle := _circular_tasks({task.id: task.depends_on for task in links.tasks}):
        said = f"tasks depend on each other in a circle: {', '.join(sorted(circle))}"
        yield Refusal(said, at=("tasks",))


def _wrong_checks(task: _TaskLinks, at: Keys) -> Iterator[Refusal]:
    """Return checks that always pass, or never.

    Not in TaskSpec, which must read older journals: their tasks may have such checks.
    """
    yield from _wrong_items(task.acceptance, (*at, "acceptance"), _check_problem)
    for number, step in enumerate(task.plan):
        if isinstance(step, Mapping):
            own, below = cast("Mapping[str, object]", step), (*at, "plan", number)
            yield from _wrong_items(own.get("acceptance"), (*below, "acceptance"), _check_problem)
            yield from _wrong_items(own.get("files"), (*below, "files"), _file_problem)


def _wrong_items(items: object, at: Keys, problem_of: Callable[[object], str]) -> Iterator[Refusal]:
    listed = cast("Sequence[object]", items) if isinstance(items, list | tuple) else ()
    for position, item in enumerate(listed):
        if problem := problem_of(item):
            yield Refusal(problem, at=(*at, position))


def _check_problem(check: object) -> str:
    if isinstance(check, Mapping):
        return _file_problem(cast("Mapping[str, object]", check).get("file"))
    return "must not be empty" if isinstance(check, str) and not check.strip() else ""


def _file_problem(file: object) -> str:
    if not isinstance(file, str):
        return ""
    path = posixpath.normpath(file.strip() or ".")
    if path == ".":
        return "must name a file"
    outside = posixpath.isabs(path) or path.split("/")[0] == ".."
    return "must be a file in the workspace, by its path from there" if outside else ""


def _unknown_names(
    what: str, named: Sequence[str], known: Collection[str], at: Keys
) -> Iterator[Refusal]:
    for position, name in enumerate(named):
        if name not in known:
            yield _there_is_no(what, name, known, (*at, position))


def _there_is_no(what: str, name: str, known: Iterable[str], at: Keys) -> Refusal:
    return Refusal(f"there is no {what} {name!r}", at=at, nearest=nearest_to(name, known))


def _circular_tasks(needs: Mapping[str, Collection[str]]) -> set[str]:
    """Return tasks that wait for each other, or for one that does."""
    waiting = set(needs)
    while ready := {name for name in waiting if not waiting.intersection(needs[name])}:
        waiting -= ready
    return waiting


def resolve_workspace(task: TaskSpec, beside: Path) -> Path | None:
    """Return the task's workspace as an absolute path; relative ones start beside the task file.

    `None` if it has none on this machine: an empty folder, or a git URL.
    """
    if task.workspace is None or task.origin:
        return None
    return (beside / Path(task.workspace).expanduser()).resolve()
