"""What a node removes from its disk and from the journal, and what it keeps."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Lifecycle,
    Run,
    Task,
    TaskTransition,
)
from midwatch_supervisor.fleet.nodes.cleaning import Cleaner
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import git, prepare
from midwatch_tests.command import new_attempt
from midwatch_tests.matrix import DATABASES
from midwatch_tests.repository import new_repository

LABEL = "r1-1122120000"
WEEK = timedelta(days=7)


@dataclass(kw_only=True)
class Home:
    """A node's home, and the one run that it works for."""

    path: Path
    journal: Journal
    run: Run
    now: datetime
    settings: FleetSettings

    def __post_init__(self) -> None:
        self.snapshot_store = SnapshotStore(
            journal=self.journal,
            home=self.path,
            node="a",
            settings=self.settings,
            clock=lambda: self.now,
        )
        self.clone = self.path / "clones" / "shop-1"

    async def task(self, name: str) -> Task:
        return await self.journal.add_task(
            run=self.run.id, name=name, title="", spec="{}", at=self.now
        )

    async def attempt(self, task: Task, number: int, *, bare: bool = False) -> Attempt:
        """An attempt with saved work."""
        folder = self.path / "work" / LABEL / f"{task.name}-{number}"
        attempt = await new_attempt(
            self.journal, task, number, at=self.now, node="a", workspace=str(folder)
        )
        source = None if bare else self.clone
        workspace = await prepare(folder, source, branch=branch_of(folder), merges=())
        (folder / "a.txt").write_text(f"{number}")
        incarnation = await self.journal.claim(attempt.id, holder="a:1", at=self.now)
        await self.snapshot_store.save(attempt, workspace, step=1, incarnation=incarnation)
        return attempt

    async def end(self, attempt: Attempt, *, over: bool) -> None:
        """End an attempt, and its task if it is `over`."""
        state = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.RESTARTED)
        drafts = [Draft(record=state, at=self.now, task=attempt.task, attempt=attempt.id)]
        if over:
            done = TaskTransition(lifecycle=Lifecycle.COMPLETED)
            drafts.append(Draft(record=done, at=self.now, task=attempt.task))
        await self.journal.commit(Commit(drafts=tuple(drafts)))

    async def ended_attempt(self, *, bare: bool = False) -> Attempt:
        """The only attempt of a task that is over."""
        attempt = await self.attempt(await self.task("fix"), 1, bare=bare)
        await self.end(attempt, over=True)
        return attempt

    async def clean(self, *, later: timedelta = timedelta(hours=2)) -> None:
        self.now += later
        cleaner = Cleaner(
            journal=self.journal,
            snapshot_store=self.snapshot_store,
            home=self.path,
            clock=lambda: self.now,
        )
        await cleaner.clean()

    def folders(self) -> set[str]:
        return {each.name for each in self.path.glob("work/*/*")}

    async def refs(self) -> set[str]:
        said = await git(self.clone, "for-each-ref", "--format=%(refname)", "refs")
        return {ref.replace(f"/{LABEL}/", "/") for ref in said.split() if LABEL in ref}


Build = Callable[..., Awaitable[Home]]


@pytest.fixture
def build(tmp_path: Path, journal: Journal, at: datetime) -> Build:
    async def home(settings: FleetSettings | None = None) -> Home:
        run = await journal.add_run(source="", settings="{}", at=at)
        path = tmp_path / "home"
        made = Home(
            path=path, journal=journal, run=run, now=at, settings=settings or FleetSettings()
        )
        new_repository(made.clone, {"a.txt": "0"})
        return made

    return home


@pytest.mark.parametrize("location", DATABASES, indirect=True)
async def test_a_task_that_is_over_keeps_the_bundle_of_its_last_attempt_only(build: Build) -> None:
    home = await build()
    over, live = await home.task("over"), await home.task("live")
    made = [await home.attempt(task, number) for task in (over, live) for number in (1, 2)]
    await home.end(made[0], over=False)
    await home.end(made[1], over=True)
    await home.end(made[2], over=False)
    bundles = Bundles(home.journal)
    assert await bundles.drop_outlived() == 1
    assert [bool(await bundles.commit_of(each.id)) for each in made] == [False, True, True, True]


