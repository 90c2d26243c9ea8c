"""`midwatch clean`, with git and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Commit, Ending, Lifecycle, Task
from midwatch_stage import factories as make
from midwatch_stage.command import (
    assignment,
    midwatch,
    new_attempt,
    new_task,
    read,
    refused,
    write,
)
from midwatch_stage.repository import commit_all
from midwatch_supervisor.workspaces.workspace import commit_work, prepare
from midwatch_tools.git import git

Capture = pytest.CaptureFixture[str]
HINT = "`midwatch clean TASK --run N` deletes such work"

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A run whose tasks work on a repository, or on a folder without git."""

    journal: Journal
    folder: Path
    run: int

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def place(self, name: str, number: int = 1) -> Path:
        return self.folder / "home" / "work" / "r1" / f"{name}-{number}"

    async def new_task(self, name: str) -> Task:
        spec = assignment(name, workspace=self.source).model_dump_json()
        return await new_task(self.journal, name, run=self.run, spec=spec)

    async def task(
        self,
        name: str,
        text: str = "",
        *,
        lifecycle: Lifecycle = Lifecycle.COMPLETED,
        endings: Sequence[Ending] = (Ending.DONE,),
    ) -> Path:
        """A task with an attempt for each ending, which wrote `text`; its last workspace."""
        task = await self.new_task(name)
        for number, ending in enumerate(endings, start=1):
            place, branch = self.place(name, number), f"midwatch/r1/{name}-{number}"
            workspace = await prepare(place, self.source, branch=branch, merges=())
            if text:
                (place / "a.txt").write_text(text)
            await commit_work(workspace, "Done")
            attempt = await new_attempt(self.journal, task, number, workspace=str(place))
            await write(self.journal, attempt, make.AT, make.ended(ending))
        await over(self.journal, lifecycle, task.id)
        return self.place(name, len(endings))

    async def branches(self) -> list[str]:
        said = await git(self.source, "branch", "--format=%(refname:short)", "--list", "midwatch/*")
        return said.split()


async def over(journal: Journal, lifecycle: Lifecycle, task: int = 1) -> None:
    """Let a task stand so."""
    end = make.draft(make.task_transition(lifecycle), task=task, attempt=None)
    await journal.commit(Commit(drafts=(end,)))


