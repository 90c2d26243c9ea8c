"""A repository that a worker makes in its workspace is files: git outside runs nothing of it."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind, place
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import FileCheck
from midwatch_supervisor.run.completion import check_all
from midwatch_supervisor.workspaces.changes import (
    changed_names,
    changes,
    list_files,
    match_names,
    take_over_files,
)
from midwatch_supervisor.workspaces.merge import merge_branch, plan_merge
from midwatch_supervisor.workspaces.placement import WorkspacePlan, make_workspace
from midwatch_supervisor.workspaces.snapshot import SnapshotMark, files_of, take_snapshot
from midwatch_supervisor.workspaces.task_workspace import uncommitted
from midwatch_supervisor.workspaces.workspace import Workspace, commit_work, prepare
from midwatch_supervisor.workspaces.workspace_files import entries_below
from midwatch_tests.merging import git as outside_git
from midwatch_tests.repository import new_repository
from midwatch_tools.git import git


def _repository(folder: Path) -> Path:
    return new_repository(folder, {"file": "one\n"})


def _program(folder: Path, mark: Path) -> str:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    program.chmod(0o755)
    return str(program)


async def _workspace(folder: Path) -> Workspace:
    source = _repository(folder / "source")
    workspace = folder / "home" / "work" / "r1" / "task-1"
    return await prepare(workspace, source, branch="midwatch/r1/task-1", merges=())


async def test_a_plain_folder_made_a_repository_is_copied_for_the_next_task(tmp_path: Path) -> None:
    mark, source, worked = tmp_path / "ran", tmp_path / "plain", tmp_path / "work" / "r1" / "a-1"
    source.mkdir()
    _repository(worked)
    # A lost object is fetched from where the configuration says, by the program that it names.
    blob = outside_git(worked, "rev-parse", "HEAD:file")
    for setting in (
        *("core.repositoryformatversion=1", "extensions.partialClone=o", "remote.o.promisor=true"),
        *(f"remote.o.url={worked}/none", f"remote.o.uploadpack={_program(worked, mark)}"),
    ):
        outside_git(worked, "config", *setting.split("=", 1))
    (worked / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    workspace = await make_workspace(
        WorkspacePlan(source=source, copied=worked), worked.with_name("b-1")
    )

    assert not mark.exists()
    assert workspace.worktree is None
    assert (workspace.folder / "file").read_text() == "one\n"


async def test_filters_of_a_nested_repository_do_not_run_when_kept_again(tmp_path: Path) -> None:
    mark, workspace = tmp_path / "ran", await _workspace(tmp_path)
    nested = workspace.folder / "nested"
    _repository(nested)
    await commit_work(workspace, "first")
    outside_git(nested, "config", "filter.own.clean", _program(nested, mark))
    (nested / ".gitattributes").write_text("* filter=own\n")
    (nested / "file").write_text("two\n")
    (workspace.folder / "more").write_text("more\n")

    await commit_work(workspace, "second")
    (nested / "file").write_text("six\n")
    taken = await take_snapshot(
        await files_of(workspace, tmp_path / "private"), SnapshotMark(of="it")
    )

    assert not mark.exists()
    assert not taken.fault
    assert "more" in (await git(workspace.at, "show", "--name-only", "--format=", "HEAD")).split()


async def test_the_files_of_a_nested_repository_are_kept_as_any_others_are(tmp_path: Path) -> None:
    workspace = await _workspace(tmp_path)
    folder = workspace.folder
    for name in ("app", "app/deep/er", "gone"):
        _repository(folder / name)
    (folder / "app" / ".gitignore").write_text("*.log\n")
    (folder / "app" / "run.log").write_text("long\n")
    for name in ("begun", "empty"):  # no commit in either
        (folder / name).mkdir()
        outside_git(folder / name, "init", "--quiet")
    (folder / "begun" / "placeholder").write_text("mine\n")
    wanted = ["app/.gitignore", "app/deep/er/file", "app/file", "begun/placeholder", "gone/file"]
    assert list(await changed_names(workspace.at)) == wanted
    assert "+mine\n" in (await changes(workspace) or "")
    assert await list_files(workspace) == "\n".join(sorted([*wanted, "file"]))

    await commit_work(workspace, "first")
    (folder / "app" / "file").write_text("two\n")
    outside_git(folder / "app", "commit", "--quiet", "--all", "--message", "two")
    shutil.rmtree(folder / "gone")
    await commit_work(workspace, "second")

    assert list(await changed_names(workspace.at)) == wanted[:-1]
    assert not await uncommitted(workspace)
    source = tmp_path / "source"
    await merge_branch(await plan_merge(workspace, source))
    assert (source / "app" / "file").read_text() == "two\n"
    assert (source / "app" / "deep" / "er" / "file").read_text() == "one\n"
    assert (source / "begun" / "placeholder").read_text() == "mine\n"
    assert not (source / "empty").exists()


async def test_the_files_of_a_repository_committed_as_one_are_kept(tmp_path: Path) -> None:
    workspace = await _workspace(tmp_path)
    _repository(workspace.folder / "app")
    outside_git(workspace.folder, "add", "app")
    outside_git(workspace.folder, "commit", "--quiet", "--message", "mine")

    await commit_work(workspace, "first")

    assert list(await changed_names(workspace.at)) == ["app/file"]
    assert await git(workspace.at, "show", "HEAD:app/file") == "one\n"


@pytest.mark.parametrize("checked_out", [False, True])
async def test_a_submodule_of_the_owner_stays_one(tmp_path: Path, checked_out: bool) -> None:
    _repository(tmp_path / "lib")
    source = _repository(tmp_path / "source")
    local = ("-c", "protocol.file.allow=always", "submodule")
    outside_git(source, *local, "--quiet", "add", str(tmp_path / "lib"), "lib")
    outside_git(source, "commit", "--quiet", "--message", "lib")
    folder = tmp_path / "home" / "work" / "r1" / "task-1"
    workspace = await prepare(folder, source, branch="midwatch/r1/task-1", merges=())
    if checked_out:
        outside_git(folder, *local, "--quiet", "update", "--init")
        (folder / "lib" / "unsaid").write_text("new\n")
    (folder / "more").write_text("more\n")

    await commit_work(workspace, "first")

    assert await git(workspace.at, "rev-parse", "HEAD:lib") == await git(
        source, "rev-parse", "HEAD:lib"
    )
    assert list(await changed_names(workspace.at)) == ["more"]


async def test_git_that_a_pipe_holds_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    workspace = await _workspace(tmp_path)
    os.mkfifo(workspace.folder / ".gitattributes")
    (workspace.folder / "file").write_text("six\n")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(changes(workspace), 1)

    assert not _commands_about(workspace.folder)


def _commands_about(folder: Path) -> list[bytes]:
    found: list[bytes] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            found.append(each.read_bytes())
    return [each for each in found if str(folder).encode() in each]


_DEEP = 1500


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "worked"
    folder.mkdir()
    (folder / "good").write_text("good\n")
    (folder / "itself").symlink_to("itself")
    os.mkfifo(folder / "pipe")
    at = os.open(folder, os.O_RDONLY)
    for _ in range(_DEEP):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("last", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)
    yield folder
    # pytest removes folders by calls of calls.
    subprocess.run(["rm", "-rf", "--", *map(str, tmp_path.iterdir())], check=True)


async def test_a_hostile_folder_is_copied_for_the_next_task(
    hostile_folder: Path, tmp_path: Path
) -> None:
    made = await prepare(tmp_path / "next", hostile_folder, branch="", merges=(), plain=True)

    names = {each.name for each in entries_below(made.folder)}
    assert names == {"good", "itself", "d", "last"}


async def test_a_hostile_folder_is_listed_and_handed_over(
    hostile_folder: Path, tmp_path: Path
) -> None:
    new = tmp_path / "next"
    new.mkdir()
    names = match_names(["good", "itself", "pipe"], ("**",))

    assert "good" in (await list_files(Workspace(folder=hostile_folder))).splitlines()
    await take_over_files(Workspace(folder=hostile_folder), Workspace(folder=new), names, number=1)

    assert (new / "good").read_text() == "good\n"
    assert not (new / "pipe").exists()


async def test_a_file_of_terabytes_is_not_read_for_a_check(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1 << 40)
    names = ("large", "empty", "folder", "none")
    workspace = place(SandboxPaths(folder=tmp_path), SandboxKind.NONE, network=False, env={})

    found = await check_all([FileCheck(file=name) for name in names], workspace, seconds=5)

    assert [each.detail for each in found] == ["", "it is empty", "it is a folder", "it is missing"]
    assert [each.passed for each in found] == [True, False, False, False]