async def test_worktrees_and_their_branches_go_some_days_after_the_end_of_their_task(
    build: Build,
) -> None:
    home = await build()
    task = await home.task("fix")
    for number in (1, 2):
        await home.end(await home.attempt(task, number), over=number == 2)
    await home.clean()
    assert home.folders() == {"fix-1", "fix-2"}
    assert await home.refs() == {"refs/heads/midwatch/fix-1", "refs/heads/midwatch/fix-2"}
    await home.clean(later=WEEK)
    assert (home.folders(), await home.refs()) == (set(), set())
    assert "fix" not in await git(home.clone, "worktree", "list")
    assert not list((home.path / "gone").iterdir())


async def test_nothing_of_a_task_that_is_under_way_goes_but_what_saved_its_ended_attempts(
    build: Build,
) -> None:
    home = await build()
    task = await home.task("fix")
    await home.end(await home.attempt(task, 1), over=False)
    await home.attempt(task, 2)
    await home.clean(later=2 * WEEK)
    assert home.folders() == {"fix-1", "fix-2"}
    assert await home.refs() == {
        "refs/heads/midwatch/fix-1",
        "refs/heads/midwatch/fix-2",
        "refs/midwatch/saved/fix-2",
    }


async def test_the_repository_beside_a_folder_without_git_goes_with_its_attempt(
    build: Build,
) -> None:
    home = await build()
    task = await home.task("fix")
    await home.end(await home.attempt(task, 1, bare=True), over=False)
    await home.attempt(task, 2, bare=True)
    await home.clean()
    assert [each.name for each in home.path.glob("saved/*/*")] == ["fix-2.git"]
    assert home.folders() == {"fix-1", "fix-2"}


async def test_a_result_that_is_nowhere_else_stays(build: Build) -> None:
    home = await build(FleetSettings(max_bundle_mb=0.0001))
    await home.ended_attempt()
    await home.clean(later=2 * WEEK)
    assert home.folders() == {"fix-1"}


async def test_what_the_journal_does_not_know_or_a_link_leads_to_stays(
    build: Build, tmp_path: Path
) -> None:
    home = await build()
    await home.ended_attempt()
    other = home.path / "work" / "r1-0101000000" / "fix-1"
    other.mkdir(parents=True)
    moved = tmp_path / "elsewhere"
    (home.path / "work" / LABEL / "fix-1").rename(moved)
    (home.path / "work" / LABEL / "fix-1").symlink_to(moved)
    await home.clean(later=2 * WEEK)
    assert other.is_dir()
    assert (moved / "a.txt").is_file()


async def test_a_workspace_that_somebody_asked_for_just_now_stays_for_the_moment(
    build: Build,
) -> None:
    home = await build()
    attempt = await home.ended_attempt(bare=True)
    home.now += WEEK
    await home.snapshot_store.bring_folder(Path(attempt.workspace), run=home.run.id)
    await home.clean(later=timedelta(minutes=1))
    assert home.folders() == {"fix-1"}
    await home.clean()
    assert home.folders() == set()


async def test_a_workspace_that_somebody_asks_for_during_the_cleaning_stays(
    build: Build, location: str
) -> None:
    home = await build()
    attempt = await home.ended_attempt()
    folder, ask = Path(attempt.workspace), home.snapshot_store.bring_folder

    class AskingJournal(Journal):
        async def read(self, work: Any, *args: Any, **kwargs: Any) -> Any:
            if work.__name__ == "_commit_of":  # the last that is looked for
                await ask(folder, run=home.run.id)
            return await super().read(work, *args, **kwargs)

    async with await AskingJournal.open(location) as home.journal:
        await home.clean(later=WEEK)
    assert home.folders() == {"fix-1"}
    assert await home.refs() == {"refs/heads/midwatch/fix-1", "refs/midwatch/saved/fix-1"}


async def test_folders_that_may_only_be_read_go_too(build: Build) -> None:
    home = await build()
    attempt = await home.ended_attempt()
    shut = Path(attempt.workspace) / "shut"
    shut.mkdir()
    (shut / "x").touch()
    shut.chmod(0o500)
    await home.clean(later=WEEK)
    assert home.folders() == set()
    assert not list((home.path / "gone").iterdir())
