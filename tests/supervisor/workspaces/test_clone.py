"""A node's own clones of repositories, and the commits that tasks start from."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UnreachableError, WorkspaceError
from midwatch_supervisor.fleet.queue.submission import pin_commits
from midwatch_supervisor.present.assignment import Assignment, assignments
from midwatch_supervisor.workspaces.clone import clone_of, origin_of
from midwatch_supervisor.workspaces.workspace import WorkspacePlan, free_label, git
from midwatch_tests.repository import commit_all, new_repository
from midwatch_tools.git import is_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "shop", {"a.txt": "one"})


async def commit(folder: Path, text: str) -> str:
    (folder / "a.txt").write_text(text)
    await commit_all(folder, text)
    return await head(folder)


async def head(folder: Path) -> str:
    return (await git(folder, "rev-parse", "HEAD")).strip()


def task(folder: Path, workspace: str) -> Assignment:
    raw = {"id": "fix", "goal": "x", "acceptance": ["true"], "workspace": workspace}
    (found,) = assignments(TaskFile.model_validate({"tasks": [raw]}), folder)
    return found


class FlakyHandler(SimpleHTTPRequestHandler):
    """Serves a folder; of the first requests some are refused."""

    refused: list[int]
    """The codes that the next requests get."""

    def do_GET(self) -> None:
        if self.refused:
            self.send_error(self.refused.pop(0))
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    FlakyHandler.refused = []
    handler = partial(FlakyHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


async def served_task(repository: Path, tmp_path: Path, server: ThreadingHTTPServer) -> Assignment:
    await git(repository, "update-server-info")
    url = f"http://127.0.0.1:{server.server_address[1]}/{repository.name}/.git"
    return task(tmp_path, url).model_copy(update={"base": await head(repository)})


async def test_a_clone_that_fails_for_a_passing_reason_is_tried_again(
    repository: Path, tmp_path: Path, server: ThreadingHTTPServer
) -> None:
    wanted = await served_task(repository, tmp_path, server)
    FlakyHandler.refused = [503, 502]
    found = await origin_of(wanted, tmp_path / "home", fleet=True)
    assert FlakyHandler.refused == []
    assert found.source is not None
    assert is_repository(found.source)


async def test_a_clone_that_is_refused_for_good_is_not(
    repository: Path, tmp_path: Path, server: ThreadingHTTPServer
) -> None:
    wanted = await served_task(repository, tmp_path, server)
    FlakyHandler.refused = [403, 418]
    with pytest.raises(UnreachableError, match="403"):
        await origin_of(wanted, tmp_path / "home", fleet=True)
    assert FlakyHandler.refused == [418]


async def test_a_clone_is_called_like_its_repository(tmp_path: Path) -> None:
    names = [
        clone_of(source, tmp_path).name.rpartition("-")[0]
        for source in ("/a/shop", "git@host:team/shop.git", "https://host/shop/", "host:", "/ä b")
    ]
    assert names == ["shop", "shop", "shop", "repository", "-b"]
    assert clone_of("/a/shop", tmp_path) != clone_of("/b/shop", tmp_path)


async def test_a_workspace_on_this_machine_is_used_as_it_is_outside_of_a_fleet_or_without_git(
    repository: Path, tmp_path: Path
) -> None:
    found = await origin_of(task(tmp_path, "shop"), tmp_path / "home", fleet=False)
    assert found == WorkspacePlan(source=repository)
    (tmp_path / "folder").mkdir()
    (plain,) = await pin_commits([task(tmp_path, "folder")])
    found = await origin_of(plain, tmp_path / "home", fleet=True)
    assert found == WorkspacePlan(source=tmp_path / "folder")
    assert not (tmp_path / "home").exists()


async def test_a_fleet_starts_from_the_commit_that_was_pinned(
    repository: Path, tmp_path: Path
) -> None:
    (wanted,) = await pin_commits([task(tmp_path, "shop")])
    base = wanted.base
    later = await commit(repository, "two")
    clone = clone_of(str(repository), tmp_path / "home")
    assert await origin_of(wanted, tmp_path / "home", fleet=True) == WorkspacePlan(
        source=clone, base=base
    )
    newer = wanted.model_copy(update={"base": later})
    await origin_of(newer, tmp_path / "home", fleet=True)
    assert (await git(clone, "cat-file", "-t", later)).strip() == "commit"


async def test_a_commit_that_no_branch_leads_to_is_fetched_by_its_name(
    repository: Path, tmp_path: Path
) -> None:
    await origin_of((await pin_commits([task(tmp_path, "shop")]))[0], tmp_path, fleet=True)
    await git(repository, "checkout", "--quiet", "--detach")
    await commit(repository, "nowhere")
    (wanted,) = await pin_commits([task(tmp_path, "shop")])
    found = await origin_of(wanted, tmp_path, fleet=True)
    assert found.source is not None
    assert (await git(found.source, "cat-file", "-t", wanted.base)).strip() == "commit"


async def test_a_commit_that_is_there_needs_no_origin(repository: Path, tmp_path: Path) -> None:
    (wanted,) = await pin_commits([task(tmp_path, "shop")])
    before = await origin_of(wanted, tmp_path, fleet=True)
    await asyncio.to_thread(repository.rename, tmp_path / "moved")
    assert await origin_of(wanted, tmp_path, fleet=True) == before


async def test_a_commit_that_nobody_has_is_told(repository: Path, tmp_path: Path) -> None:
    wanted = task(tmp_path, "shop").model_copy(update={"base": "1" * 40})
    with pytest.raises(WorkspaceError, match="has no commit 111111111111 and cannot fetch it"):
        await origin_of(wanted, tmp_path, fleet=True)


async def test_many_attempts_make_one_clone_though_a_killed_process_left_half_of_it(
    repository: Path, tmp_path: Path
) -> None:
    clone = clone_of(str(repository), tmp_path)
    (clone.with_name(f"{clone.name}.part") / ".git").mkdir(parents=True)
    (wanted,) = await pin_commits([task(tmp_path, "shop")])
    found = await asyncio.gather(*(origin_of(wanted, tmp_path, fleet=True) for _ in range(8)))
    assert {*found} == {WorkspacePlan(source=clone, base=wanted.base)}
    assert is_repository(clone)
    assert await free_label(1, tmp_path, []) == "r1"
    await git(clone, "branch", "midwatch/r1/fix-1", wanted.base)
    assert await free_label(1, tmp_path, []) == "r1.2"


async def test_a_url_is_cloned_without_a_fleet_too_and_follows_its_head(
    repository: Path, tmp_path: Path
) -> None:
    wanted = task(tmp_path, f"file://{repository}")
    assert (wanted.workspace, wanted.origin, wanted.bare) == (None, f"file://{repository}", False)
    for text in ("two", "three"):
        newest = await commit(repository, text)
        found = await origin_of(wanted, tmp_path / "home", fleet=False)
        assert found == WorkspacePlan(
            source=clone_of(wanted.origin, tmp_path / "home"), base=newest
        )
    (fixed,) = await pin_commits([wanted])
    assert fixed.base == newest


async def test_a_repository_that_does_not_answer_is_told_on_one_line_without_who_logs_in(
    tmp_path: Path,
) -> None:
    url = "ssh://ada@localhost:1/shop.git"
    with pytest.raises(WorkspaceError, match="git ls-remote: ") as caught:
        await pin_commits([task(tmp_path, url)])
    assert "ada@" not in str(caught.value)
    assert "\n" not in str(caught.value)
