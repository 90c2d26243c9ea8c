"""Work that moves from one node to another, with real git and two homes on one journal."""

import os
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import MachineError, StaleIncarnationError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.bundles import Bundles
from midwatch_monitor.records import Attempt, Snapshot
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
from midwatch_tests.command import new_attempt, new_task
from midwatch_tests.repository import commit_all, new_repository


class Node:
    """One node: its home, its store of snapshots, and what it knows of an attempt."""

    def __init__(
        self, name: str, attempt: Attempt, journal: Journal, home: Path, settings: FleetSettings
    ) -> None:
        self.name = name
        self.attempt = attempt
        self.journal = journal
        self.home = home
        self.store = SnapshotStore(journal=journal, home=home, node=name, settings=settings)
        self.source: Path | None = home.parent / "a repository"
        self.base = ""
        self.workspace = Workspace(folder=self.store.folder(attempt.workspace))
        self.incarnation = 0

    @property
    def folder(self) -> Path:
        return self.workspace.folder

    async def origin(self) -> WorkspacePlan:
        if self.source is None:
            return WorkspacePlan(source=None)
        self.base = self.base or (await git(self.source, "rev-parse", "HEAD")).strip()
        clone = clone_of(str(self.source), self.home)
        if not clone.exists():
            clone.parent.mkdir(parents=True)
            await ask_git(Path("/"), "clone", "-qn", str(self.source), str(clone), seconds=60)
        await fetch(clone, self.base)
        return WorkspacePlan(source=clone, base=self.base)

    async def begin(self, *merges: str) -> Path:
        """Make the attempt's first workspace; its folder."""
        origin = await self.origin()
        branch = branch_of(self.folder)
        self.workspace = await prepare(
            self.folder, origin.source, branch=branch, merges=merges, base=origin.base
        )
        return self.folder

    async def save(self, step: int = 3) -> TakenSnapshot:
        """Save the attempt, which is this node's from the first time on."""
        if not self.incarnation:
            at, holder = self.attempt.started_at, f"{self.name}:1"
            self.incarnation = await self.journal.claim(self.attempt.id, holder=holder, at=at)
        return await self.store.save(
            self.attempt, self.workspace, step=step, incarnation=self.incarnation
        )

    async def resume(self) -> Path:
        """Make the attempt's workspace again; its folder."""
        found = await self.store.workspace(self.attempt, await self.origin())
        assert found is not None
        self.workspace = found
        return self.folder


Nodes = tuple[Node, Node]
Build = Callable[..., Nodes]


@pytest.fixture
def build(tmp_path: Path, journal: Journal, attempt: Attempt) -> Build:
    """Two nodes with settings of their own."""
    names = ("kept", "edited", "staged", "deleted", "renamed")
    files = {f"{name}.txt": f"{name}\n" * 9 for name in names}
    new_repository(tmp_path / "a repository", {**files, ".gitignore": "*.pyc\n"})

    def nodes(of: Attempt = attempt, journal: Journal = journal, **settings: object) -> Nodes:
        given = FleetSettings.model_validate(settings)
        a, b = (Node(name, of, journal, tmp_path / name, given) for name in "ab")
        return a, b

    return nodes


@pytest.fixture
def nodes(build: Build) -> Nodes:
    return build()


