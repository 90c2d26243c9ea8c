"""What `status`, `show`, `diff` and `merge` say of work that waits, was merged or thrown away."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_stage.command import midwatch, new_task
from midwatch_stage.merging import BRANCH, Totals, commit, git

pytestmark = pytest.mark.usefixtures("named_by_the_environment")
WAITS = "to be merged: totals (`midwatch merge TASK`)"
OF_RUN = "to be merged: totals (`midwatch merge TASK --run 1`)"
UNMERGED = {"type": "unmerged", "run": 1, "tasks": ["totals"], "in_git": True}


async def shown(totals: Totals) -> str:
    return "\n".join(await totals.cli.read("show", "totals"))


async def test_show_says_what_became_of_the_work(totals: Totals) -> None:
    await totals.finish()
    assert f", in {totals.worktree}\n" in await shown(totals)
    await totals.merge()
    said = await shown(totals)
    assert str(totals.worktree) not in said
    assert "\n  merged into main; its workspace was removed\n" in said
    git(totals.repository, "worktree", "add", "--quiet", "--detach", str(totals.worktree))
    assert f", in {totals.worktree}\n  merged into main\n" in await shown(totals)


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
    assert "\n  its workspace was removed" in await shown(totals)
    for command in ("diff", "merge"):
        assert await totals.cli.refused(command, "totals") == (
            "the workspace of totals was removed, along with anything unmerged: "
            f"there is no folder {totals.worktree}\n"
        )
