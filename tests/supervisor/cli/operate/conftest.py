"""A repository beside which an attempt has worked; where a test needs another one, it says so."""

from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_tests.command import Cli
from midwatch_tests.merging import BRANCH, WORK, Totals, commit, git
from midwatch_tests.repository import new_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository on `main` with one file."""
    return new_repository(tmp_path / "repository", {"a.py": "a = 1\n"})


@pytest.fixture
def worktree(repository: Path) -> Path:
    """The worktree of an attempt, with a commit of its own."""
    folder = repository.parent / WORK
    git(repository, "worktree", "add", "--quiet", "-b", BRANCH, str(folder))
    commit(folder, "a.py", "a = 2\n")
    return folder


@pytest.fixture
def totals(journal: Journal, repository: Path, worktree: Path, cli: Cli) -> Totals:
    """A task `totals` that is not yet over."""
    return Totals(journal=journal, repository=repository, worktree=worktree, cli=cli)
