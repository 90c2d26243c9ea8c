"""Attempts whose node is killed, and that another node goes on with."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Delivery, DeliveryState, Intervention, Snapshot, Step
from midwatch_supervisor.cli import main
from midwatch_tests.harness import RunHarness
from midwatch_tests.matrix import matrix
from midwatch_tests.merging import git
from midwatch_tests.repository import new_repository
from midwatch_tests.watched import uncoded

DRIVER = Path(__file__).with_name("moved_driver.py")
KILLED = -signal.SIGKILL


class RunNode(Protocol):
    """Runs a node, and answers its exit code."""

    def __call__(self, folder: Path, name: str, seconds: float = 0, push: str = "no", /) -> int: ...


def prepare(folder: Path, *names: str, workspace: str = "shop") -> None:
    """A repository `shop`, and a file of tasks, each of which depends on the one before."""
    new_repository(folder / "shop", {"a.txt": "one\n"})
    tasks = [
        f"  - {{id: {name}, goal: Do it., acceptance: [test -s {name}-2.txt],"
        f" workspace: {workspace}, depends_on: [{', '.join(names[max(at - 1, 0) : at])}]}}\n"
        for at, name in enumerate(names)
    ]
    (folder / "tasks.yaml").write_text(
        'models: {worker: "scripted:moved_driver@0", supervisor: none}\n'
        'workers: {clerk: {kind: task, tools: ["moved_driver:put", "moved_driver:die"]}}\n'
        f"tasks:\n{''.join(tasks)}"
    )


@pytest.fixture(scope="module")
def run_node() -> Iterator[RunNode]:
    """Runs a node until the run is over, or until it is killed: `run_node(folder, "a")`."""
    with subprocess.Popen(
        [sys.executable, str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        said, heard = driver.stdin, driver.stdout

        def answer(folder: Path, name: str, seconds: float = 0, push: str = "no") -> int:
            print(folder, name, seconds, push, file=said, flush=True)
            return int(heard.readline())

        yield answer


async def read_records(folder: Path, kind: type) -> list[object]:
    async with await Journal.open_to_read(folder / "journal.db") as journal:
        return [each.record for each in await journal.entries(kinds=(kind,))]


async def read_guidance(folder: Path, attempt: int = 1) -> list[str]:
    """What the worker was told by an intervention, as its history has it."""
    async with await Journal.open_to_read(folder / "journal.db") as journal:
        messages = await journal.messages(attempt)
    texts = [
        uncoded(str(part.content))
        for each in messages
        for message in ModelMessagesTypeAdapter.validate_json(each.body)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    return [text for text in texts if text.startswith("[midwatch #")]


def work_folder(folder: Path, name: str, task: str = "fix") -> Path:
    return folder / f"home-{name}" / "work" / "r1" / f"{task}-1"


async def test_another_node_goes_on_with_the_files_of_a_killed_one(
    run_node: RunNode, tmp_path: Path
) -> None:
    prepare(tmp_path, "fix")
    (tmp_path / "die-a").touch()
    assert run_node(tmp_path, "a") == KILLED
    assert run_node(tmp_path, "b") == 0
    names = {path.name for path in work_folder(tmp_path, "b").glob("*.txt")}
    assert names == {"a.txt", "fix-1.txt", "fix-2.txt"}
    assert (tmp_path / "acts.log").read_text().split() == ["fix-1.txt", "fix-2.txt"]
    assert await read_guidance(tmp_path) == []
    assert len(await read_records(tmp_path, Step)) == 4


@pytest.mark.parametrize("workspace", matrix("shop", "null", "folder"))
async def test_what_was_done_after_the_last_save_is_told_once(
    workspace: str, run_node: RunNode, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    prepare(tmp_path, "fix", workspace=workspace)
    for name in "ab":
        (tmp_path / f"die-{name}").touch()
    # The second time `b` has it last, and goes on with the files as they are.
    assert [run_node(tmp_path, name, 3600) for name in "abb"] == [KILLED] * 3
    # The work is gone with `a`, and a worker that does not listen fails its check.
    assert run_node(tmp_path, "c", 3600) == 1
    said = (
        "This attempt continues on another machine. Its files are as they were at the beginning; "
        "steps 1 to 2 changed: fix-1.txt, fix-2.txt; look before you rely on them."
    )
    async with await Journal.open_to_read(tmp_path / "journal.db") as journal:
        (issued,) = await journal.entries(kinds=(Intervention,))
    assert await read_guidance(tmp_path) == [f"[midwatch #{issued.id} from your policy] {said}"]
    (stamp,) = await read_records(tmp_path, Delivery)
    assert isinstance(stamp, Delivery)
    assert stamp.state is DeliveryState.DELIVERED


@pytest.mark.matrix
async def test_a_task_builds_on_what_another_node_finished_and_is_merged_from_the_journal(
    run_node: RunNode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare(tmp_path, "make", "use")
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(tmp_path / "journal.db"))
    (tmp_path / "die-b").touch()
    assert run_node(tmp_path, "b") == KILLED
    assert run_node(tmp_path, "c") == 0
    made = {path.name for path in work_folder(tmp_path, "c", "use").glob("*.txt")}
    assert made == {"a.txt", "make-1.txt", "make-2.txt", "use-1.txt", "use-2.txt"}
    for name in "bc":
        (tmp_path / f"home-{name}").rename(tmp_path / f"gone-{name}")
    shop = tmp_path / "shop"
    before = git(shop, "for-each-ref")
    assert await asyncio.to_thread(main, ["merge", "use", "--dry-run"]) == 0
    assert git(shop, "for-each-ref") == before
    assert await asyncio.to_thread(main, ["merge", "use"]) == 0
    branch = "midwatch/r1/use-1"
    files = [f"+1 -0  {name}" for name in ("make-1.txt", "make-2.txt", "use-1.txt", "use-2.txt")]
    what = f"{branch} into main (4 files, +4 -0; 2 commits) in {shop}"
    assert capsys.readouterr().out.splitlines() == [
        *(*files, f"would merge {what}"),
        *(*files, f"merged {what}"),
    ]
    assert {path.name for path in shop.glob("*.txt")} == made
    assert git(shop, "rev-parse", "refs/midwatch/merged/r1/use-1^1")


@pytest.mark.matrix
async def test_work_is_pushed_where_that_is_wanted(run_node: RunNode, tmp_path: Path) -> None:
    prepare(tmp_path, "fix")
    (tmp_path / "die-a").touch()
    assert run_node(tmp_path, "a", 0, "push") == KILLED
    assert run_node(tmp_path, "b", 0, "push") == 0
    snapshots = [
        each for each in await read_records(tmp_path, Snapshot) if isinstance(each, Snapshot)
    ]
    assert {(each.branch, each.size) for each in snapshots} == {("midwatch/r1/fix-1", 0)}
    tip = git(tmp_path / "shop", "rev-parse", "midwatch/r1/fix-1")
    assert snapshots[-1].commit == tip
    assert git(tmp_path / "shop", "show", f"{tip}:fix-2.txt") == "fix 2"


@pytest.mark.matrix
async def test_a_url_is_cloned_and_merged_into_the_clone_of_a_person(
    run_node: RunNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, "fix", workspace=f"file://{tmp_path}/shop")
    (tmp_path / "die-a").touch()
    assert run_node(tmp_path, "a") == KILLED
    assert run_node(tmp_path, "b") == 0
    git(tmp_path, "clone", "--quiet", "shop", "mine")
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(tmp_path / "journal.db"))
    assert await asyncio.to_thread(main, ["merge", "fix"]) == 0
    assert (tmp_path / "mine" / "fix-2.txt").read_text() == "fix 2"


@pytest.mark.matrix
async def test_a_run_in_one_process_clones_a_url_too(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch, journal_file: Path
) -> None:
    prepare(harness.folder, "make", "use", workspace=f"file://{harness.folder}/shop")
    process = await harness.start("run", "tasks.yaml", "--headless")
    said = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, said
    assert await harness.told(Snapshot) == []
    git(harness.folder, "clone", "--quiet", "shop", "mine")
    monkeypatch.chdir(harness.folder / "mine")
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    before = git(harness.folder / "mine", "for-each-ref")
    assert await asyncio.to_thread(main, ["merge", "use", "--dry-run"]) == 0
    assert git(harness.folder / "mine", "for-each-ref") == before
    assert await asyncio.to_thread(main, ["merge", "use"]) == 0
    names = {path.name for path in (harness.folder / "mine").glob("*-*.txt")}
    assert names == {"make-1.txt", "make-2.txt", "use-1.txt", "use-2.txt"}
