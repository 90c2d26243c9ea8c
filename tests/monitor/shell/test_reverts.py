"""Which files a command puts back."""

import pytest

from midwatch_monitor.records import Edit
from midwatch_monitor.shell import Shell, reverts


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("git checkout -- a.py b.py", ("a.py", "b.py")),
        ("git checkout HEAD~1 -- a.py", ("a.py",)),
        ("git checkout src/a.py", ("src/a.py",)),
        ("git checkout HEAD Makefile", ("Makefile",)),
        ("git checkout .", (".",)),
        ("git checkout -f", (".",)),
        ("git checkout main", ()),
        ("git checkout -b topic/a.b", ()),
        ("git checkout v1.2.3", ()),
        ("git restore a.py", ("a.py",)),
        ("git restore -s HEAD~2 --staged --worktree a.py", ("a.py",)),
        ("git restore --staged a.py", ()),
        ("git stash", (".",)),
        ("git stash push -m wip -- a.py", ("a.py",)),
        ("git stash pop", ()),
        ("git stash list", ()),
        ("git reset --hard HEAD", (".",)),
        ("git reset HEAD a.py", ()),
        ("cd src && git checkout a.py; git -C ../lib checkout -- b.py", ("src/a.py", "lib/b.py")),
        ("git status; git diff; rm a", ()),
    ],
)
def test_what_version_control_puts_back_is_named(command: str, paths: tuple[str, ...]) -> None:
    assert reverts(command) == paths


def test_paths_are_relative_to_the_folder() -> None:
    assert reverts("git checkout -- /repo/a.py", cwd="/repo") == ("a.py",)


def test_a_named_file_that_is_put_back_is_an_edit() -> None:
    assert Shell().edits("git checkout -- a.py . && git reset --hard") == (Edit(path="a.py"),)


def test_git_moves_and_removes() -> None:
    assert Shell().edits("git mv a.py b.py; git rm --cached c; git -C lib rm d") == (
        Edit(path="a.py", deleted=True),
        Edit(path="b.py"),
        Edit(path="lib/d", deleted=True),
    )
