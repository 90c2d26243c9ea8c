"""Work that is pushed where the origin has a branch of that name already."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt
from midwatch_stage.command import new_attempt, new_task
from midwatch_stage.repository import new_repository
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import Workspace, WorkspacePlan, ask_git, git, prepare

BRANCH = "midwatch/r1/fix-1"
ANEW = f"{BRANCH}.begun-20261121T210000"


@dataclass(frozen=True, kw_only=True)
class Yard:
    """An attempt that begins on node a, as one journal knows it, and the origin of its files."""

    journal: Journal
    attempt: Attempt
    origin: Path
    home: Path
    base: str

    def snapshot_store(self, node: str) -> SnapshotStore:
        settings = FleetSettings(push=True)
        return SnapshotStore(
            journal=self.journal, home=self.home / node, node=node, settings=settings
        )

    async def clone(self, node: str) -> WorkspacePlan:
        folder = self.home / node / "clone"
        if not folder.exists():
            await ask_git(Path("/"), "clone", "-q", str(self.origin), str(folder), seconds=60)
        return WorkspacePlan(source=folder, base=self.base)

    async def save(self, snapshot_store: SnapshotStore, *texts: str) -> Workspace:
        """Begin on node a, and save after each text."""
        folder = snapshot_store.folder(self.attempt.workspace)
        source = (await self.clone("a")).source
        workspace = await prepare(
            folder, source, branch=branch_of(folder), merges=(), base=self.base
        )
        for step, text in enumerate(texts, 1):
            (folder / "work.txt").write_text(text)
            await snapshot_store.save(self.attempt, workspace, step=step, incarnation=None)
        return workspace

    async def pushed(self) -> dict[str, str]:
        """What the origin has, by branch."""
        refs = await git(self.origin, "for-each-ref", "--format=%(refname:short)", "refs/heads")
        names = [each for each in refs.split() if each != "main"]
        return {each: await git(self.origin, "show", f"{each}:work.txt") for each in names}


async def yard(journal: Journal, origin: Path, home: Path, at: datetime) -> Yard:
    workspace = str(home / "a" / "work" / "r1" / "fix-1")
    task = await new_task(journal, "fix", at=at)
    attempt = await new_attempt(journal, task, at=at, node="a", workspace=workspace)
    base = (await git(origin, "rev-parse", "main")).strip()
    return Yard(journal=journal, attempt=attempt, origin=origin, home=home, base=base)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "origin", {"work.txt": "nothing"})


@pytest.fixture
async def anew(
    journal: Journal, origin: Path, tmp_path: Path, at: datetime
) -> AsyncGenerator[Yard]:
    """An attempt that began after an earlier one of the same name, which its journal lost."""
    lost = await yard(journal, origin, tmp_path / "lost", at)
    await lost.save(lost.snapshot_store("a"), "lost")
    async with await Journal.open(tmp_path / "restored.db") as restored:
        yield await yard(restored, origin, tmp_path / "anew", at + timedelta(hours=1))


async def test_the_branch_of_a_lost_attempt_stays_beside_that_of_a_new_one(anew: Yard) -> None:
    workspace = await anew.save(anew.snapshot_store("a"), "one", "two")
    assert await anew.pushed() == {BRANCH: "lost", ANEW: "two"}
    (workspace.folder / "work.txt").write_text("three")
    await anew.snapshot_store("a").save(anew.attempt, workspace, step=3, incarnation=None)
    assert await anew.pushed() == {BRANCH: "lost", ANEW: "three"}


async def test_another_node_goes_on_with_or_builds_on_what_was_pushed_under_another_name(
    anew: Yard,
) -> None:
    await anew.save(anew.snapshot_store("a"), "one")
    other, origin = anew.snapshot_store("b"), await anew.clone("b")
    assert origin.source is not None
    await other.bring_branches(origin.source, [BRANCH], run=1)
    (snapshot,) = await Bundles(anew.journal).snapshots(anew.attempt.id)
    assert await git(origin.source, "show", f"{snapshot.commit}:work.txt") == "one"
    workspace = await other.workspace(anew.attempt, origin)
    assert workspace is not None
    assert (workspace.branch, (workspace.folder / "work.txt").read_text()) == (BRANCH, "one")


async def test_where_both_names_are_taken_nothing_is_forced(anew: Yard) -> None:
    await git(anew.origin, "branch", ANEW, "main")
    with pytest.raises(WorkspaceError, match="the origin has other branches"):
        await anew.save(anew.snapshot_store("a"), "one")
    assert await anew.pushed() == {BRANCH: "lost", ANEW: "nothing"}


async def test_a_push_that_fails_for_another_reason_says_that_reason(anew: Yard) -> None:
    (anew.origin / ".git" / "hooks").mkdir(exist_ok=True)
    hook = anew.origin / ".git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    hook.chmod(0o755)
    await git(anew.origin, "branch", "-D", BRANCH)
    with pytest.raises(WorkspaceError, match="no such luck"):
        await anew.save(anew.snapshot_store("a"), "one")
