"""A git repository of a test."""

from collections.abc import Mapping
from pathlib import Path

from midwatch_supervisor.workspaces.workspace import prepare
from midwatch_tests.command import assignment
from midwatch_tools.git import git, run_git


async def commit_all(folder: Path, message: str) -> None:
    """Commit every file of a repository that no worker has written to."""
    await git(folder, "add", "--all")
    await git(folder, "commit", "--quiet", "--message", message)


def new_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository on the branch `main` with one commit of these files; its folder."""
    folder.mkdir(exist_ok=True, parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).write_text(text)
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "First")
    return folder


async def worktree_with(folder: Path, name: str, text: str) -> tuple[Path, str]:
    """The workspace of an attempt that has begun with one file, and what its task is stored as."""
    workspace = folder / "home" / "work" / "r1" / "fix-1"
    source = new_repository(folder / "source", {name: text})
    await prepare(workspace, source, branch="midwatch/r1/fix-1", merges=())
    return workspace, assignment(workspace=source).model_dump_json()
