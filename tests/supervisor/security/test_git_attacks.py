"""What a worker writes into its workspace runs no program when Midwatch asks git about it."""

import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_monitor.records import AttemptTransition, Ending, TaskTransition, Writer
from midwatch_supervisor.workspaces.changes import (
    changed_names,
    changes,
    list_files,
    take_over_files,
)
from midwatch_supervisor.workspaces.merge import merge_branch, plan_merge, try_merge
from midwatch_supervisor.workspaces.placement import move_aside
from midwatch_supervisor.workspaces.snapshot import SnapshotMark, check_out, files_of, take_snapshot
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work, prepare
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository
from midwatch_tools.git import git
from midwatch_tools.journal_location import main_worktree
from midwatch_tools.tree import Tree, ignored_below, ignored_in

BRANCH = "midwatch/r1/fix-1"
Attack = Callable[["Trap", Path], None]
Act = Callable[[Workspace, Path], Awaitable[object]]


def run_worker_git(folder: Path, *command: str) -> None:
    """git as a worker calls it, whatever comes of it."""
    who = ("-c", "user.name=worker", "-c", "user.email=w@localhost")
    subprocess.run(["git", *who, *command], cwd=folder, capture_output=True, check=False)


class Trap:
    """A program that leaves a trace where no worker could."""

    def __init__(self, folder: Path) -> None:
        self.trace = folder / "trapped"
        self.program = folder / "trap.sh"
        said = f"echo \"$0 $* by $(tr '\\0' ' ' < /proc/$PPID/cmdline)\" >> '{self.trace}'"
        self.program.write_text(f"#!/bin/sh\n{said}\ncat\n")
        self.program.chmod(0o755)

    def configure(self, folder: Path) -> None:
        """Everything in a repository's configuration that names a program, and what asks for it."""
        for key in (
            *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass"),
            *("core.alternateRefsCommand", "diff.external", "credential.helper", "gpg.program"),
            *("filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver"),
            *("diff.x.textconv", "diff.x.command", "alias.status", "alias.diff", "alias.add"),
        ):
            run_worker_git(folder, "config", key, str(self.program))
        run_worker_git(folder, "config", "filter.x.required", "true")
        run_worker_git(folder, "config", "core.hooksPath", str(self.hooks()))
        run_worker_git(folder, "config", "commit.gpgSign", "true")
        run_worker_git(folder, "config", "log.showSignature", "true")

    def hooks(self) -> Path:
        folder = self.program.parent / "hooks"
        folder.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-checkout", "post-merge", "reference-transaction"):
            shutil.copy2(self.program, folder / name)
        return folder

    @property
    def calls(self) -> str:
        return self.trace.read_text() if self.trace.exists() else ""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"a.txt": "one\n"})


@pytest.fixture
async def workspace(source: Path, tmp_path: Path) -> Workspace:
    folder = tmp_path / "home" / "work" / "r1" / "fix-1"
    return await prepare(folder, source, branch=BRANCH, merges=())


def edit(folder: Path) -> None:
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (folder / "a.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")


# -- attacks -------------------------------------------------------------------------------


def replace_repository(trap: Trap, folder: Path) -> None:
    """`.git` is replaced by a repository of the worker's own."""
    edit(folder)
    (folder / ".git").unlink()
    run_worker_git(folder, "init")
    run_worker_git(folder, "add", "a.txt")
    run_worker_git(folder, "commit", "-m", "mine")
    trap.configure(folder)


def move_repository(trap: Trap, folder: Path) -> None:
    """`.git` names a repository that stands in the workspace under another name."""
    replace_repository(trap, folder)
    (folder / ".git").rename(folder / "config")
    (folder / ".git").write_text(f"gitdir: {folder / 'config'}\n")


def add_inner_repository(trap: Trap, folder: Path) -> None:
    """A repository below the workspace, which git would ask as a submodule."""
    inner = folder / "inner"
    inner.mkdir()
    run_worker_git(inner, "init")
    (inner / "b.txt").write_text("b\n")
    run_worker_git(inner, "add", "b.txt")
    run_worker_git(inner, "commit", "-m", "inner")
    trap.configure(inner)
    (inner / "b.txt").write_text("changed\n")
    text = '[submodule "inner"]\n\tpath = inner\n\turl = ext::sh\n\tignore = none\n'
    (folder / ".gitmodules").write_text(f"{text}\tupdate = !{trap.program}\n")
    edit(folder)


