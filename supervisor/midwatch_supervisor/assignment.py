"""A task with all that running it takes, as the journal keeps it: no file is needed to resume."""

from pathlib import Path

from midwatch_monitor.config.rules import Section
from midwatch_monitor.config.tasks import (
    ModelSpec,
    Role,
    TaskFile,
    TaskSpec,
    WorkerSpec,
    resolve_workspace,
)


class Assignment(Section):
    """One task, its worker, the models of all roles, and its workspace as an absolute path."""

    task: TaskSpec
    worker: str
    spec: WorkerSpec
    models: dict[Role, ModelSpec]
    workspace: Path | None

    def model(self, role: Role) -> ModelSpec | None:
        """The model of a role in this task."""
        return self.models.get(role)


def assignments(file: TaskFile, beside: Path) -> tuple[Assignment, ...]:
    """The tasks of a file, each complete in itself; relative workspaces start at `beside`."""
    return tuple(_assignment(file, task, beside) for task in file.tasks)


def _assignment(file: TaskFile, task: TaskSpec, beside: Path) -> Assignment:
    name, spec = file.worker_of(task)
    found = {role: file.model_of(role, spec) for role in Role}
    return Assignment(
        task=task,
        worker=name,
        spec=spec,
        models={role: model for role, model in found.items() if model is not None},
        workspace=resolve_workspace(task, beside),
    )


def folder_of(home: Path, label: str, task: str, number: int) -> Path:
    """The workspace of an attempt; `label` is the run's own, free of those before it."""
    return home / "work" / label / f"{task}-{number}"


def branch_of(workspace: Path) -> str:
    """The branch of an attempt's worktree, named like its folder."""
    return f"midwatch/{workspace.parent.name}/{workspace.name}"