@pytest.fixture
async def copies(journal: Journal, tmp_path: Path) -> Room:
    """Without git."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("one\n")
    run = await journal.add_run(source="tasks.yaml", settings="{}", at=make.AT)
    return Room(journal=journal, folder=tmp_path, run=run.id)


@pytest.fixture
async def room(copies: Room) -> Room:
    """With git."""
    await git(copies.source, "init", "--quiet", "--initial-branch=main")
    await commit_all(copies.source, "Begin")
    return copies


async def test_what_was_merged_or_changed_nothing_goes_and_what_was_not_merged_stays(
    room: Room, capsys: Capture
) -> None:
    merged, idle = await room.task("merged", "two\n"), await room.task("idle")
    await git(room.source, "merge", "--quiet", "midwatch/r1/merged-1")
    kept = await room.task("kept", "three\n")
    assert await midwatch("clean") == 0
    why = "(nothing in it is unmerged)"
    assert capsys.readouterr().out.splitlines() == [
        f"removed merged#1 of run 1: the branch midwatch/r1/merged-1 and {merged} {why}",
        f"removed idle#1 of run 1: the branch midwatch/r1/idle-1 and {idle} {why}",
        "kept kept#1 of run 1: 1 file, +1 -1 not merged (`midwatch merge kept --run 1` takes it)",
        HINT,
    ]
    assert [each.exists() for each in (merged, idle, kept)] == [False, False, True]
    assert await room.branches() == ["midwatch/r1/kept-1"]


async def test_a_dry_run_removes_nothing(room: Room, capsys: Capture) -> None:
    idle = await room.task("idle")
    assert await midwatch("clean", "--dry-run") == 0
    assert capsys.readouterr().out.startswith("would remove idle#1 of run 1: ")
    assert idle.exists()


async def test_unmerged_work_goes_where_its_task_is_named_and_no_other(
    room: Room, capsys: Capture
) -> None:
    tries = (Ending.UNACCEPTED, Ending.UNACCEPTED)
    await room.task("fix", "two\n", lifecycle=Lifecycle.FAILED, endings=tries)
    other = await room.task("other", "three\n")
    first, second = await read(capsys, "clean", "fix")
    assert first.endswith("(1 file, +1 -1 discarded)")
    assert second.startswith("removed fix#2 of run 1: ")
    assert await room.branches() == ["midwatch/r1/other-1"]
    assert other.exists()


async def test_the_commands_that_are_named_for_what_stays_do_what_is_said_of_them(
    room: Room, capsys: Capture
) -> None:
    await room.task("fix", "two\n", lifecycle=Lifecycle.FAILED, endings=(Ending.UNACCEPTED,))
    await room.task("done", "three\n")
    failed, done, hint = await read(capsys, "clean")
    assert (failed.endswith(" not merged"), hint) == (True, HINT)
    await read(capsys, *done.split("`")[1].split()[1:])
    await read(capsys, "clean", "fix", "--run", "1")
    assert await room.branches() == []


async def test_of_a_rejected_result_the_command_that_removes_it_is_named(
    room: Room, capsys: Capture
) -> None:
    kept = await room.task("fix", "two\n")
    await midwatch("feedback", "fix", "reject", "--from", "ada", "--comment", "It rounds down.")
    said, hint = await read(capsys, "clean")
    assert (said, hint) == (
        "kept fix#1 of run 1: 1 file, +1 -1 not merged: its result was rejected by ada: "
        "It rounds down. (`midwatch clean fix --run 1` removes it)",
        HINT,
    )
    await read(capsys, *said.split("`")[1].split()[1:])
    assert not kept.exists()


async def test_what_nobody_committed_is_unmerged_work_and_rubbish_is_not(
    room: Room, capsys: Capture
) -> None:
    idle, noted = await room.task("idle"), await room.task("noted")
    (idle / "__pycache__").mkdir()
    (idle / "__pycache__" / "a.pyc").touch()
    (noted / "notes.txt").write_text("mine\n")
    assert await midwatch("clean") == 0
    assert [each.exists() for each in (idle, noted)] == [False, True]


async def test_a_run_that_is_not_over_is_left_alone(room: Room, capsys: Capture) -> None:
    idle = await room.task("idle")
    await room.task("busy", lifecycle=Lifecycle.WORKING, endings=())
    assert await read(capsys, "clean") == [
        "run 1 is not over: busy (working); its workspaces are kept"
    ]
    assert await refused(capsys, "clean", "idle") == "run 1 is not over: busy (working)\n"
    assert idle.exists()


async def test_a_run_that_is_not_over_and_has_made_nothing_is_no_matter(
    room: Room, capsys: Capture
) -> None:
    await room.task("busy", lifecycle=Lifecycle.WORKING, endings=())
    assert await read(capsys, "clean") == ["there is nothing to clean"]


async def test_a_copy_goes_if_it_is_as_its_source(copies: Room) -> None:
    same, other = await copies.task("same"), await copies.task("other", "two\n")
    assert await midwatch("clean") == 0
    assert [each.exists() for each in (same, other)] == [False, True]


async def test_a_result_outside_git_waits_until_the_command_that_is_named_has_taken_it(
    copies: Room, tmp_path: Path, capsys: Capture
) -> None:
    folder, into = await copies.task("report", "two\n"), tmp_path / "out"
    waits = "to be taken: report (`midwatch merge TASK --into FOLDER`)"
    kept = (await read(capsys, "clean"))[0]
    assert kept == (
        "kept report#1 of run 1: 1 file, +1 -1 not merged "
        "(`midwatch merge report --run 1 --into FOLDER` takes it)"
    )
    take = [str(into) if each == "FOLDER" else each for each in kept.split("`")[1].split()[1:]]
    await read(capsys, *take, "--dry-run")
    assert (await read(capsys, "status"))[-1] == waits
    await read(capsys, *take)
    assert (into / "a.txt").read_text() == "two\n"
    assert waits not in await read(capsys, "status")
    said = f"removed report#1 of run 1: {folder} (nothing in it is unmerged)"
    assert await read(capsys, "clean") == [said]
    assert [*(tmp_path / "home").glob("*/*")] == []


async def test_what_is_changed_after_a_result_was_taken_waits_again(
    copies: Room, tmp_path: Path, capsys: Capture
) -> None:
    folder = await copies.task("report", "two\n")
    await read(capsys, "merge", "report", "--into", str(tmp_path / "out"))
    (folder / "more.txt").write_text("mine\n")
    assert (await read(capsys, "clean"))[0].startswith("kept report#1 of run 1: 2 files, +2 -1 ")
    assert (folder / "more.txt").exists()
    assert (await read(capsys, "status"))[-1].startswith("to be taken: report ")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder in which somebody has an agent work."""
    folder = tmp_path / "own" / "work" / "r1" / "own-1"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    return folder


async def test_the_folder_of_an_agent_that_came_by_itself_is_never_touched(
    journal: Journal, own: Path, capsys: Capture
) -> None:
    await new_attempt(journal, await new_task(journal, "own"), workspace=str(own))
    await over(journal, Lifecycle.COMPLETED)
    assert await read(capsys, "clean", "own") == ["there is nothing to clean"]
    assert (own / "mine.txt").read_text() == "mine"


async def test_a_folder_that_no_run_would_have_made_is_never_touched(
    copies: Room, own: Path, capsys: Capture
) -> None:
    await new_attempt(copies.journal, await copies.new_task("fix"), workspace=str(own))
    await over(copies.journal, Lifecycle.FAILED)
    assert await midwatch("clean", "fix") == 0
    assert (own / "mine.txt").read_text() == "mine"
