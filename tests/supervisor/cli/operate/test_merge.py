"""`midwatch merge`, with git."""

import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import FileCheck
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle, TaskTransition
from midwatch_stage.command import midwatch, new_attempt, new_task, printed, read, refused, write
from midwatch_stage.merging import BRANCH, WORK, commit, finish, git

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def orphan(repository: Path, worktree: Path) -> Path:
    """A worktree that has lost its repository."""
    repository.rename(repository.parent / "elsewhere")
    return worktree


@pytest.fixture
def linked(repository: Path) -> Path:
    """A worktree in which the owner works on a branch `side`."""
    folder = repository.parent / "linked"
    git(repository, "worktree", "add", "--quiet", "-b", "side", str(folder))
    return folder


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


async def test_a_completed_branch_is_merged(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    assert await read(capsys, "merge", "tot") == [
        "+1 -1  a.py",
        f"merged {BRANCH} into main (1 file, +1 -1; 1 commit) in {repository}",
        f"removed the branch and its worktree {worktree}",
    ]
    assert (repository / "a.py").read_text() == "a = 2\n"
    assert git(repository, "branch", "--list", BRANCH) == ""
    assert str(worktree) not in git(repository, "worktree", "list")


async def test_what_is_merged_already_is_left_alone(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    await midwatch("merge", "totals")
    capsys.readouterr()
    head = git(repository, "rev-parse", "HEAD")
    assert await read(capsys, "merge", "totals") == [f"{BRANCH} was already merged and removed"]
    assert git(repository, "rev-parse", "HEAD") == head


async def test_a_result_that_a_person_rejected_is_merged_only_once_it_is_accepted(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    await midwatch("feedback", "totals", "reject", "--comment", "It rounds down.", "--from", "ada")
    assert await refused(capsys, "merge", "totals") == (
        "totals can be merged after `midwatch feedback totals accept --run 1`: "
        "its result was rejected by ada: It rounds down.\n"
    )
    assert (repository / "a.py").read_text() == "a = 1\n"
    await midwatch("feedback", "totals", "accept", "--run", "1")
    assert await midwatch("merge", "totals") == 0


async def test_what_its_owner_merged_by_hand_is_removed(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    git(repository, "merge", "--quiet", "--squash", BRANCH)
    git(repository, "commit", "--quiet", "--message", "Take it as one")
    assert await printed(capsys, "merge", "totals") == (
        f"{BRANCH} is already in main\nremoved the branch and its worktree {worktree}\n"
    )
    assert await read(capsys, "merge", "totals") == [f"{BRANCH} was already merged and removed"]


async def test_a_file_that_a_check_names_and_git_ignores_is_kept_until_it_is_copied(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    commit(worktree, ".gitignore", "*.txt\n")
    (worktree / "good.txt").write_text("good\n")
    await finish(journal, worktree, acceptance=(FileCheck(file="good.txt"),))
    assert (await read(capsys, "merge", "totals"))[-1] == (
        f"kept {worktree}: a merge leaves out good.txt, which git ignores; copy it from there, "
        "then `midwatch clean totals --run 1` removes the rest"
    )
    assert (await read(capsys, "clean"))[0] == (
        "kept totals#1 of run 1: a merge leaves out good.txt, which git ignores; "
        f"copy it from {worktree}"
    )
    (repository / "good.txt").write_text("good\n")
    assert (await read(capsys, "clean"))[0].startswith("removed totals#1 of run 1: ")
    assert worktree.name not in git(repository, "worktree", "list")


async def test_a_link_is_listed_with_its_target_and_a_very_large_file_with_its_size(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    (worktree / "link").symlink_to("../../secret")
    (worktree / os.fsdecode(b"caf\xe9")).symlink_to("/etc")
    for name, size in (("large.bin", 10_600_000), ("small.bin", 10_000_000)):
        with (worktree / name).open("wb") as file:
            file.truncate(size)
    commit(worktree, "a.py", "a = 3\n")
    await finish(journal, worktree)
    listed = [
        "+1 -1   a.py",
        "+1 -0   caf\ufffd (a link to /etc)",
        "binary  large.bin (11 MB)",
        "+1 -0   link (a link to ../../secret)",
        "binary  small.bin",
    ]
    for more in (["--dry-run"], []):
        assert (await read(capsys, "merge", "totals", *more))[:5] == listed


RUBBISH = ("__pycache__/a.pyc", ".venv/bin/python", "web/node_modules/x/y.js", ".pytest_cache/v")


async def test_build_rubbish_that_a_worker_committed_is_not_taken(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    for name in (*RUBBISH, "new.py"):
        (worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree / name).write_text("x\n")
    git(worktree, "add", "--all", "--force")
    git(worktree, "commit", "--quiet", "--message", "Everything")
    await finish(journal, worktree)
    lines = await read(capsys, "merge", "totals")
    assert lines[:2] == ["+1 -1  a.py", "+1 -0  new.py"]
    assert lines[2].startswith("left out: .pytest_cache, .venv, __pycache__, web/node_modules (")
    assert git(repository, "ls-files").split() == ["a.py", "new.py"]
    assert git(repository, "log", "--all", "--format=%h", "--", *RUBBISH) == ""


async def test_what_git_ignores_here_is_not_taken_and_the_owners_own_stays(
    journal: Journal, repository: Path, worktree: Path, tmp_path: Path
) -> None:
    commit(repository, ".gitignore", "*.log\n")
    (repository / "own.log").write_text("mine\n")
    (worktree / "own.log").write_text("theirs\n")
    git(worktree, "add", "--all", "--force")
    git(worktree, "commit", "--quiet", "--message", "Everything")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 0
    assert (repository / "own.log").read_text() == "mine\n"
    assert git(repository, "ls-files").split() == [".gitignore", "a.py"]


async def test_what_the_user_ignores_everywhere_is_not_taken(
    journal: Journal,
    repository: Path,
    worktree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "config" / "git").mkdir(parents=True)
    (tmp_path / "config" / "git" / "ignore").write_text(".idea/\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (worktree / ".idea").mkdir()
    (worktree / ".idea" / "workspace.xml").touch()
    git(worktree, "add", "--all", "--force")
    git(worktree, "commit", "--quiet", "--message", "Everything")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 0
    assert git(repository, "ls-files").split() == ["a.py"]


async def test_what_the_owner_has_in_git_by_such_a_name_is_taken(
    journal: Journal, repository: Path, tmp_path: Path
) -> None:
    (repository / "node_modules").mkdir()
    commit(repository, "node_modules/own.js", "1\n")
    git(tmp_path / WORK, "reset", "--quiet", "--hard", "main")
    commit(tmp_path / WORK, "node_modules/own.js", "2\n")
    await finish(journal, tmp_path / WORK)
    assert await midwatch("merge", "totals") == 0
    assert (repository / "node_modules" / "own.js").read_text() == "2\n"


async def test_a_branch_that_others_may_build_on_stays(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    await new_task(journal, "later", run=1)
    assert (await printed(capsys, "merge", "totals")).endswith(
        f"kept {BRANCH}: once its run is over, `midwatch clean` removes it\n"
    )
    assert str(worktree) in git(repository, "worktree", "list")


async def test_a_worktree_with_files_that_are_not_committed_stays(
    journal: Journal, worktree: Path, capsys: Capture
) -> None:
    (worktree / "notes.txt").touch()
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 0
    assert capsys.readouterr().out.endswith(f"kept {worktree}: it holds uncommitted files\n")
    assert (worktree / "notes.txt").exists()


async def test_the_owners_later_work_stays(
    journal: Journal, repository: Path, worktree: Path
) -> None:
    commit(repository, "b.py", "b = 1\n")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 0
    texts = [(repository / name).read_text() for name in ("a.py", "b.py")]
    assert texts == ["a = 2\n", "b = 1\n"]


async def test_a_dry_run_merges_nothing_and_leaves_nothing_behind(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    before = (git(repository, "rev-parse", "HEAD"), git(repository, "worktree", "list"))
    assert await printed(capsys, "merge", "totals", "--dry-run") == (
        f"+1 -1  a.py\nwould merge {BRANCH} into main (1 file, +1 -1; 1 commit) in {repository}\n"
    )
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "worktree", "list")) == before
    assert (repository / "a.py").read_text() == "a = 1\n"


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
async def test_a_conflict_names_the_files_and_changes_nothing(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture, more: list[str]
) -> None:
    commit(repository, "a.py", "a = 3\n")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals", *more) == 2
    assert capsys.readouterr() == (
        "+1 -1  a.py\n",
        f"{BRANCH} conflicts with main in a.py; nothing was merged. To resolve that by hand, run "
        f"`git merge {BRANCH}` in {repository}\n",
    )
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "a.py").read_text() == "a = 3\n"


async def test_after_a_conflict_that_was_resolved_by_hand_the_branch_is_removed(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    commit(repository, "a.py", "a = 3\n")
    await finish(journal, worktree)
    command = (await refused(capsys, "merge", "totals")).split("`")[1].split()[1:]
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, *command)
    assert "<<<<<<<" in (repository / "a.py").read_text()
    commit(repository, "a.py", "a = 5\n")
    assert await read(capsys, "merge", "totals") == [
        f"{BRANCH} is already in main",
        f"removed the branch and its worktree {worktree}",
    ]


@pytest.mark.parametrize("dirty", ["repository", WORK])
async def test_uncommitted_changes_are_not_touched(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture, dirty: str
) -> None:
    folder = repository.parent / dirty
    (folder / "a.py").write_text("a = 4\n")
    await finish(journal, worktree)
    assert await refused(capsys, "merge", "totals") == (
        f"{folder} has uncommitted changes; commit or stash them first\n"
    )
    assert (folder / "a.py").read_text() == "a = 4\n"


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
async def test_a_file_that_git_does_not_know_is_not_overwritten(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture, more: list[str]
) -> None:
    commit(worktree, "new.py", "theirs\n")
    (repository / "new.py").write_text("mine\n")
    await finish(journal, worktree)
    assert await refused(capsys, "merge", "totals", *more) == (
        f"{BRANCH} would overwrite files in {repository} that git does not track: new.py; "
        "move them away first. Nothing was merged\n"
    )
    assert (repository / "new.py").read_text() == "mine\n"


async def test_a_folder_of_files_that_git_ignores_is_not_replaced_by_a_file(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    commit(repository, ".gitignore", "*.bin\n")
    for name in ("models", "venv"):
        (repository / name).mkdir()
    (repository / "models" / "large.bin").write_text("mine\n")
    (repository / "venv" / ".gitignore").write_text("*\n")
    (worktree / "venv").symlink_to("/usr")
    commit(worktree, "models", "theirs\n")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 2
    said = f"{repository} that git does not track: models/large.bin, venv/.gitignore; move"
    assert said in capsys.readouterr().err
    assert (repository / "models" / "large.bin").read_text() == "mine\n"


async def test_without_a_branch_checked_out_there_is_no_merge(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    await finish(journal, worktree)
    assert await midwatch("merge", "totals") == 2
    assert capsys.readouterr().err.startswith(f"no branch is checked out in {repository}: ")


async def test_a_failed_task_is_merged_once_a_person_has_accepted_its_result(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    commit(worktree, "new.txt", "new\n")
    await finish(journal, worktree, Lifecycle.FAILED)
    said = await refused(capsys, "merge", "totals")
    assert said == (
        "totals has failed: it can be merged after `midwatch feedback totals accept --run 1`\n"
    )
    assert await midwatch(*said.split("`")[1].split()[1:]) == 0
    assert await midwatch("merge", "totals") == 0
    assert (repository / "new.txt").read_text() == "new\n"


async def test_only_a_task_that_is_over_is_merged(
    journal: Journal, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree, Lifecycle.WORKING)
    assert await midwatch("merge", "totals") == 2
    assert capsys.readouterr().err == ("totals is working; only a completed task can be merged\n")


async def test_a_workspace_that_is_gone_is_said_to_be(
    journal: Journal, tmp_path: Path, capsys: Capture
) -> None:
    await finish(journal, tmp_path / "gone")
    assert await refused(capsys, "merge", "totals") == (
        f"the workspace of totals is gone: there is no folder {tmp_path / 'gone'}\n"
    )


async def test_a_worktree_whose_repository_is_gone_is_no_traceback(
    journal: Journal, repository: Path, orphan: Path, capsys: Capture
) -> None:
    await finish(journal, orphan)
    assert await refused(capsys, "merge", "totals") == (
        f"the workspace of totals cannot be used: {orphan} is not a worktree of {repository}\n"
    )


@pytest.mark.parametrize("gone", [False, True])
async def test_the_branch_goes_back_to_the_worktree_that_it_came_from_or_to_the_main_one(
    journal: Journal, repository: Path, worktree: Path, linked: Path, capsys: Capture, *, gone: bool
) -> None:
    await finish(journal, worktree, source=linked)
    if gone:
        git(repository, "worktree", "remove", str(linked))
    lines = await read(capsys, "merge", "totals")
    place = f"main (1 file, +1 -1; 1 commit) in {repository}"
    if not gone:
        place = f"side (1 file, +1 -1; 1 commit) in {linked}"
    assert f"merged {BRANCH} into {place}" in lines
    assert (repository / "a.py").read_text() == ("a = 2\n" if gone else "a = 1\n")


@pytest.mark.parametrize(
    "words", [("merge", "same"), ("merge", "same", "--into", "out"), ("diff", "same")]
)
async def test_of_an_agent_that_midwatch_did_not_start_no_files_are_known(
    journal: Journal, at: datetime, capsys: Capture, words: tuple[str, ...]
) -> None:
    made = await new_attempt(journal, await new_task(journal, "same"))
    over = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.UNCHECKED)
    await write(journal, made, at, over, TaskTransition(lifecycle=Lifecycle.COMPLETED))
    await midwatch("feedback", "same", "reject")
    capsys.readouterr()
    assert await midwatch(*words) == 2
    said = "Midwatch did not start same, so it does not know its files\n"
    assert capsys.readouterr().err == said
