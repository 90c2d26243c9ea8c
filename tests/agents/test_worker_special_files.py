"""Folders of any depth, pipes and links to themselves in a plain workspace stop nobody outside."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from midwatch_agents.sandbox import Walls, place
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import FileCheck
from midwatch_supervisor.run.completion import check_all
from midwatch_supervisor.workspaces.changes import EVERYTHING, listing, matching, take_over_files
from midwatch_supervisor.workspaces.workspace import Workspace, prepare
from midwatch_supervisor.workspaces.workspace_files import entries_below

_DEEP = 1500


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[Path]:
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


async def test_a_hostile_folder_is_copied_for_the_next_task(worked: Path, tmp_path: Path) -> None:
    made = await prepare(tmp_path / "next", worked, branch="", merges=(), plain=True)

    names = {each.name for each in entries_below(made.folder)}
    assert names == {"good", "itself", "d", "last"}


async def test_a_hostile_folder_is_listed_and_handed_over(worked: Path, tmp_path: Path) -> None:
    new = tmp_path / "next"
    new.mkdir()
    names = matching(["good", "itself", "pipe"], EVERYTHING)

    assert "good" in (await listing(Workspace(folder=worked))).splitlines()
    await take_over_files(Workspace(folder=worked), Workspace(folder=new), names, number=1)

    assert (new / "good").read_text() == "good\n"
    assert not (new / "pipe").exists()


async def test_a_file_of_terabytes_is_not_read_for_a_check(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1 << 40)
    names = ("large", "empty", "folder", "none")
    workspace = place(SandboxPaths(folder=tmp_path), Walls.NONE, network=False, env={})

    found = await check_all([FileCheck(file=name) for name in names], workspace, seconds=5)

    assert [each.detail for each in found] == ["", "it is empty", "it is a folder", "it is missing"]
    assert [each.passed for each in found] == [True, False, False, False]
