"""What `status`, `show`, `diff` and `merge` say of work that waits, was merged or thrown away."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_stage.command import ask, midwatch, new_task, read, refused
from midwatch_stage.merging import BRANCH, commit, finish, git

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


async def test_show_says_what_became_of_the_work(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    shown = "\n".join(await read(capsys, "show", "totals"))
    assert f", in {worktree}\n" in shown
    await midwatch("merge", "totals")
    capsys.readouterr()
    shown = "\n".join(await read(capsys, "show", "totals"))
    assert str(worktree) not in shown
    assert "\n  merged into main; its workspace was removed\n" in shown
    git(repository, "worktree", "add", "--quiet", "--detach", str(worktree))
    shown = "\n".join(await read(capsys, "show", "totals"))
    assert f", in {worktree}\n  merged into main\n" in shown


async def test_status_says_which_results_are_still_to_be_merged(
    journal: Journal, repository: Path, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    said = "to be merged: totals (`midwatch merge TASK`)"
    assert (await read(capsys, "status"))[-1] == said
    told = {"run": 1, "tasks": ["totals"], "in_git": True, "command": "midwatch merge TASK"}
    assert {"type": "unmerged", **told} in await ask(capsys, "status")
    await midwatch("feedback", "totals", "reject")
    capsys.readouterr()
    assert said not in await read(capsys, "status")
    await midwatch("feedback", "totals", "accept")
    git(repository, "merge", "--quiet", "--squash", BRANCH)
    git(repository, "commit", "--quiet", "--message", "Take it as one")
    capsys.readouterr()
    assert said not in await read(capsys, "status")


async def test_status_of_an_older_run_names_the_command_that_merges_that_run(
    journal: Journal, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    await new_task(journal, "totals")
    said = "to be merged: totals (`midwatch merge TASK --run 1`)"
    assert (await read(capsys, "status", "--run", "1"))[-1] == said
    assert said in await read(capsys, "status", "--all")


@pytest.mark.parametrize(("age", "told"), [(1, True), (8, False)])
async def test_results_of_the_last_week_are_still_told_below_a_newer_run(
    journal: Journal, worktree: Path, capsys: Capture, *, age: int, told: bool
) -> None:
    await finish(journal, worktree, at=datetime.now(UTC) - timedelta(days=age))
    await new_task(journal, "others")
    said = "run 1: to be merged: totals (`midwatch merge TASK --run 1`)"
    assert (said in await read(capsys, "status")) is told
    assert said not in await read(capsys, "status", "--run", "2")
    lines = [each for each in await ask(capsys, "status") if each["type"] == "unmerged"]
    told_so = {"run": 1, "tasks": ["totals"], "in_git": True}
    assert (
        lines
        == [{"type": "unmerged", **told_so, "command": "midwatch merge TASK --run 1"}][: int(told)]
    )


async def test_in_a_clone_of_its_repository_status_says_which_results_of_a_fleet_are_to_be_merged(
    journal: Journal, repository: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    base = git(repository, "rev-parse", "HEAD")
    await finish(journal, tmp_path / "nodes" / "east" / "work" / "r1" / "totals-1", base=base)
    said = "to be merged: totals (`midwatch merge TASK`)"
    monkeypatch.chdir(tmp_path)
    assert said not in await read(capsys, "status")
    monkeypatch.chdir(repository)
    assert said in await read(capsys, "status")
    git(repository, "checkout", "--quiet", "-b", "work")
    commit(repository, "good.txt", "new")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-ff", "-m", f"Merge branch '{BRANCH}'", "work")
    assert said not in await read(capsys, "status")


async def test_show_says_that_work_was_thrown_away(
    journal: Journal, worktree: Path, capsys: Capture
) -> None:
    await finish(journal, worktree)
    await midwatch("clean", "totals")
    capsys.readouterr()
    assert "  its workspace was removed" in await read(capsys, "show", "totals")


@pytest.mark.parametrize("rejected", [False, True])
@pytest.mark.parametrize("command", ["diff", "merge"])
async def test_of_work_that_was_thrown_away_that_is_said(
    journal: Journal, worktree: Path, capsys: Capture, *, command: str, rejected: bool
) -> None:
    await finish(journal, worktree)
    if rejected:
        await midwatch("feedback", "totals", "reject")
    await midwatch("clean", "totals")
    assert await refused(capsys, command, "totals") == (
        "the workspace of totals was removed, along with anything unmerged: "
        f"there is no folder {worktree}\n"
    )
