"""A task with all that running it takes, as the journal keeps it: no file is needed to resume."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from midwatch_agents.models import NONE
from midwatch_monitor.config.section import Section
from midwatch_monitor.config.tasks import (
    AUTO,
    ModelSpec,
    Role,
    TaskFile,
    TaskSpec,
    WorkerSpec,
    resolve_workspace,
)
from midwatch_monitor.errors import JournalCorruptError, UsageError, WorkspaceError
from midwatch_monitor.records import Task
from midwatch_tools.git import is_bare, is_repository, run_git
from midwatch_tools.journal_location import main_worktree

BRANCHES = "midwatch/"
"""How the branches of attempts begin."""


class Assignment(Section):
    """One task, its workers, the models of all roles, and its workspace as an absolute path."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(("guidelines", "trial_of"), "")

    task: TaskSpec
    worker: str
    spec: WorkerSpec
    models: dict[Role, ModelSpec]
    """Of each role; one without a model of its own has the worker's."""
    workspace: Path | None
    """`None` for an empty folder, and for a clone of `origin`."""
    origin: str = ""
    """The git URL that is cloned; empty where the workspace is a folder to work in.

    A bare repository on this machine is one as well, as `file://…`.
    """
    base: str = ""
    """The commit that its worktrees start from; empty for what is checked out by then."""
    project: str = ""
    """What its lessons, guidelines and facts belong to; empty if nothing is learned from it."""
    named: tuple[Role, ...] = ()
    """The roles that the task file itself gave a model, and not `none`."""
    others: dict[str, WorkerSpec] = Field(default_factory=dict[str, WorkerSpec])
    """The workers that may take the task over, each with its model, in the task file's order."""
    parent: str = ""
    """The task that was split into this one and others; it is not split again."""
    part: int = 0
    """Which of them this is, from 1."""
    provisional: bool = False
    """Whether the task has no checks of its own: those of the whole are run with the whole."""

    def model(self, role: Role) -> ModelSpec | None:
        """The model of a role in this task."""
        return self.models.get(role)

    def worker_spec(self, name: str) -> WorkerSpec:
        """What a worker of this task is; an unknown name is the task's first worker."""
        return self.others.get(name, self.spec) if name != self.worker else self.spec

    def worker_model(self, name: str) -> ModelSpec | None:
        """The model that a worker of this task begins with."""
        other = self.others.get(name) if name != self.worker else None
        return self.model(Role.WORKER) if other is None else other.model

    @property
    def bare(self) -> bool:
        """Whether it begins in an empty folder."""
        return self.workspace is None and not self.origin

    @property
    def source(self) -> str:
        """What it works on, as people write it: a folder or a git URL; empty for nothing."""
        return self.origin or str(self.workspace or "")

    @property
    def local(self) -> bool:
        """Whether that is a folder of the machine where the task file was read."""
        return self.workspace is not None or self.origin.startswith("file:")

    @property
    def planned(self) -> bool:
        """Whether the planner writes the plan steps."""
        return self.task.plan == AUTO or (not self.task.plan and Role.PLANNER in self.named)


def assignments(file: TaskFile, beside: Path) -> tuple[Assignment, ...]:
    """The tasks of a file, each complete in itself; relative workspaces start at `beside`."""
    return tuple(_assignment(file, task, beside) for task in file.tasks)


def _assignment(file: TaskFile, task: TaskSpec, beside: Path) -> Assignment:
    name, spec = file.worker_of(task)
    found = {role: file.model_of(role, spec) for role in Role}
    workspace, origin = _source(task, beside)
    return Assignment(
        task=task,
        worker=name,
        spec=spec,
        models={role: model for role, model in found.items() if model is not None},
        workspace=workspace,
        origin=origin,
        project=task.project or origin or str(main_worktree(workspace or beside.resolve())),
        named=tuple(role for role, model in file.models.items() if model.name != NONE),
        others={each: _other(file, each) for each in task.other_workers if each != name},
    )


def _source(task: TaskSpec, beside: Path) -> tuple[Path | None, str]:
    """The folder that a task works on, or the git URL."""
    workspace = resolve_workspace(task, beside)
    if workspace is None or not is_bare(workspace):
        return workspace, task.origin
    return None, workspace.as_uri()


def check_workspaces(wanted: Sequence[Assignment], *, file: Path) -> None:
    """Raise UsageError for a workspace on this machine that no attempt can begin with."""
    first = {each.workspace: each.task.id for each in reversed(wanted)}
    for workspace, task in first.items():
        if workspace is not None and (problem := _problem(workspace)):
            raise UsageError(f"{file}: task {task}: the workspace {workspace} {problem}")


def _problem(workspace: Path) -> str:
    if not workspace.is_dir():
        return "is no folder" if workspace.exists() else "does not exist"
    with suppress(WorkspaceError):  # the first attempt says what is wrong
        if is_repository(workspace) and not run_git(workspace, "for-each-ref", "--count=1"):
            return "has no commit, and workers begin with the last one: `git add -A && git commit`"
    return ""


def _other(file: TaskFile, name: str) -> WorkerSpec:
    spec = file.workers[name]
    return spec.model_copy(update={"model": file.model_of(Role.WORKER, spec)})


def folder_of(home: Path, label: str, task: str, number: int) -> Path:
    """The workspace of an attempt; `label` is the run's own, free of those before it."""
    return home / "work" / label / f"{task}-{number}"


def whole_of(part: Path) -> Path:
    """Where the parts of a split task are put together, from the workspace that was split.

    That is beside it, `fix-whole` for `fix-2`.
    """
    return part.with_name(f"{part.name.rpartition('-')[0]}-whole")


def place_of(workspace: Path) -> str:
    """What an attempt's workspace is called on every node, `r1/fix-2`, wherever it is there."""
    return f"{workspace.parent.name}/{workspace.name}"


def branch_of(workspace: Path) -> str:
    """The branch of an attempt's worktree, named like its folder."""
    return BRANCHES + place_of(workspace)


def assignment_in(task: Task) -> Assignment:
    """What a task was handed over with. Raises JournalCorruptError where that cannot be read."""
    try:
        return Assignment.model_validate_json(task.spec)
    except ValidationError as error:
        raise JournalCorruptError(
            f"cannot read what task {task.id} ({task.name!r}) of run {task.run} is"
        ) from error


def models_named(assignment: Assignment) -> Iterable[ModelSpec]:
    """The models that a task may ask, whatever their role."""
    yield from assignment.models.values()
    for worker in (assignment.spec, *assignment.others.values()):
        if worker.model is not None:
            yield worker.model
        yield from worker.other_models
