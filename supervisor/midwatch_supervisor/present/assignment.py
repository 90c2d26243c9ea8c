"""A task with everything needed to run it, as stored in the journal: resuming needs no file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from midwatch_agents.acp.presets import brings_model
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
"""Prefix of attempts' branches."""
_WORK = "work"
"""The folder of attempts' workspaces, in the folder of a project or a node."""
_WORKSPACE = re.compile(rf"/(?:\.midwatch|nodes/[^/]+)/{_WORK}/r\d+(?:\.\d+)?/.")
"""Matches the path of an attempt's workspace."""


class Assignment(Section):
    """One task, its workers, the models of all roles, and its workspace as an absolute path."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(("guidelines", "trial_of"), "")

    task: TaskSpec
    worker: str
    spec: WorkerSpec
    models: dict[Role, ModelSpec]
    """For each role; one without its own has the worker's."""
    workspace: Path | None
    """`None` for an empty folder, and for a clone of `origin`."""
    origin: str = ""
    """The git URL to clone; empty if the workspace is a folder. A bare repository on this machine
    counts too, as `file://…`.
    """
    base: str = ""
    """The commit its worktrees start from; empty for the one checked out at the time."""
    project: str = ""
    """What its lessons, guidelines and facts belong to; empty if nothing is learned from it."""
    named: tuple[Role, ...] = ()
    """The roles for which the task file itself names a model other than `none`."""
    others: dict[str, WorkerSpec] = Field(default_factory=dict[str, WorkerSpec])
    """Workers that may take the task over, each with its model, in the task file's order."""
    parent: str = ""
    """The task that was split into this one and others; parts are not split again."""
    part: int = 0
    """The number of this part, from 1."""
    provisional: bool = False
    """Whether the task has no checks of its own: the checks of the whole run with the whole."""

    def model(self, role: Role) -> ModelSpec | None:
        """Return the model of a role in this task."""
        return self.models.get(role)

    def worker_spec(self, name: str) -> WorkerSpec:
        """Return a worker's specification; an unknown name means the task's first worker."""
        return self.others.get(name, self.spec) if name != self.worker else self.spec

    def worker_model(self, name: str) -> ModelSpec | None:
        """Return the model that a worker of this task starts with; `None` if it brings its own."""
        spec = self.worker_spec(name)
        if brings_model(spec):
            return None
        return self.model(Role.WORKER) if spec is self.spec else spec.model

    @property
    def bare(self) -> bool:
        """Whether it starts in an empty folder."""
        return self.workspace is None and not self.origin

    @property
    def source(self) -> str:
        """What it works on, as people write it: a folder or a git URL; empty for nothing."""
        return self.origin or str(self.workspace or "")

    @property
    def local(self) -> bool:
        """Whether that is a folder on the machine where the task file was read."""
        return self.workspace is not None or self.origin.startswith("file:")

    @property
    def planned(self) -> bool:
        """Whether the planner writes the plan steps."""
        return self.task.plan == AUTO or (not self.task.plan and Role.PLANNER in self.named)


def assignments(file: TaskFile, beside: Path) -> tuple[Assignment, ...]:
    """Return the tasks of a file, each self-contained; relative workspaces start at `beside`."""
    return tuple(_build_assignment(file, task, beside) for task in file.tasks)


def _build_assignment(file: TaskFile, task: TaskSpec, beside: Path) -> Assignment:
    name, spec = file.worker_of(task)
    found = {role: file.model_of(role, spec) for role in Role}
    workspace, origin = _task_source(task, beside)
    return Assignment(
        task=task,
        worker=name,
        spec=spec,
        models={role: model for role, model in found.items() if model is not None},
        workspace=workspace,
        origin=origin,
        project=task.project or origin or str(main_worktree(workspace or beside.resolve())),
        named=tuple(role for role, model in file.models.items() if model.name != NONE),
        others={each: _other_worker(file, each) for each in task.other_workers if each != name},
    )


def _task_source(task: TaskSpec, beside: Path) -> tuple[Path | None, str]:
    """Return the folder that a task works on, or the git URL."""
    workspace = resolve_workspace(task, beside)
    if workspace is None or not is_bare(workspace):
        return workspace, task.origin
    return None, workspace.as_uri()


def check_workspaces(wanted: Sequence[Assignment], *, file: Path) -> None:
    """Raise UsageError for a local workspace in which no attempt can begin."""
    for problem in workspace_problems(wanted, file=file):
        raise UsageError(problem)


def workspace_problems(wanted: Sequence[Assignment], *, file: Path) -> Iterator[str]:
    """Yield a line for each local workspace in which no attempt can begin."""
    first = dict[Path | None, str]()
    for each in wanted:
        first.setdefault(each.workspace, each.task.id)
    for workspace, task in first.items():
        if workspace is not None and (problem := _workspace_problem(workspace)):
            yield f"{file}: task {task}: the workspace {workspace} {problem}"


def _workspace_problem(workspace: Path) -> str:
    if not workspace.is_dir():
        return "is not a folder" if workspace.exists() else "does not exist"
    with suppress(WorkspaceError):  # the first attempt reports what is wrong
        if is_repository(workspace) and not run_git(workspace, "for-each-ref", "--count=1"):
            return "has no commit, and workers begin with the last one: `git add -A && git commit`"
    return ""


def _other_worker(file: TaskFile, name: str) -> WorkerSpec:
    spec = file.workers[name]
    return spec.model_copy(update={"model": file.model_of(Role.WORKER, spec)})


def folder_of(home: Path, label: str, task: str, number: int) -> Path:
    """Return an attempt's workspace; `label` belongs to the run, and is unused by earlier ones."""
    return home / _WORK / label / f"{task}-{number}"


def is_in_workspace(folder: str) -> bool:
    """Whether a folder is an attempt's workspace or below one, by its path alone."""
    return _WORKSPACE.search(folder) is not None


def whole_of(part: Path) -> Path:
    """Return where the parts of a split task are merged, given the workspace that was split.

    It is beside that one: `fix-whole` for `fix-2`.
    """
    return part.with_name(f"{part.name.rpartition('-')[0]}-whole")


def place_of(workspace: Path) -> str:
    """Return the name of an attempt's workspace, `r1/fix-2`, which is the same on every node."""
    return f"{workspace.parent.name}/{workspace.name}"


def branch_of(workspace: Path) -> str:
    """Return the branch of an attempt's worktree, named like its folder."""
    return BRANCHES + place_of(workspace)


def assignment_in(task: Task) -> Assignment:
    """Return a task's assignment. Raises JournalCorruptError if it cannot be read."""
    try:
        return Assignment.model_validate_json(task.spec)
    except ValidationError as error:
        raise JournalCorruptError(
            f"cannot read what task {task.id} ({task.name!r}) of run {task.run} is"
        ) from error


def models_named(assignment: Assignment) -> Iterable[ModelSpec]:
    """Return the models that a task may use, in any role."""
    yield from assignment.models.values()
    for worker in (assignment.spec, *assignment.others.values()):
        if worker.model is not None:
            yield worker.model
        yield from worker.other_models
