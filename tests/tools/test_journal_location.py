"""The journal is found by option, environment, then the main worktree."""

from pathlib import Path

from midwatch_tests.repository import new_repository
from midwatch_tools.git import run_git
from midwatch_tools.journal_location import VARIABLE, journal_location, main_worktree


def test_the_option_wins_over_the_environment(tmp_path: Path) -> None:
    assert journal_location("o.db", {VARIABLE: "e.db"}, tmp_path) == "o.db"
    assert journal_location(None, {VARIABLE: "e.db"}, tmp_path) == "e.db"


def test_an_empty_variable_names_nothing(tmp_path: Path) -> None:
    wanted = str(tmp_path / ".midwatch" / "journal.db")
    assert journal_location(None, {VARIABLE: ""}, tmp_path) == wanted
    assert journal_location(None, {}, tmp_path) == wanted


def test_a_folder_or_linked_worktree_of_a_repository_shares_its_journal(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "project", {"a": ""})
    (root / "deep").mkdir()
    assert main_worktree(root / "deep") == root
    run_git(root, "worktree", "add", str(tmp_path / "other"))
    assert main_worktree(tmp_path / "other") == root


def test_outside_of_git_it_is_the_folder_itself(tmp_path: Path) -> None:
    assert main_worktree(tmp_path) == tmp_path
    assert main_worktree(tmp_path / "absent") == tmp_path / "absent"
