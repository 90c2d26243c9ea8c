"""A repository beside which an attempt has worked; where a test needs another one, it says so."""

from pathlib import Path

import pytest

from midwatch_stage.merging import BRANCH, WORK, commit, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository on `main` with one file, and beside it the worktree of an attempt."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, "a.py", "a = 1\n")
    git(folder, "worktree", "add", "--quiet", "-b", BRANCH, str(tmp_path / WORK))
    return folder


@pytest.fixture
def worktree(repository: Path) -> Path:
    """The attempt's worktree, with a commit of its own."""
    folder = repository.parent / WORK
    commit(folder, "a.py", "a = 2\n")
    return folder
