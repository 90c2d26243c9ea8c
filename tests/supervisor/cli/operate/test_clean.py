"""`midwatch clean`, with git and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Commit, Ending, Lifecycle, Task
from midwatch_supervisor.workspaces.workspace import commit_work, prepare
from midwatch_tests import factories as make
from midwatch_tests.command import Cli, assignment, midwatch, new_attempt, new_task, write
from midwatch_tests.repository import commit_all
from midwatch_tools.git import git

HINT = "`midwatch clean TASK --run N` deletes such work"

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRun:
    """A run whose tasks work on a repository, or on a folder without git."""

    journal: Journal
    folder: Path
    cli: Cli

    @property
    def source(self) -> Path:
        return self.folder / "source"

    async def new_task(self, name: str) -> Task:
        spec = assignment(name, workspace=self.source).model_dump_json()
        return await new_task(self.journal, name, run=1, spec=spec)

    async def add_task(
        self,
        name: str,
        text: str = "",
        *,
        lifecycle: Lifecycle = Lifecycle.COMPLETED,
        endings: Sequence[Ending] = (Ending.DONE,),
    ) -> Path:
        """A task with an attempt for each ending, which wrote `text`; its last workspace."""
        task, place = await self.new_task(name), self.folder
        for number, ending in enumerate(endings, start=1):
            place = self.folder / "home" / "work" / "r1" / f"{name}-{number}"
            branch = f"midwatch/r1/{name}-{number}"
            workspace = await prepare(place, self.source, branch=branch, merges=())
            if text:
                (place / "a.txt").write_text(text)
            await commit_work(workspace, "Done")
            attempt = await new_attempt(self.journal, task, number, workspace=str(place))
            await write(self.journal, attempt, make.AT, make.ended(ending))
        await self.end_task(lifecycle, task.id)
        return place

    async def end_task(self, lifecycle: Lifecycle, task: int = 1) -> None:
        end = make.draft(make.task_transition(lifecycle), task=task, attempt=None)
        await self.journal.commit(Commit(drafts=(end,)))

    async def run_named_command(self, said: str) -> None:
        """Do what is named in backquotes."""
        await self.cli.read(*said.split("`")[1].split()[1:])

    async def branches(self) -> list[str]:
        said = await git(self.source, "branch", "--format=%(refname:short)", "--list", "midwatch/*")
        return said.split()


@pytest.fixture
async def plain_run(journal: Journal, tmp_path: Path, cli: Cli) -> WorkspaceRun:
    """Without git."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("one\n")
    await journal.add_run(source="tasks.yaml", settings="{}", at=make.AT)
    return WorkspaceRun(journal=journal, folder=tmp_path, cli=cli)


@pytest.fixture
async def git_run(plain_run: WorkspaceRun) -> WorkspaceRun:
    """With git."""
    await git(plain_run.source, "init", "--quiet", "--initial-branch=main")
    await commit_all(plain_run.source, "Begin")
    return plain_run


async def test_what_was_merged_or_changed_nothing_goes_and_what_was_not_merged_stays(
    git_run: WorkspaceRun,
) -> None:
    merged, idle = await git_run.add_task("merged", "two\n"), await git_run.add_task("idle")
    await git(git_run.source, "merge", "--quiet", "midwatch/r1/merged-1")
    kept = await git_run.add_task("kept", "three\n")
    assert (await git_run.cli.said("clean", "--dry-run")).startswith(
        "would remove merged#1 of run 1"
    )
    assert [each.exists() for each in (merged, idle, kept)] == [True, True, True]
    why = "(nothing in it is unmerged)"
    assert await git_run.cli.read("clean") == [
        f"removed merged#1 of run 1: the branch midwatch/r1/merged-1 and {merged} {why}",
        f"removed idle#1 of run 1: the branch midwatch/r1/idle-1 and {idle} {why}",
        "kept kept#1 of run 1: 1 file, +1 -1 not merged (`midwatch merge kept --run 1` takes it)",
        HINT,
    ]
    assert [each.exists() for each in (merged, idle, kept)] == [False, False, True]
    assert await git_run.branches() == ["midwatch/r1/kept-1"]


