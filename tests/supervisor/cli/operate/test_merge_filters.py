"""`midwatch merge` where a filter of git, as of Git LFS or git-crypt, rewrites files."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle, TaskTransition
from midwatch_stage.command import assignment, midwatch, new_attempt, new_task, read, refused, write
from midwatch_stage.factories import AT
from midwatch_stage.repository import commit_all, new_repository
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import prepare
from midwatch_tools.git import run_git

Capture = pytest.CaptureFixture[str]
BRANCH = "midwatch/r1/totals-1"
ROT = "tr A-Za-z N-ZA-Mn-za-m"

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


def own_git(folder: Path, *argv: str) -> str:
    """git as the owner runs it, with filters."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", *argv], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a file that is stored as a filter writes it."""
    files = {".gitattributes": "*.enc filter=rot\n", "old.enc": "frperg\n", "a.py": "a = 1\n"}
    folder = new_repository(tmp_path / "repository", files)
    for way in ("clean", "smudge"):
        run_git(folder, "config", f"filter.rot.{way}", ROT)
    (folder / "old.enc").unlink()
    own_git(folder, "checkout", "--quiet", "old.enc")
    assert (folder / "old.enc").read_text() == "secret\n"
    return folder


@pytest.fixture
async def worktree(tmp_path: Path, repository: Path, journal: Journal) -> Path:
    """The workspace of a completed task."""
    folder = tmp_path / "home" / "work" / "r1" / "totals-1"
    await prepare(folder, repository, branch=BRANCH, merges=())
    spec = assignment("totals", acceptance=("true",), workspace=repository).model_dump_json()
    task = await new_task(journal, "totals", spec=spec)
    attempt = await new_attempt(journal, task, workspace=str(folder))
    over = Lifecycle.COMPLETED
    ended = AttemptTransition(lifecycle=over, ending=Ending.DONE)
    await write(journal, attempt, AT, ended, TaskTransition(lifecycle=over))
    return folder


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
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
    repository: Path,
    worktree: Path,
    capsys: Capture,
    changed: str,
    files: dict[str, str],
    option: tuple[str, ...],
) -> None:
    for name, text in files.items():
        (worktree / name).write_text(text)
    await commit_all(worktree, "Work")
    before = run_git(repository, "rev-parse", "HEAD")
    assert await refused(capsys, "merge", "totals", *option) == (
        f"{BRANCH} changes {changed}, and a git filter rewrites such files, but Midwatch runs no "
        f"filters: look at the diff, then run `git merge {BRANCH}` in {repository}. Nothing was "
        "merged\n"
    )
    assert run_git(repository, "rev-parse", "HEAD") == before
    assert own_git(repository, "status", "--porcelain") == ""
    assert own_git(repository, "branch", "--list", BRANCH)
    own_git(repository, "merge", BRANCH)


@pytest.fixture
async def elsewhere(tmp_path: Path, repository: Path, journal: Journal) -> None:
    """A completed task, whose branch is only in the journal: another node worked on it."""
    east = tmp_path / "east"
    folder, clone = east / "work" / "r1" / "totals-1", east / "clone"
    base = own_git(repository, "rev-parse", "HEAD")
    own_git(tmp_path, "clone", "--quiet", "--no-checkout", str(repository), str(clone))
    workspace = await prepare(folder, clone, branch=BRANCH, merges=(), base=base)
    (folder / "old.enc").write_text("bgure\n")
    await commit_all(folder, "Work")
    wanted = assignment("totals", workspace=repository, base=base)
    task = await new_task(journal, "totals", spec=wanted.model_dump_json())
    attempt = await new_attempt(journal, task, node="east", workspace=str(folder))
    claimed = await journal.claim(attempt.id, holder="east:1", at=AT)
    store = SnapshotStore(journal=journal, home=east, node="east", settings=FleetSettings())
    await store.save(attempt, workspace, step=1, incarnation=claimed)
    over = Lifecycle.COMPLETED
    ended = AttemptTransition(lifecycle=over, ending=Ending.DONE)
    await write(journal, attempt, AT, ended, TaskTransition(lifecycle=over))
    shutil.rmtree(east)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("option", [(), ("--dry-run",)])
async def test_the_command_named_for_a_branch_of_another_node_merges_it(
    repository: Path, capsys: Capture, option: tuple[str, ...]
) -> None:
    refs = own_git(repository, "for-each-ref")
    assert await midwatch("merge", "totals", *option) == 2
    assert option == () or own_git(repository, "for-each-ref") == refs
    named = re.search(r"then run `git (merge \S+)` in (\S+)\.", capsys.readouterr().err)
    assert named is not None
    own_git(Path(named[2]), *named[1].split())
    assert (repository / "old.enc").read_text() == "other\n"
    assert "is already in main" in (await read(capsys, "merge", "totals"))[0]


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("option", [(), ("--dry-run",)])
async def test_the_command_named_for_a_conflict_with_a_branch_of_another_node_begins_its_merge(
    repository: Path, capsys: Capture, option: tuple[str, ...]
) -> None:
    own_git(repository, "config", "--remove-section", "filter.rot")
    (repository / "old.enc").write_text("mine\n")
    await commit_all(repository, "Mine")
    assert await midwatch("merge", "totals", *option) == 2
    named = re.search(r"by hand, run `git (merge \S+)` in (\S+)", capsys.readouterr().err)
    assert named is not None
    with pytest.raises(subprocess.CalledProcessError):
        own_git(Path(named[2]), *named[1].split())
    assert "<<<<<<<" in (repository / "old.enc").read_text()


async def test_files_that_no_filter_rewrites_are_merged(
    repository: Path, worktree: Path, capsys: Capture
) -> None:
    (repository / ".git" / "info" / "attributes").write_text("*.ipynb filter=unknown\n")
    (worktree / "b.ipynb").write_text("{}\n")
    await commit_all(worktree, "Work")
    (repository / "old.enc").touch()  # so that git looks into it: it is not what git stores
    assert "merged" in (await read(capsys, "merge", "totals"))[1]
    assert (repository / "b.ipynb").read_text() == "{}\n"
    assert own_git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("file", ["a.py", "old.enc"])
async def test_changes_that_are_not_committed_stay_beside_a_filter(
    repository: Path, worktree: Path, capsys: Capture, file: str
) -> None:
    (worktree / "b.py").write_text("b = 1\n")
    await commit_all(worktree, "Work")
    (repository / "old.enc").write_text("more\n")
    (repository / file).write_text("mine\n")
    if refused := file == "a.py":
        assert await midwatch("merge", "totals") == 2
        assert "has uncommitted changes; commit or stash them first" in capsys.readouterr().err
    else:
        assert "merged" in (await read(capsys, "merge", "totals"))[1]
    assert (repository / file).read_text() == "mine\n"
    assert (repository / "b.py").exists() is not refused
