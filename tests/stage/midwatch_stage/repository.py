"""A git repository of a test."""

from pathlib import Path

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.workspaces.workspace import prepare
from midwatch_tools.git import git


async def commit_all(folder: Path, message: str) -> None:
    """Commit every file of a repository that no worker has written to."""
    await git(folder, "add", "--all")
    await git(folder, "commit", "--quiet", "--message", message)


async def worktree_with(folder: Path, name: str, text: str) -> tuple[Path, str]:
    """The workspace of an attempt that has begun with one file, and what its task is stored as."""
    source, workspace = folder / "source", folder / "home" / "work" / "r1" / "fix-1"
    source.mkdir()
    await git(source, "init", "--quiet", "--initial-branch=main")
    (source / name).write_text(text)
    await commit_all(source, "Begin")
    await prepare(workspace, source, branch="midwatch/r1/fix-1", merges=())
    task = TaskSpec(id="fix", goal="Fix it.", acceptance=("true",))
    wanted = Assignment(task=task, worker="w", spec=WorkerSpec(), models={}, workspace=source)
    return workspace, wanted.model_dump_json()