async def test_unmerged_work_goes_where_its_task_is_named_and_no_other(
    git_run: WorkspaceRun,
) -> None:
    tries = (Ending.UNACCEPTED, Ending.UNACCEPTED)
    await git_run.add_task("fix", "two\n", lifecycle=Lifecycle.FAILED, endings=tries)
    other = await git_run.add_task("other", "three\n")
    _, failed, done, hint = await git_run.cli.read("clean")
    assert (failed.endswith(" not merged"), hint) == (True, HINT)
    first, second = await git_run.cli.read("clean", "fix", "--run", "1")
    assert first.endswith("(1 file, +1 -1 discarded)")
    assert second.startswith("removed fix#2 of run 1: ")
    assert await git_run.branches() == ["midwatch/r1/other-1"]
    assert other.exists()
    await git_run.run_named_command(done)
    assert await git_run.branches() == []


async def test_of_a_rejected_result_the_command_that_removes_it_is_named(
    git_run: WorkspaceRun,
) -> None:
    kept = await git_run.add_task("fix", "two\n")
    await midwatch("feedback", "fix", "reject", "--from", "ada", "--comment", "It rounds down.")
    said, _ = await git_run.cli.read("clean")
    assert said == (
        "kept fix#1 of run 1: 1 file, +1 -1 not merged: its result was rejected by ada: "
        "It rounds down. (`midwatch clean fix --run 1` removes it)"
    )
    await git_run.run_named_command(said)
    assert not kept.exists()


async def test_what_nobody_committed_is_unmerged_work_and_rubbish_is_not(
    git_run: WorkspaceRun,
) -> None:
    idle, noted = await git_run.add_task("idle"), await git_run.add_task("noted")
    (idle / "__pycache__").mkdir()
    (idle / "__pycache__" / "a.pyc").touch()
    (noted / "notes.txt").write_text("mine\n")
    assert await midwatch("clean") == 0
    assert [each.exists() for each in (idle, noted)] == [False, True]


async def test_a_run_that_is_not_over_is_left_alone(git_run: WorkspaceRun) -> None:
    await git_run.add_task("busy", lifecycle=Lifecycle.WORKING, endings=())
    assert await git_run.cli.read("clean") == ["there is nothing to clean"]
    idle = await git_run.add_task("idle")
    said = "run 1 is not over: busy (working)"
    assert await git_run.cli.read("clean") == [f"{said}; its workspaces are kept"]
    assert await git_run.cli.refused("clean", "idle") == f"{said}\n"
    assert idle.exists()


async def test_a_copy_goes_if_it_is_as_its_source(plain_run: WorkspaceRun) -> None:
    same, other = await plain_run.add_task("same"), await plain_run.add_task("other", "two\n")
    assert await midwatch("clean") == 0
    assert [each.exists() for each in (same, other)] == [False, True]


async def test_a_result_outside_git_waits_until_the_command_that_is_named_has_taken_it(
    plain_run: WorkspaceRun, tmp_path: Path
) -> None:
    folder, into = await plain_run.add_task("report", "two\n"), tmp_path / "out"
    waits = "to be taken: report (`midwatch merge TASK --into FOLDER`)"
    kept = (await plain_run.cli.read("clean"))[0]
    assert kept == (
        "kept report#1 of run 1: 1 file, +1 -1 not merged "
        "(`midwatch merge report --run 1 --into FOLDER` takes it)"
    )
    take = [str(into) if each == "FOLDER" else each for each in kept.split("`")[1].split()[1:]]
    await plain_run.cli.read(*take, "--dry-run")
    assert (await plain_run.cli.read("status"))[-1] == waits
    await plain_run.cli.read(*take)
    assert (into / "a.txt").read_text() == "two\n"
    assert waits not in await plain_run.cli.read("status")
    (folder / "more.txt").write_text("mine\n")
    again = (await plain_run.cli.read("clean"))[0]
    assert again.startswith("kept report#1 of run 1: 2 files, +2 -1 ")
    assert (await plain_run.cli.read("status"))[-1] == waits
    (folder / "more.txt").unlink()
    said = f"removed report#1 of run 1: {folder} (nothing in it is unmerged)"
    assert await plain_run.cli.read("clean") == [said]
    assert [*(tmp_path / "home").glob("*/*")] == []


async def test_a_folder_that_no_run_has_made_is_never_touched(
    plain_run: WorkspaceRun, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "work" / "r1" / "own-1"
    own.mkdir(parents=True)
    (own / "mine.txt").write_text("mine")
    by_itself = await new_task(plain_run.journal, "own", run=1)
    for task in (by_itself, await plain_run.new_task("fix")):
        await new_attempt(plain_run.journal, task, workspace=str(own))
        await plain_run.end_task(Lifecycle.FAILED, task.id)
    assert await plain_run.cli.read("clean", "own") == ["there is nothing to clean"]
    assert await midwatch("clean", "fix") == 0
    assert (own / "mine.txt").read_text() == "mine"