def folder_contents(folder: Path) -> dict[str, object]:
    """All that is in a folder but git's own, with what git says of modes and links."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink():
            found[str(name)] = f"-> {path.readlink()}"
        elif path.is_file() and ".git" not in name.parts:
            found[str(name)] = (path.read_bytes(), os.access(path, os.X_OK))
    return found


async def change_files(folder: Path) -> None:
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
    inner = folder / "a repository inside"
    inner.mkdir()
    await git(inner, "init", "--quiet")
    (inner / "new.txt").write_text("new\n")


async def test_all_that_a_worker_did_is_on_the_other_node_but_what_git_ignores(
    nodes: Nodes,
) -> None:
    a, b = nodes
    folder = await a.begin()
    await change_files(folder)
    files = folder_contents(folder)
    (folder / "made.pyc").write_bytes(b"")

    async def state() -> list[str]:
        reads = (("status", "--porcelain=v2", "--branch"), ("reflog",), ("stash", "list"))
        return [await git(folder, *each) for each in reads]

    before = await state()
    saved = await a.save()
    assert (saved.fault, saved.whole) == ("", True)
    assert await state() == before, "saving touches nothing that the worker sees"
    moved = await b.resume()
    assert b.workspace == Workspace(
        folder=b.home / "work" / "r1" / "fix-1", branch="midwatch/r1/fix-1", base=a.base
    )
    assert folder_contents(moved) == files
    for words in (("status", "--porcelain"), ("log", "--format=%H %s", f"{a.base}..HEAD")):
        assert await git(moved, *words) == await git(folder, *words)
    assert (await git(moved, "log", "-1", "--format=%s")) == "By the worker\n"


@pytest.mark.parametrize("blocked", ["midwatch/saved", "heads/midwatch"])
async def test_a_node_that_cannot_make_the_moved_files_leaves_them_to_another(
    blocked: str, nodes: Nodes
) -> None:
    a, b = nodes
    await a.begin()
    await a.save()
    clone = (await b.origin()).source
    assert clone is not None
    lock = clone / ".git" / "refs" / blocked / "r1" / "fix-1.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")  # git fails as on a full disk
    with pytest.raises(MachineError, match=r"cannot (lock|update) ref"):
        await b.resume()


async def test_the_same_files_are_saved_once(nodes: Nodes, journal: Journal) -> None:
    a, _ = nodes
    await a.begin()
    saved = [await a.save(step) for step in (3, 4)]
    assert saved[0] == saved[1]
    (snapshot,) = await Bundles(journal).snapshots(a.attempt.id)
    bundle = await Bundles(journal).get(a.attempt.id)
    assert bundle is not None
    assert bundle.commit == snapshot.commit
    assert snapshot == Snapshot(
        commit=saved[0].commit, base=a.base, messages=0, step=3, size=len(bundle.body)
    )


async def test_a_bundle_holds_only_what_the_origin_lacks(nodes: Nodes, journal: Journal) -> None:
    a, _ = nodes
    assert a.source is not None
    (a.source / "large.bin").write_bytes(os.urandom(300_000))
    await commit_all(a.source, "Large")
    await change_files(await a.begin())
    await a.save()
    bundle = await Bundles(journal).get(a.attempt.id)
    assert bundle is not None
    assert len(bundle.body) < 5_000


@pytest.mark.parametrize("push", [False, True])
async def test_what_a_dead_node_saves_late_is_refused(push: bool, build: Build) -> None:
    a, b = build(push=push)
    folder = await a.begin()
    await a.save()
    moved = await b.resume()
    (moved / "timely.txt").write_text("timely\n")
    timely = await b.save()
    (folder / "late.txt").write_text("late\n")
    with pytest.raises(StaleIncarnationError):
        await a.save()
    assert (await Bundles(a.journal).snapshots(a.attempt.id))[-1].commit == timely.commit
    assert folder_contents(await a.resume()) == folder_contents(moved), (
        "and its own files are made anew"
    )
    assert a.folder == folder


async def test_a_node_that_had_it_last_goes_on_with_the_files_as_they_are(nodes: Nodes) -> None:
    a, _ = nodes
    folder = await a.begin()
    await a.save()
    (folder / "unsaved.txt").write_text("unsaved\n")
    assert await a.resume() == folder
    assert (folder / "unsaved.txt").exists()


async def test_what_was_never_saved_is_not_found(nodes: Nodes) -> None:
    a, b = nodes
    await a.begin()
    assert await b.store.workspace(b.attempt, await b.origin()) is None


async def test_an_orphan_branch_of_the_worker_moves_too(nodes: Nodes) -> None:
    a, b = nodes
    folder = await a.begin()
    await git(folder, "checkout", "--quiet", "--orphan", "fresh")
    (folder / "edited.txt").write_text("on no branch yet\n")
    await a.save()
    assert folder_contents(await b.resume()) == folder_contents(folder)


async def test_a_conflict_in_the_index_does_not_keep_the_files_from_moving(nodes: Nodes) -> None:
    a, b = nodes
    folder = await a.begin()
    for name, text in (("one", "1\n"), ("two", "2\n")):
        await git(folder, "checkout", "--quiet", "-b", name, a.base)
        (folder / "edited.txt").write_text(text)
        await commit_all(folder, name)
    with pytest.raises(WorkspaceError, match="merge"):
        await git(folder, "merge", "one")
    await a.save()
    assert "<<<<<<<" in (await b.resume() / "edited.txt").read_text()


@pytest.mark.parametrize("copied", [False, True])
async def test_a_folder_without_git_moves_whole(copied: bool, tmp_path: Path, nodes: Nodes) -> None:
    a, b = nodes
    a.source = b.source = None
    source = tmp_path / "source"
    if copied:
        source.mkdir()
        (source / "given.txt").write_text("given\n")
    a.workspace = await prepare(a.folder, source if copied else None, branch="", merges=())
    (a.folder / "deep" / "er").mkdir(parents=True)
    (a.folder / "deep" / "er" / "run.sh").write_text("#!/bin/sh\n")
    (a.folder / "deep" / "er" / "run.sh").chmod(0o755)
    (a.folder / "link").symlink_to("deep")
    await a.save()
    moved = await b.resume()
    assert b.workspace == Workspace(folder=b.home / "work" / "r1" / "fix-1")
    assert folder_contents(moved) == folder_contents(a.folder)
    assert ".git" not in {path.name for path in moved.iterdir()}


@pytest.mark.parametrize("restored", [False, True])
async def test_files_that_are_newer_than_a_restored_journal_are_warned_of(
    nodes: Nodes, journal: Journal, restored: bool, caplog: pytest.LogCaptureFixture
) -> None:
    a, _ = nodes
    folder = await a.begin()
    for step in (1, 2):
        (folder / "new.txt").write_text(f"{step}\n")
        await a.save(step)
    if restored:
        newest = (await journal.entries(attempt=a.attempt.id, kinds=(Snapshot,)))[-1]
        await journal.write(forget, newest.id)
    assert await a.resume() == folder
    warned = [f"{folder} continues with files that are newer than the journal"]
    assert [each.partition(", as")[0] for each in caplog.messages] == (warned if restored else [])


def forget(connection: Connection, entry: int) -> None:
    connection.execute(delete(tables.entry).where(tables.entry.c.id == entry))


async def test_work_that_is_too_large_is_told_and_stays(build: Build) -> None:
    a, b = build(max_bundle_mb=0.1)
    folder = await a.begin()
    (folder / "small.txt").write_text("small\n")
    await a.save()
    (folder / "large.bin").write_bytes(os.urandom(200_000))
    saved = await a.save(5)
    large = "the work is larger than 0.1 MB, so it cannot move"
    assert (saved.fault, saved.whole) == (large, False)
    assert (await b.resume() / "small.txt").exists()
    with pytest.raises(WorkspaceError, match="r1/fix-1 was not saved: it exists only on a"):
        await b.store.bring_branches(
            (await b.origin()).source or b.home, ["midwatch/r1/fix-1"], run=1
        )


async def test_a_dependent_on_another_node_builds_on_the_finished_branch(
    nodes: Nodes, build: Build, journal: Journal, at: datetime, tmp_path: Path
) -> None:
    a, b = nodes
    (await a.begin() / "built.txt").write_text("built\n")
    await commit_work(a.workspace, "Finished")
    await a.save()
    task = await new_task(journal, "use", run=1, at=at)
    place = str(tmp_path / "b" / "work" / "r1" / "use-1")
    later = await new_attempt(journal, task, at=at, node="a", workspace=place)
    then_a, then_b = build(later)
    clone = (await b.origin()).source
    assert clone is not None
    await b.store.bring_branches(clone, [a.workspace.branch], run=1)
    assert (await then_b.begin(a.workspace.branch) / "built.txt").read_text() == "built\n"
    # Its own bundle brings the other's work along: the origin does not have it.
    await then_b.save()
    assert (await then_a.resume() / "built.txt").exists()
    with pytest.raises(WorkspaceError, match="no attempt of this run has the branch midwatch/r9"):
        await b.store.bring_branches(b.home, ["midwatch/r9/x-1"], run=1)


async def test_the_folder_of_a_sibling_without_git_is_brought(nodes: Nodes) -> None:
    a, b = nodes
    a.source = b.source = None
    folder = await a.begin()
    (folder / "half.txt").write_text("half\n")
    await a.save()
    assert await a.store.bring_folder(folder, run=1) == folder
    assert folder_contents(await b.store.bring_folder(folder, run=1)) == folder_contents(folder)


# -- pushed work, where the origin has a branch of that name already ---------------------------

BRANCH = "midwatch/r1/fix-1"
ANEW = f"{BRANCH}.begun-20261121T210000"


@pytest.fixture
async def nodes_of_later_attempt(
    build: Build, attempt: Attempt, tmp_path: Path, at: datetime
) -> AsyncGenerator[Nodes]:
    """Nodes of an attempt that began after one of the same name, which its journal lost."""
    lost, _ = build(push=True)
    (await lost.begin() / "kept.txt").write_text("lost")
    await lost.save()
    lost.home.rename(tmp_path / "lost")
    async with await Journal.open(tmp_path / "restored.db") as restored:
        task = await new_task(restored, "fix", at=at)
        later = await new_attempt(
            restored, task, at=at + timedelta(hours=1), node="a", workspace=attempt.workspace
        )
        yield build(later, restored, push=True)


async def pushed_branches(node: Node) -> dict[str, str]:
    """What the origin has, by branch."""
    assert node.source is not None
    refs = await git(
        node.source, "for-each-ref", "--format=%(refname:short)", "refs/heads/midwatch"
    )
    return {each: await git(node.source, "show", f"{each}:kept.txt") for each in refs.split()}


async def test_the_branch_of_a_lost_attempt_stays_beside_that_of_a_new_one(
    nodes_of_later_attempt: Nodes,
) -> None:
    a, _ = nodes_of_later_attempt
    folder = await a.begin()
    for text in ("one", "two"):
        (folder / "kept.txt").write_text(text)
        await a.save()
    assert await pushed_branches(a) == {BRANCH: "lost", ANEW: "two"}


async def test_another_node_goes_on_with_or_builds_on_what_was_pushed_under_another_name(
    nodes_of_later_attempt: Nodes,
) -> None:
    a, b = nodes_of_later_attempt
    (await a.begin() / "kept.txt").write_text("one")
    await a.save()
    origin = (await b.origin()).source
    assert origin is not None
    await b.store.bring_branches(origin, [BRANCH], run=1)
    (snapshot,) = await Bundles(a.journal).snapshots(a.attempt.id)
    assert await git(origin, "show", f"{snapshot.commit}:kept.txt") == "one"
    assert (await b.resume() / "kept.txt").read_text() == "one"
    assert b.workspace.branch == BRANCH


async def test_where_both_names_are_taken_nothing_is_forced(nodes_of_later_attempt: Nodes) -> None:
    a, _ = nodes_of_later_attempt
    await a.begin()
    assert a.source is not None
    await git(a.source, "branch", ANEW, "main")
    with pytest.raises(WorkspaceError, match="the origin has other branches"):
        await a.save()
    assert (await pushed_branches(a))[BRANCH] == "lost"


async def test_a_push_that_fails_for_another_reason_says_that_reason(build: Build) -> None:
    a, _ = build(push=True)
    await a.begin()
    assert a.source is not None
    hook = a.source / ".git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(WorkspaceError, match="no such luck"):
        await a.save()
