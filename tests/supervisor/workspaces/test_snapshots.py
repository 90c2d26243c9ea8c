"""Work that moves from one node to another, with real git and two homes on one journal."""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import MachineError, StaleIncarnationError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Snapshot
from midwatch_stage.command import new_attempt, new_task
from midwatch_stage.repository import commit_all, new_repository
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.workspaces.clone import clone_of, fetch
from midwatch_supervisor.workspaces.snapshot import TakenSnapshot
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import (
    Workspace,
    WorkspacePlan,
    ask_git,
    commit_work,
    git,
    prepare,
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node: its home, its store of snapshots, and what it knows of an attempt."""

    name: str
    home: Path
    snapshot_store: SnapshotStore
    journal: Journal
    source: Path | None
    base: str

    async def origin(self) -> WorkspacePlan:
        if self.source is None:
            return WorkspacePlan(source=None)
        clone = clone_of(str(self.source), self.home)
        if not clone.exists():
            clone.parent.mkdir(parents=True)
            await ask_git(Path("/"), "clone", "-qn", str(self.source), str(clone), seconds=60)
        await fetch(clone, self.base)
        return WorkspacePlan(source=clone, base=self.base)

    async def begin(self, attempt: Attempt, *merges: str) -> Workspace:
        """Make the attempt's first workspace."""
        origin = await self.origin()
        folder = self.snapshot_store.folder(attempt.workspace)
        return await prepare(
            folder, origin.source, branch=branch_of(folder), merges=merges, base=origin.base
        )

    async def claim(self, attempt: Attempt, at: datetime) -> int:
        return await self.journal.claim(attempt.id, holder=f"{self.name}:1", at=at)

    async def save(
        self, attempt: Attempt, workspace: Workspace, incarnation: int, step: int = 3
    ) -> TakenSnapshot:
        return await self.snapshot_store.save(
            attempt, workspace, step=step, incarnation=incarnation
        )

    async def resume(self, attempt: Attempt) -> Workspace:
        """Make the attempt's workspace again."""
        origin = await self.origin()
        workspace = await self.snapshot_store.workspace(attempt, origin)
        assert workspace is not None
        return workspace


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    names = ("kept", "edited", "staged", "deleted", "renamed")
    files = {f"{name}.txt": f"{name}\n" * 9 for name in names}
    return new_repository(tmp_path / "a repository", {**files, ".gitignore": "*.pyc\n"})


def fleet(
    tmp_path: Path, journal: Journal, source: Path | None, base: str, settings: FleetSettings
) -> tuple[Node, Node]:
    def node(name: str) -> Node:
        home = tmp_path / name
        snapshot_store = SnapshotStore(journal=journal, home=home, node=name, settings=settings)
        return Node(
            name=name,
            home=home,
            snapshot_store=snapshot_store,
            journal=journal,
            source=source,
            base=base,
        )

    return node("a"), node("b")


@pytest.fixture
async def nodes(tmp_path: Path, journal: Journal, repository: Path) -> tuple[Node, Node]:
    base = (await git(repository, "rev-parse", "HEAD")).strip()
    return fleet(tmp_path, journal, repository, base, FleetSettings())


async def attempt_at(journal: Journal, name: str, workspace: Path, at: datetime) -> Attempt:
    runs = await journal.runs()
    task = await new_task(journal, name, run=runs[-1].id if runs else None, at=at)
    return await new_attempt(journal, task, at=at, node="a", workspace=str(workspace))


def seen(folder: Path) -> dict[str, object]:
    """All that is in a folder but git's own, with what git says of modes and links."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and name != ".git":
            found[name] = (path.read_bytes(), os.access(path, os.X_OK))
    return found


async def work(folder: Path) -> None:
    """All that a worker may do to its files, and that git can tell."""
    (folder / "committed.txt").write_text("committed\n")
    await commit_all(folder, "By the worker")
    (folder / "edited.txt").write_text("edited anew\n")
    (folder / "staged.txt").write_text("staged anew\n")
    await git(folder, "add", "staged.txt")
    (folder / "staged.txt").write_text("and edited after\n")
    (folder / "deleted.txt").unlink()
    await git(folder, "mv", "renamed.txt", "other name.txt")
    (folder / "new").mkdir()
    (folder / "new" / "binary.bin").write_bytes(bytes(range(256)) * 4)
    (folder / "new" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "new" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("new/run.sh")


async def test_all_that_a_worker_did_is_on_the_other_node(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    incarnation = await a.claim(attempt, at)
    await work(workspace.folder)
    status = await git(workspace.folder, "status", "--porcelain")
    await a.save(attempt, workspace, incarnation)
    moved = await b.resume(attempt)
    assert moved == Workspace(
        folder=b.home / "work" / "r1" / "fix-1", branch="midwatch/r1/fix-1", base=a.base
    )
    assert seen(moved.folder) == seen(workspace.folder)
    assert await git(moved.folder, "status", "--porcelain") == status
    log = await git(moved.folder, "log", "--format=%H %s", f"{a.base}..HEAD")
    assert log == await git(workspace.folder, "log", "--format=%H %s", f"{a.base}..HEAD")
    assert log.endswith("By the worker\n")


@pytest.mark.parametrize("blocked", ["midwatch/saved", "heads/midwatch"])
async def test_a_node_that_cannot_make_the_moved_files_leaves_them_to_another(
    blocked: str, nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    await work(workspace.folder)
    await a.save(attempt, workspace, await a.claim(attempt, at))
    clone = (await b.origin()).source
    assert clone is not None
    lock = clone / ".git" / "refs" / blocked / "r1" / "fix-1.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")  # git fails as on a full disk
    with pytest.raises(MachineError, match=r"cannot (lock|update) ref"):
        await b.resume(attempt)


async def test_saving_touches_nothing_that_the_worker_sees(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, _ = nodes
    workspace = await a.begin(attempt)
    await work(workspace.folder)

    async def state() -> list[str]:
        reads = (("status", "--porcelain=v2", "--branch"), ("reflog",), ("stash", "list"))
        return [await git(workspace.folder, *each) for each in reads]

    before = await state()
    await a.save(attempt, workspace, await a.claim(attempt, at))
    assert await state() == before


async def test_what_git_ignores_stays_behind(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    (workspace.folder / "made.pyc").write_bytes(b"")
    (workspace.folder / "made.py").write_text("x = 1\n")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    moved = await b.resume(attempt)
    assert {path.name for path in moved.folder.glob("made*")} == {"made.py"}


async def test_the_same_files_are_saved_once(
    nodes: tuple[Node, Node], journal: Journal, attempt: Attempt, at: datetime
) -> None:
    a, _ = nodes
    workspace = await a.begin(attempt)
    incarnation = await a.claim(attempt, at)
    saved = [await a.save(attempt, workspace, incarnation, step) for step in (3, 4)]
    assert saved[0] == saved[1]
    (snapshot,) = await Bundles(journal).snapshots(attempt.id)
    bundle = await Bundles(journal).get(attempt.id)
    assert bundle is not None
    assert bundle.commit == snapshot.commit
    assert snapshot == Snapshot(
        commit=saved[0].commit, base=a.base, messages=0, step=3, size=len(bundle.body)
    )


async def test_a_bundle_holds_only_what_the_origin_lacks(
    nodes: tuple[Node, Node], repository: Path, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    (repository / "large.bin").write_bytes(os.urandom(300_000))
    await commit_all(repository, "Large")
    base = (await git(repository, "rev-parse", "HEAD")).strip()
    a, _ = fleet(repository.parent, journal, repository, base, FleetSettings())
    workspace = await a.begin(attempt)
    await work(workspace.folder)
    await a.save(attempt, workspace, await a.claim(attempt, at))
    bundle = await Bundles(journal).get(attempt.id)
    assert bundle is not None
    assert len(bundle.body) < 5_000


@pytest.mark.parametrize("push", [False, True])
async def test_what_a_dead_node_saves_late_is_refused(
    push: bool, repository: Path, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    base = (await git(repository, "rev-parse", "HEAD")).strip()
    a, b = fleet(repository.parent, journal, repository, base, FleetSettings(push=push))
    workspace = await a.begin(attempt)
    dead = await a.claim(attempt, at)
    await a.save(attempt, workspace, dead)
    moved = await b.resume(attempt)
    alive = await b.claim(attempt, at)
    (workspace.folder / "late.txt").write_text("late\n")
    with pytest.raises(StaleIncarnationError):
        await a.save(attempt, workspace, dead)
    (moved.folder / "timely.txt").write_text("timely\n")
    timely = await b.save(attempt, moved, alive)
    assert (await Bundles(journal).snapshots(attempt.id))[-1].commit == timely.commit
    back = await a.resume(attempt)
    assert seen(back.folder) == seen(moved.folder)


async def test_a_node_that_had_it_last_goes_on_with_the_files_as_they_are(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, _ = nodes
    workspace = await a.begin(attempt)
    await a.save(attempt, workspace, await a.claim(attempt, at))
    (workspace.folder / "unsaved.txt").write_text("unsaved\n")
    assert await a.resume(attempt) == workspace
    assert (workspace.folder / "unsaved.txt").exists()


async def test_a_node_that_had_it_before_another_makes_it_anew(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    await a.save(attempt, workspace, await a.claim(attempt, at))
    moved = await b.resume(attempt)
    (workspace.folder / "stale.txt").write_text("stale\n")
    (moved.folder / "b.txt").write_text("by b\n")
    await b.save(attempt, moved, await b.claim(attempt, at))
    back = await a.resume(attempt)
    assert back.folder == workspace.folder
    assert seen(back.folder) == seen(moved.folder)


async def test_what_was_never_saved_is_not_found(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    await a.begin(attempt)
    await a.claim(attempt, at)
    assert await b.snapshot_store.workspace(attempt, await b.origin()) is None


async def test_an_orphan_branch_of_the_worker_moves_too(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    await git(workspace.folder, "checkout", "--quiet", "--orphan", "fresh")
    (workspace.folder / "edited.txt").write_text("on no branch yet\n")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    assert seen((await b.resume(attempt)).folder) == seen(workspace.folder)


async def test_a_conflict_in_the_index_does_not_keep_the_files_from_moving(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    for name, text in (("one", "1\n"), ("two", "2\n")):
        await git(workspace.folder, "checkout", "--quiet", "-b", name, a.base)
        (workspace.folder / "edited.txt").write_text(text)
        await commit_all(workspace.folder, name)
    with pytest.raises(WorkspaceError, match="merge"):
        await git(workspace.folder, "merge", "one")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    text = ((await b.resume(attempt)).folder / "edited.txt").read_text()
    assert "<<<<<<<" in text


async def test_the_files_of_a_repository_inside_move_too(
    nodes: tuple[Node, Node], attempt: Attempt, at: datetime
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    inner = workspace.folder / "inner"
    inner.mkdir()
    await git(inner, "init", "--quiet")
    (inner / "new.txt").write_text("new\n")
    saved = await a.save(attempt, workspace, await a.claim(attempt, at))
    assert not saved.fault
    assert saved.whole
    assert ((await b.resume(attempt)).folder / "inner" / "new.txt").exists()


@pytest.mark.parametrize("copied", [False, True])
async def test_a_folder_without_git_moves_whole(
    copied: bool, tmp_path: Path, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    a, b = fleet(tmp_path, journal, None, "", FleetSettings())
    source = tmp_path / "source"
    if copied:
        source.mkdir()
        (source / "given.txt").write_text("given\n")
    folder = a.snapshot_store.folder(attempt.workspace)
    workspace = await prepare(folder, source if copied else None, branch="", merges=())
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "deep" / "er" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("deep")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    moved = await b.resume(attempt)
    assert moved == Workspace(folder=b.home / "work" / "r1" / "fix-1")
    assert seen(moved.folder) == seen(folder)
    assert ".git" not in {path.name for path in moved.folder.iterdir()}


@pytest.mark.parametrize("restored", [False, True])
async def test_files_that_are_newer_than_a_restored_journal_are_warned_of(
    nodes: tuple[Node, Node],
    journal: Journal,
    attempt: Attempt,
    at: datetime,
    restored: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    a, _ = nodes
    workspace = await a.begin(attempt)
    incarnation = await a.claim(attempt, at)
    for step in (1, 2):
        (workspace.folder / "new.txt").write_text(f"{step}\n")
        await a.save(attempt, workspace, incarnation, step)
    if restored:
        newest = (await journal.entries(attempt=attempt.id, kinds=(Snapshot,)))[-1]
        await journal.write(forget, newest.id)
    assert (await a.resume(attempt)).folder == workspace.folder
    warned = [f"{workspace.folder} continues with files that are newer than the journal"]
    assert [each.partition(", as")[0] for each in caplog.messages] == (warned if restored else [])


def forget(connection: Connection, entry: int) -> None:
    connection.execute(delete(tables.entry).where(tables.entry.c.id == entry))


async def test_work_that_is_too_large_is_told_and_stays(
    tmp_path: Path, repository: Path, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    base = (await git(repository, "rev-parse", "HEAD")).strip()
    a, b = fleet(tmp_path, journal, repository, base, FleetSettings(max_bundle_mb=0.1))
    workspace = await a.begin(attempt)
    incarnation = await a.claim(attempt, at)
    (workspace.folder / "small.txt").write_text("small\n")
    await a.save(attempt, workspace, incarnation)
    (workspace.folder / "large.bin").write_bytes(os.urandom(200_000))
    saved = await a.save(attempt, workspace, incarnation, 5)
    assert (saved.fault, saved.whole) == (
        "the work is larger than 0.1 MB, so it cannot move",
        False,
    )
    moved = await b.resume(attempt)
    assert (moved.folder / "small.txt").exists()
    with pytest.raises(WorkspaceError, match="r1/fix-1 was not saved: it exists only on a"):
        await b.snapshot_store.bring_branches(
            (await b.origin()).source or b.home, ["midwatch/r1/fix-1"], run=1
        )


async def test_a_dependent_on_another_node_builds_on_the_finished_branch(
    nodes: tuple[Node, Node], journal: Journal, attempt: Attempt, at: datetime, tmp_path: Path
) -> None:
    a, b = nodes
    workspace = await a.begin(attempt)
    (workspace.folder / "built.txt").write_text("built\n")
    await commit_work(workspace, "Finished")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    later = await attempt_at(journal, "use", tmp_path / "b" / "work" / "r1" / "use-1", at)
    clone = (await b.origin()).source
    assert clone is not None
    await b.snapshot_store.bring_branches(clone, [workspace.branch], run=1)
    on_it = await b.begin(later, workspace.branch)
    assert (on_it.folder / "built.txt").read_text() == "built\n"
    # Its own bundle brings the other's work along: the origin does not have it.
    await b.save(later, on_it, await b.claim(later, at))
    assert ((await a.resume(later)).folder / "built.txt").exists()


async def test_a_branch_of_nobody_is_told(nodes: tuple[Node, Node], attempt: Attempt) -> None:
    _, b = nodes
    with pytest.raises(
        WorkspaceError, match="no attempt of this run has the branch midwatch/r9/x-1"
    ):
        await b.snapshot_store.bring_branches(b.home, ["midwatch/r9/x-1"], run=1)


async def test_the_folder_of_a_sibling_without_git_is_brought(
    tmp_path: Path, journal: Journal, attempt: Attempt, at: datetime
) -> None:
    a, b = fleet(tmp_path, journal, None, "", FleetSettings())
    workspace = await a.begin(attempt)
    (workspace.folder / "half.txt").write_text("half\n")
    await a.save(attempt, workspace, await a.claim(attempt, at))
    assert await a.snapshot_store.bring_folder(workspace.folder, run=1) == workspace.folder
    brought = await b.snapshot_store.bring_folder(workspace.folder, run=1)
    assert seen(brought) == seen(workspace.folder)
