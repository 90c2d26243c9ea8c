"""`midwatch merge`, with git, and what is said of work that waits, was merged or thrown away."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import FileCheck
from midwatch_monitor.records import Ending, Lifecycle, TaskTransition
from midwatch_tests.command import midwatch, new_attempt, new_task, write
from midwatch_tests.factories import AT, ended
from midwatch_tests.merging import BRANCH, WORK, Totals, commit, git

pytestmark = pytest.mark.usefixtures("named_by_the_environment")
DRY = pytest.mark.parametrize("more", [[], ["--dry-run"]])
REMOVED = f"{BRANCH} was already merged and removed"


async def test_a_completed_branch_is_merged_once(totals: Totals) -> None:
    repository = totals.repository
    await totals.finish()
    before = (git(repository, "rev-parse", "HEAD"), git(repository, "worktree", "list"))
    assert await totals.merge("--dry-run") == [
        "+1 -1  a.py",
        f"would merge {BRANCH} into main (1 file, +1 -1; 1 commit) in {repository}",
    ]
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "worktree", "list")) == before
    assert (repository / "a.py").read_text() == "a = 1\n"
    assert await totals.cli.read("merge", "tot") == [
        "+1 -1  a.py",
        f"merged {BRANCH} into main (1 file, +1 -1; 1 commit) in {repository}",
        f"removed the branch and its worktree {totals.worktree}",
    ]
    assert (repository / "a.py").read_text() == "a = 2\n"
    assert git(repository, "branch", "--list", BRANCH) == ""
    assert str(totals.worktree) not in git(repository, "worktree", "list")
    head = git(repository, "rev-parse", "HEAD")
    assert await totals.merge() == [REMOVED]
    assert git(repository, "rev-parse", "HEAD") == head


async def test_what_its_owner_merged_by_hand_is_removed(totals: Totals) -> None:
    await totals.finish()
    git(totals.repository, "merge", "--quiet", "--squash", BRANCH)
    git(totals.repository, "commit", "--quiet", "--message", "Take it as one")
    removed = f"removed the branch and its worktree {totals.worktree}"
    assert await totals.merge() == [f"{BRANCH} is already in main", removed]
    assert await totals.merge() == [REMOVED]


async def test_a_file_that_a_check_names_and_git_ignores_is_kept_until_it_is_copied(
    totals: Totals,
) -> None:
    commit(totals.worktree, ".gitignore", "*.txt\n")
    (totals.worktree / "good.txt").write_text("good\n")
    await totals.finish(acceptance=(FileCheck(file="good.txt"),))
    why = "a merge leaves out good.txt, which git ignores; copy it from "
    assert (await totals.merge())[-1] == (
        f"kept {totals.worktree}: {why}there, then `midwatch clean totals --run 1` removes the rest"
    )
    kept = f"kept totals#1 of run 1: {why}{totals.worktree}"
    assert (await totals.cli.read("clean"))[0] == kept
    (totals.repository / "good.txt").write_text("good\n")
    assert (await totals.cli.read("clean"))[0].startswith("removed totals#1 of run 1: ")
    assert totals.worktree.name not in git(totals.repository, "worktree", "list")


async def test_a_link_is_listed_with_its_target_and_a_very_large_file_with_its_size(
    totals: Totals,
) -> None:
    (totals.worktree / "link").symlink_to("../../secret")
    (totals.worktree / os.fsdecode(b"caf\xe9")).symlink_to("/etc")
    for name, size in (("large.bin", 10_600_000), ("small.bin", 10_000_000)):
        with (totals.worktree / name).open("wb") as file:
            file.truncate(size)
    commit(totals.worktree, "a.py", "a = 3\n")
    await totals.finish()
    listed = [
        "+1 -1   a.py",
        "+1 -0   caf\ufffd (a link to /etc)",
        "binary  large.bin (11 MB)",
        "+1 -0   link (a link to ../../secret)",
        "binary  small.bin",
    ]
    for more in (["--dry-run"], []):
        assert (await totals.merge(*more))[:5] == listed


async def test_build_rubbish_and_what_the_owner_ignores_are_not_taken_and_his_own_stays(
    totals: Totals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubbish = (
        "__pycache__/a.pyc",
        ".venv/bin/python",
        "web/node_modules/x/y.js",
        ".pytest_cache/v",
    )
    (tmp_path / "config" / "git").mkdir(parents=True)
    (tmp_path / "config" / "git" / "ignore").write_text(".idea/\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    commit(totals.repository, ".gitignore", "*.log\n")
    (totals.repository / "own.log").write_text("mine\n")
    for name in (*rubbish, "new.py", "own.log", ".idea/workspace.xml"):
        (totals.worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (totals.worktree / name).write_text("theirs\n")
    git(totals.worktree, "add", "--all", "--force")
    git(totals.worktree, "commit", "--quiet", "--message", "Everything")
    await totals.finish()
    lines = await totals.merge()
    assert lines[:2] == ["+1 -1  a.py", "+1 -0  new.py"]
    assert lines[2].startswith("left out: .idea, .pytest_cache, .venv, __pycache__, own.log, web/")
    assert git(totals.repository, "ls-files").split() == [".gitignore", "a.py", "new.py"]
    assert git(totals.repository, "log", "--all", "--format=%h", "--", *rubbish) == ""
    assert (totals.repository / "own.log").read_text() == "mine\n"


async def test_what_the_owner_has_in_git_by_such_a_name_is_taken(totals: Totals) -> None:
    (totals.repository / "node_modules").mkdir()
    commit(totals.repository, "node_modules/own.js", "1\n")
    git(totals.worktree, "reset", "--quiet", "--hard", "main")
    commit(totals.worktree, "node_modules/own.js", "2\n")
    await totals.finish()
    await totals.merge()
    assert (totals.repository / "node_modules" / "own.js").read_text() == "2\n"


async def test_a_branch_that_others_may_build_on_stays(totals: Totals) -> None:
    await totals.finish()
    await new_task(totals.journal, "later", run=1)
    kept = f"kept {BRANCH}: once its run is over, `midwatch clean` removes it"
    assert (await totals.merge())[-1] == kept
    assert str(totals.worktree) in git(totals.repository, "worktree", "list")


async def test_a_worktree_with_files_that_are_not_committed_stays(totals: Totals) -> None:
    (totals.worktree / "notes.txt").touch()
    await totals.finish()
    assert (await totals.merge())[-1] == f"kept {totals.worktree}: it holds uncommitted files"
    assert (totals.worktree / "notes.txt").exists()


async def test_a_conflict_names_the_files_and_the_command_with_which_it_is_resolved(
    totals: Totals, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(totals.repository, "a.py", "a = 3\n")
    await totals.finish()
    for more in (["--dry-run"], []):
        assert await midwatch("merge", "totals", *more) == 2
        out, err = capsys.readouterr()
        assert (out, err) == (
            "+1 -1  a.py\n",
            f"{BRANCH} conflicts with main in a.py; nothing was merged. To resolve that by hand, "
            f"run `git merge {BRANCH}` in {totals.repository}\n",
        )
        assert git(totals.repository, "status", "--porcelain") == ""
        assert (totals.repository / "a.py").read_text() == "a = 3\n"
    with pytest.raises(subprocess.CalledProcessError):
        git(totals.repository, *err.split("`")[1].split()[1:])
    assert "<<<<<<<" in (totals.repository / "a.py").read_text()
    commit(totals.repository, "a.py", "a = 5\n")
    removed = f"removed the branch and its worktree {totals.worktree}"
    assert await totals.merge() == [f"{BRANCH} is already in main", removed]


@pytest.mark.parametrize("dirty", ["repository", WORK])
async def test_uncommitted_changes_are_not_touched(totals: Totals, dirty: str) -> None:
    folder = totals.repository.parent / dirty
    (folder / "a.py").write_text("a = 4\n")
    await totals.finish()
    said = f"{folder} has uncommitted changes; commit or stash them first\n"
    assert await totals.refused() == said
    assert (folder / "a.py").read_text() == "a = 4\n"


@DRY
async def test_a_file_that_git_does_not_know_is_not_overwritten(
    totals: Totals, more: list[str]
) -> None:
    commit(totals.worktree, "new.py", "theirs\n")
    (totals.repository / "new.py").write_text("mine\n")
    await totals.finish()
    assert await totals.refused(*more) == (
        f"{BRANCH} would overwrite files in {totals.repository} that git does not track: new.py; "
        "move them away first. Nothing was merged\n"
    )
    assert (totals.repository / "new.py").read_text() == "mine\n"


async def test_a_folder_of_files_that_git_ignores_is_not_replaced_by_a_file(totals: Totals) -> None:
    commit(totals.repository, ".gitignore", "*.bin\n")
    for name, file in (("models", "large.bin"), ("venv", ".gitignore")):
        (totals.repository / name).mkdir()
        (totals.repository / name / file).write_text("*\n")
    (totals.worktree / "venv").symlink_to("/usr")
    commit(totals.worktree, "models", "theirs\n")
    await totals.finish()
    said = f"{totals.repository} that git does not track: models/large.bin, venv/.gitignore; move"
    assert said in await totals.refused()
    assert (totals.repository / "models" / "large.bin").read_text() == "*\n"


async def test_without_a_branch_checked_out_there_is_no_merge(totals: Totals) -> None:
    git(totals.repository, "checkout", "--quiet", "--detach")
    await totals.finish()
    said = f"no branch is checked out in {totals.repository}: "
    assert (await totals.refused()).startswith(said)


async def test_a_rejected_result_is_merged_only_once_it_is_accepted(totals: Totals) -> None:
    await totals.finish()
    await midwatch("feedback", "totals", "reject", "--comment", "It rounds down.", "--from", "ada")
    assert await totals.refused() == (
        "totals can be merged after `midwatch feedback totals accept --run 1`: "
        "its result was rejected by ada: It rounds down.\n"
    )
    assert (totals.repository / "a.py").read_text() == "a = 1\n"
    await midwatch("feedback", "totals", "accept")
    await totals.merge()


async def test_a_failed_task_is_merged_once_a_person_has_accepted_its_result(
    totals: Totals,
) -> None:
    await totals.finish(Lifecycle.FAILED)
    said = await totals.refused()
    accept = "midwatch feedback totals accept --run 1"
    assert said == f"totals has failed: it can be merged after `{accept}`\n"
    assert await midwatch(*accept.split()[1:]) == 0
    await totals.merge()
    assert (totals.repository / "a.py").read_text() == "a = 2\n"


async def test_only_a_task_that_is_over_is_merged(totals: Totals) -> None:
    await totals.finish(Lifecycle.WORKING)
    assert await totals.refused() == "totals is working; only a completed task can be merged\n"


async def test_a_workspace_or_a_repository_that_is_gone_is_said_to_be(
    totals: Totals, tmp_path: Path
) -> None:
    await totals.finish(workspace=tmp_path / "gone")
    gone = f"the workspace of totals is gone: there is no folder {tmp_path / 'gone'}\n"
    assert await totals.refused() == gone
    await totals.finish()
    totals.repository.rename(tmp_path / "elsewhere")
    why = f"{totals.worktree} is not a worktree of {totals.repository}\n"
    assert await totals.refused() == f"the workspace of totals cannot be used: {why}"


@pytest.mark.parametrize(("gone", "branch"), [(False, "side"), (True, "main")])
async def test_the_branch_goes_back_to_the_worktree_that_it_came_from_or_to_the_main_one(
    totals: Totals, tmp_path: Path, *, gone: bool, branch: str
) -> None:
    linked = tmp_path / "linked"
    git(totals.repository, "worktree", "add", "--quiet", "-b", "side", str(linked))
    await totals.finish(source=linked)
    if gone:
        git(totals.repository, "worktree", "remove", str(linked))
    place = totals.repository if gone else linked
    said = f"merged {BRANCH} into {branch} (1 file, +1 -1; 1 commit) in {place}"
    assert said in await totals.merge()
    assert (totals.repository / "a.py").read_text() == ("a = 2\n" if gone else "a = 1\n")


@pytest.mark.parametrize("words", ["merge same", "merge same --into out", "diff same"])
async def test_of_an_agent_that_midwatch_did_not_start_no_files_are_known(
    totals: Totals, words: str
) -> None:
    made = await new_attempt(totals.journal, await new_task(totals.journal, "same"))
    over = TaskTransition(lifecycle=Lifecycle.COMPLETED)
    await write(totals.journal, made, AT, ended(Ending.UNCHECKED), over)
    await midwatch("feedback", "same", "reject")
    said = "Midwatch did not start same, so it does not know its files\n"
    assert await totals.cli.refused(*words.split()) == said


# -- what `status`, `show` and `diff` say of it -----------------------------------------------

WAITS = "to be merged: totals (`midwatch merge TASK`)"
OF_RUN = "to be merged: totals (`midwatch merge TASK --run 1`)"
UNMERGED = {"type": "unmerged", "run": 1, "tasks": ["totals"], "in_git": True}


async def show_totals(totals: Totals) -> str:
    return "\n".join(await totals.cli.read("show", "totals"))


async def test_show_says_what_became_of_the_work(totals: Totals) -> None:
    await totals.finish()
    assert f", in {totals.worktree}\n" in await show_totals(totals)
    await totals.merge()
    said = await show_totals(totals)
    assert str(totals.worktree) not in said
    assert "\n  merged into main; its workspace was removed\n" in said
    git(totals.repository, "worktree", "add", "--quiet", "--detach", str(totals.worktree))
    assert f", in {totals.worktree}\n  merged into main\n" in await show_totals(totals)


async def test_status_says_which_results_are_still_to_be_merged(totals: Totals) -> None:
    await totals.finish()
    assert (await totals.cli.read("status"))[-1] == WAITS
    assert {**UNMERGED, "command": "midwatch merge TASK"} in await totals.cli.ask("status")
    await midwatch("feedback", "totals", "reject")
    assert WAITS not in await totals.cli.read("status")
    await midwatch("feedback", "totals", "accept")
    git(totals.repository, "merge", "--quiet", "--squash", BRANCH)
    git(totals.repository, "commit", "--quiet", "--message", "Take it as one")
    assert WAITS not in await totals.cli.read("status")


@pytest.mark.parametrize(("age", "told"), [(1, 1), (8, 0)])
async def test_results_of_the_last_week_are_told_below_a_newer_run_and_older_ones_on_request(
    totals: Totals, age: int, told: int
) -> None:
    await totals.finish(at=datetime.now(UTC) - timedelta(days=age))
    await new_task(totals.journal, "totals")
    assert (await totals.cli.read("status")).count(f"run 1: {OF_RUN}") == told
    assert f"run 1: {OF_RUN}" not in await totals.cli.read("status", "--run", "2")
    assert (await totals.cli.read("status", "--run", "1"))[-1] == OF_RUN
    assert OF_RUN in await totals.cli.read("status", "--all")
    lines = [each for each in await totals.cli.ask("status") if each["type"] == "unmerged"]
    assert lines == [{**UNMERGED, "command": "midwatch merge TASK --run 1"}] * told


async def test_in_a_clone_of_its_repository_status_says_which_results_of_a_fleet_are_to_be_merged(
    totals: Totals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = git(totals.repository, "rev-parse", "HEAD")
    git(totals.repository, "branch", "--quiet", "-m", BRANCH, "elsewhere")
    elsewhere = tmp_path / "nodes" / "east" / "work" / "r1" / "totals-1"
    await totals.finish(workspace=elsewhere, base=base)
    monkeypatch.chdir(tmp_path)
    assert WAITS not in await totals.cli.read("status")
    monkeypatch.chdir(totals.repository)
    assert WAITS in await totals.cli.read("status")
    git(totals.repository, "checkout", "--quiet", "-b", "work")
    commit(totals.repository, "good.txt", "new")
    git(totals.repository, "checkout", "--quiet", "main")
    said = f"Merge branch '{BRANCH}'"
    git(totals.repository, "merge", "--quiet", "--no-ff", "-m", said, "work")
    assert WAITS not in await totals.cli.read("status")


@pytest.mark.parametrize("rejected", [(), (("feedback", "totals", "reject"),)])
async def test_of_work_that_was_thrown_away_that_is_said(
    totals: Totals, rejected: tuple[tuple[str, ...], ...]
) -> None:
    await totals.finish()
    for words in (*rejected, ("clean", "totals")):
        assert await midwatch(*words) == 0
    assert "\n  its workspace was removed" in await show_totals(totals)
    for command in ("diff", "merge"):
        assert await totals.cli.refused(command, "totals") == (
            "the workspace of totals was removed, along with anything unmerged: "
            f"there is no folder {totals.worktree}\n"
        )