def use_owner_drivers(trap: Trap, folder: Path) -> None:
    """The worker names drivers that the repository's owner has set up: they run among its files."""
    trap.configure(folder)  # a worktree shares the configuration of its repository
    edit(folder)


async def commit_twice(workspace: Workspace, _: Path) -> None:
    await commit_work(workspace, "First")
    (workspace.folder / "a.txt").write_text("three\n")
    await commit_work(workspace, "Second")


async def compare(workspace: Workspace, _: Path) -> None:
    await changes(workspace)
    await changed_names(workspace.at)
    await list_files(workspace)


async def compare_committed(workspace: Workspace, source: Path) -> None:
    await commit_work(workspace, "First")
    await compare(workspace, source)


async def check_out_snapshot(workspace: Workspace, source: Path) -> None:
    files = await files_of(workspace, source.parent / "private.git")
    await check_out(files, (await take_snapshot(files, SnapshotMark(of="fix-1 of now"))).commit)


async def watch_files(workspace: Workspace, _: Path) -> None:
    tree = Tree(workspace.folder, max_files=100, ignored_by_git=ignored_in(workspace.at))
    await tree.begin()
    (workspace.folder / "seen.txt").write_text("seen\n")
    assert await tree.changes(Writer.WORKER)


async def merge(workspace: Workspace, source: Path) -> None:
    await commit_work(workspace, "First")
    (source / "a.txt").write_text("one\nand mine\n")
    (source / "b.txt").write_text("mine\n")
    await git(source, "add", "b.txt")
    await git(source, "commit", "--quiet", "--message", "Mine", "b.txt")
    await git(source, "checkout", "--quiet", "--", "a.txt")
    plan = await plan_merge(workspace, source)
    try:
        await try_merge(plan)
        await merge_branch(plan)
    except UsageError:  # the worker names a filter: that is left to the owner
        await git(source, "merge", "--quiet", BRANCH)
    assert (source / "new.txt").read_text() == "new\n"


async def build_on(workspace: Workspace, source: Path) -> None:
    await commit_work(workspace, "First")
    folder = workspace.folder.with_name("next-1")
    later = await prepare(folder, source, branch="midwatch/r1/next-1", merges=[BRANCH])
    await take_over_files(workspace, later, ["a.txt", "new.txt"], number=1)


async def move_workspace(workspace: Workspace, source: Path) -> None:
    await move_aside(workspace.folder, source, branch=BRANCH)


ACTS = (
    commit_twice,
    compare,
    compare_committed,
    check_out_snapshot,
    watch_files,
    merge,
    build_on,
    move_workspace,
)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    "attack", [replace_repository, move_repository, add_inner_repository, use_owner_drivers]
)
async def test_nothing_that_a_worker_wrote_is_run(
    trap: Trap, workspace: Workspace, source: Path, attack: Attack, act: Act
) -> None:
    attack(trap, workspace.folder)
    trap.trace.unlink(missing_ok=True)  # the worker's own git has met its own traps
    replaced = attack in {replace_repository, move_repository}
    try:
        await act(workspace, source)
        refused = ""
    except WorkspaceError as error:
        refused = str(error)
    assert trap.calls == ""
    if act is watch_files:  # its steps go on; what git ignores is not known any more
        assert refused == ""
    elif replaced and act is not move_workspace:
        assert refused.endswith("is no longer the workspace that was made: its .git was replaced")
    else:
        assert refused == ""


async def test_the_traps_are_real(trap: Trap, source: Path) -> None:
    use_owner_drivers(trap, source)
    run_worker_git(source, "add", "--all")
    assert "trap.sh" in trap.calls


async def test_commands_that_meet_no_files_run_no_driver(
    trap: Trap, source: Path, tmp_path: Path
) -> None:
    use_owner_drivers(trap, source)
    (source / ".gitignore").write_text("ignored.txt\n")
    for command in (
        f"bundle create {tmp_path}/all.bundle --all",
        "cat-file -p HEAD:a.txt",
        "check-ignore new.txt a.txt ignored.txt",
        f"fetch {source} main:refs/heads/fetched",
        "log --raw -M --walk-reflogs",
        "for-each-ref --contains=HEAD",
        "merge-base HEAD main",
        "reflog show HEAD",
        "rev-list --objects HEAD",
        "rev-parse --verify HEAD^{tree}",
        "symbolic-ref HEAD",
        "update-ref refs/heads/other HEAD",
        "branch --move main another",
    ):
        await git(source, *command.split())
        assert trap.calls == "", command


