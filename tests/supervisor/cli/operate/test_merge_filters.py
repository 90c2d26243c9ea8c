"""`midwatch merge` where a filter of git, as of Git LFS or git-crypt, rewrites files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Lifecycle
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import prepare
from midwatch_tests.command import Cli, assignment, new_attempt, new_task, write
from midwatch_tests.factories import AT, ended, task_transition
from midwatch_tests.merging import BRANCH, WORK, Totals, git
from midwatch_tests.repository import commit_all, new_repository
from midwatch_tools.git import run_git

ROT = "tr A-Za-z N-ZA-Mn-za-m"

pytestmark = pytest.mark.usefixtures("named_by_the_environment")
DRY = pytest.mark.parametrize("more", [[], ["--dry-run"]])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a file that is stored as a filter writes it."""
    files = {".gitattributes": "*.enc filter=rot\n", "old.enc": "frperg\n", "a.py": "a = 1\n"}
    folder = new_repository(tmp_path / "repository", files)
    for way in ("clean", "smudge"):
        run_git(folder, "config", f"filter.rot.{way}", ROT)
    (folder / "old.enc").unlink()
    git(folder, "checkout", "--quiet", "old.enc")
    assert (folder / "old.enc").read_text() == "secret\n"
    return folder


@pytest.fixture
async def worktree(tmp_path: Path, repository: Path) -> Path:
    """The workspace of the task."""
    await prepare(tmp_path / WORK, repository, branch=BRANCH, merges=())
    return tmp_path / WORK


@DRY
@pytest.mark.parametrize(
    ("changed", "files"),
    [
        ("old.enc", {"old.enc": "bgure\n"}),
        ("new.txt", {".gitattributes": "*.txt filter=rot\n", "new.txt": "raw\n"}),
        ("old.enc", {".gitattributes": "", "old.enc": "bgure\n"}),
    ],
    ids=["changed", "named by the branch", "no longer named by the branch"],
)
async def test_a_file_that_a_filter_rewrites_is_left_to_its_owner(
    totals: Totals, changed: str, files: dict[str, str], more: list[str]
) -> None:
    for name, text in files.items():
        (totals.worktree / name).write_text(text)
    await commit_all(totals.worktree, "Work")
    await totals.finish()
    before = run_git(totals.repository, "rev-parse", "HEAD")
    assert await totals.refused(*more) == (
        f"{BRANCH} changes {changed}, and a git filter rewrites such files, but Midwatch runs no "
        f"filters: look at the diff, then run `git merge {BRANCH}` in {totals.repository}. "
        "Nothing was merged\n"
    )
    assert run_git(totals.repository, "rev-parse", "HEAD") == before
    assert git(totals.repository, "status", "--porcelain") == ""
    git(totals.repository, "merge", BRANCH)


@pytest.fixture
async def remote_totals(tmp_path: Path, repository: Path, journal: Journal, cli: Cli) -> Totals:
    """The same task completed, its branch only in the journal: another node worked on it."""
    east = tmp_path / "east"
    folder, clone = east / "work" / "r1" / "totals-1", east / "clone"
    base = git(repository, "rev-parse", "HEAD")
    git(tmp_path, "clone", "--quiet", "--no-checkout", str(repository), str(clone))
    workspace = await prepare(folder, clone, branch=BRANCH, merges=(), base=base)
    (folder / "old.enc").write_text("bgure\n")
    await commit_all(folder, "Work")
    wanted = assignment("totals", workspace=repository, base=base).model_dump_json()
    task = await new_task(journal, "totals", spec=wanted)
    attempt = await new_attempt(journal, task, node="east", workspace=str(folder))
    claimed = await journal.claim(attempt.id, holder="east:1", at=AT)
    store = SnapshotStore(journal=journal, home=east, node="east", settings=FleetSettings())
    await store.save(attempt, workspace, step=1, incarnation=claimed)
    await write(journal, attempt, AT, ended(), task_transition(Lifecycle.COMPLETED))
    shutil.rmtree(east)
    return Totals(journal=journal, repository=repository, worktree=folder, cli=cli)


@DRY
async def test_the_command_named_for_a_branch_of_another_node_merges_it(
    remote_totals: Totals, more: list[str]
) -> None:
    refs = git(remote_totals.repository, "for-each-ref")
    said = await remote_totals.refused(*more)
    assert more == [] or git(remote_totals.repository, "for-each-ref") == refs
    named = re.search(r"then run `git (merge \S+)` in (\S+)\.", said)
    assert named is not None
    git(Path(named[2]), *named[1].split())
    assert (remote_totals.repository / "old.enc").read_text() == "other\n"
    assert "is already in main" in (await remote_totals.merge())[0]


@DRY
async def test_the_command_named_for_a_conflict_with_a_branch_of_another_node_begins_its_merge(
    remote_totals: Totals, more: list[str]
) -> None:
    git(remote_totals.repository, "config", "--remove-section", "filter.rot")
    (remote_totals.repository / "old.enc").write_text("mine\n")
    await commit_all(remote_totals.repository, "Mine")
    said = await remote_totals.refused(*more)
    named = re.search(r"by hand, run `git (merge \S+)` in (\S+)", said)
    assert named is not None
    with pytest.raises(subprocess.CalledProcessError):
        git(Path(named[2]), *named[1].split())
    assert "<<<<<<<" in (remote_totals.repository / "old.enc").read_text()


async def test_files_that_no_filter_rewrites_are_merged_and_what_a_filter_rewrote_stays(
    totals: Totals,
) -> None:
    attributes = totals.repository / ".git" / "info" / "attributes"
    attributes.write_text("*.ipynb filter=unknown\n")
    (totals.worktree / "b.ipynb").write_text("{}\n")
    await commit_all(totals.worktree, "Work")
    await totals.finish()
    (totals.repository / "a.py").write_text("mine\n")
    assert "has uncommitted changes; commit or stash them first" in await totals.refused()
    git(totals.repository, "checkout", "--quiet", "a.py")
    # What git stores of it is always other than what stands there: whether changed is not known.
    (totals.repository / "old.enc").write_text("mine\n")
    assert "merged" in (await totals.merge())[1]
    assert (totals.repository / "b.ipynb").read_text() == "{}\n"
    assert git(totals.repository, "status", "--porcelain") == "M old.enc"
    assert (totals.repository / "old.enc").read_text() == "mine\n"