async def test_a_plain_folder_in_which_the_worker_makes_a_repository_is_not_asked(
    trap: Trap, tmp_path: Path
) -> None:
    (plain := tmp_path / "plain").mkdir()
    workspace = Workspace(folder=plain)
    run_worker_git(plain, "init")
    edit(plain)
    trap.configure(plain)
    await commit_work(workspace, "First")
    assert await changes(workspace) is None
    assert "new.txt" in await list_files(workspace)
    await check_out_snapshot(workspace, tmp_path / "project")
    assert trap.calls == ""


async def test_an_embedded_agent_cannot_make_its_watch_run_a_program(
    trap: Trap, tmp_path: Path
) -> None:
    (root := tmp_path / "root" / "below").mkdir(parents=True)
    run_worker_git(root.parent, "init")
    (root.parent / ".gitignore").write_text("*.log\n")
    trap.configure(root.parent)
    tree = Tree(root, max_files=100, ignored_by_git=ignored_below(root))
    await tree.begin()
    for name in ("a.log", "a.py"):
        (root / name).write_text("x")
    assert [edit.path for edit in await tree.changes(Writer.WORKER)] == ["a.py"]
    assert main_worktree(root) == root.parent
    assert trap.calls == ""


async def test_a_git_that_a_worker_wrote_is_not_the_one_that_runs(
    trap: Trap, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.folder / "bin").mkdir()
    shutil.copy2(trap.program, workspace.folder / "bin" / "git")
    shutil.copy2(trap.program, workspace.folder / "git")
    monkeypatch.setenv("PATH", f".::{workspace.folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(workspace.folder)
    await commit_work(workspace, "First")
    assert trap.calls == ""


async def test_git_gets_no_key_in_its_environment(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_worker_git(source, "config", "alias.environ", f"!env > '{tmp_path / 'environ'}'")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    await git(source, "environ")
    said = (tmp_path / "environ").read_text()
    assert "sk-secret" not in said
    assert "PATH=" in said


async def test_a_link_in_the_workspace_before_leads_no_file_into_the_next(tmp_path: Path) -> None:
    old, new, secret = tmp_path / "old", tmp_path / "new", tmp_path / "secret"
    for folder in (old, new, secret):
        folder.mkdir()
    (secret / "id").write_text("private")
    (old / "keys").symlink_to(secret)
    await take_over_files(Workspace(folder=old), Workspace(folder=new), ["keys/id"], number=1)
    assert not (new / "keys").exists()


# -- the workspace is another one ----------------------------------------------------------


async def test_another_branch_is_not_kept_or_compared(workspace: Workspace) -> None:
    run_worker_git(workspace.folder, "checkout", "-b", "elsewhere")
    edit(workspace.folder)
    for act in (changes(workspace), commit_work(workspace, "First")):
        with pytest.raises(WorkspaceError, match=f"its branch {BRANCH} is not checked out"):
            await act


async def replace_git(ctx: RunContext[object]) -> str:
    """Make another repository of the workspace."""
    command = "rm .git && git init -q && echo two > out.txt"
    return (await ctx.workspace.run(command, shell=True)).stderr


def script_for(role: Role, key: str) -> Script:
    call = Turn(calls=(Call(tool="replace_git"),))
    return Script(phases=(Phase(turns=(call, Turn(say="Done."))),))


TASKS = f"""
models: {{worker: "scripted:{__name__}@0", supervisor: none}}
workers: {{clerk: {{kind: task, tools: ["{__name__}:replace_git"]}}}}
defaults: {{max_attempts: 1, workspace: project}}
tasks:
  - {{id: fix, goal: Do it., acceptance: ["grep -q two out.txt"]}}
  - {{id: next, goal: Do more., depends_on: [fix], acceptance: ["true"]}}
"""


async def test_an_attempt_that_replaced_its_repository_fails_and_its_files_are_kept(
    harness: RunHarness, source: Path
) -> None:
    assert source
    assert await harness.run(TASKS) == 1
    ends = [each for each in await harness.told(AttemptTransition) if each.ending]
    assert [each.ending for each in ends] == [Ending.ERROR]
    assert ends[0].reason.endswith("no longer the workspace that was made: its .git was replaced")
    assert [each.lifecycle for each in await harness.told(TaskTransition)][-1] == "failed"
    assert (harness.home / "work" / "r1" / "fix-1" / "out.txt").read_text() == "two\n"
