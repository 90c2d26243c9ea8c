"""A run that goes on: after an interruption, beside another process, over damaged rows, on a full
disk, without its workspace, or beside work that its journal does not know.
"""

import asyncio
import os
import shutil
import signal
import sqlite3
from asyncio.subprocess import Process
from contextlib import closing
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalCorruptError, JournalFullError, JournalTooNewError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access, Synchronous, connect
from midwatch_monitor.journal.fleet.run_lock import forget_lock
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Ending,
    Lifecycle,
    Step,
    TaskTransition,
)
from midwatch_supervisor.workspaces.workspace import git
from midwatch_tests.acting import DONE, REPORT, gate, script, task_file
from midwatch_tests.factories import call, turn
from midwatch_tests.factories import ended as failed_transition
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository
from midwatch_tools.git import is_repository


async def read_all() -> str:
    """Answer more than there is space for."""
    return os.urandom(1_000_000).hex()


async def work(ctx: RunContext[object]) -> str:
    """Leave a file that says in which workspace, and wait until the gate is open."""
    folder = Path(await ctx.workspace.working_dir())
    with (folder / "work.txt").open("a") as file:
        file.write(f"{folder.name}\n")
    nothing = LocalBus().subscribe()
    while not (folder.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "done"


ACTS = {"wait": call("gate", leaves="waits"), "fill": call("read_all"), "fix": call("work")}


def script_for(role: Role, key: str) -> Script:
    return script(turn(ACTS[key]), DONE, again=(turn(REPORT, ACTS[key]), DONE))


def tasks(
    name: str = "wait",
    check: str = "file: waits",
    *,
    workspace: str = "null",
    module: str = __name__,
) -> str:
    """A task of two attempts at the most."""
    task = f"id: {name}, goal: Fix it., acceptance: [{check}], max_attempts: 2"
    tools = (gate, read_all, work)
    text = task_file(module, f"{task}, workspace: {workspace}", tools=tools)
    return text.replace(__name__, module)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"old.txt": "old"})


async def start_run(harness: RunHarness) -> Process:
    """A `midwatch run` whose worker waits at the gate."""
    (harness.folder / "tasks.yaml").write_text(tasks(module="test_runner_takeover"))
    process = await harness.start("run", "tasks.yaml", "--headless")
    await harness.until((harness.folder / ".midwatch" / "work" / "r1" / "wait-1" / "waits").exists)
    return process


async def resume_run(harness: RunHarness) -> Process:
    return await harness.start("resume", "--headless")


async def wait_for_end(process: Process) -> tuple[int | None, str]:
    """The exit code, and what was said on standard error."""
    _, errors = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode, errors.decode()


async def prove_one_whole_attempt(harness: RunHarness) -> None:
    """Nothing was lost, and nothing is there twice."""
    assert len(await harness.journal.attempts(1)) == 1
    steps = await harness.told(Step)
    assert [(step.number, step.request) for step in steps] == [(1, 1), (2, 2)]
    assert [each.lifecycle for each in await harness.told(TaskTransition)] == [
        Lifecycle.SUBMITTED,
        Lifecycle.WORKING,
        Lifecycle.COMPLETED,
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "sign", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.matrix)]
)
async def test_an_interrupted_run_goes_on(sign: signal.Signals, harness: RunHarness) -> None:
    process = await start_run(harness)
    process.send_signal(sign)
    code, errors = await wait_for_end(process)
    assert code == 130
    assert errors.endswith("interrupted; `midwatch resume --run 1` continues it\n")
    assert "Traceback" not in errors
    assert (await harness.last(AttemptTransition)).lifecycle is Lifecycle.WORKING
    harness.open_gate()
    assert await wait_for_end(await resume_run(harness)) == (0, "")
    await prove_one_whole_attempt(harness)


@pytest.mark.matrix
async def test_of_two_processes_with_one_run_the_newer_does_not_begin(harness: RunHarness) -> None:
    older = await start_run(harness)
    code, errors = await wait_for_end(await resume_run(harness))
    assert (code, errors.partition(":")[0]) == (2, "another process is working on run 1")
    harness.open_gate()
    assert await wait_for_end(older) == (0, "")
    await prove_one_whole_attempt(harness)


@pytest.mark.matrix
async def test_where_no_lock_is_seen_the_older_process_is_refused(harness: RunHarness) -> None:
    older = await start_run(harness)
    # As on another machine, over a database.
    await forget_lock(harness.journal, 1)
    newer = await resume_run(harness)
    code, errors = await wait_for_end(older)
    assert code == 1
    assert "another process has taken it over" in errors
    assert "Traceback" not in errors
    harness.open_gate()
    assert await wait_for_end(newer) == (0, "")
    await prove_one_whole_attempt(harness)


async def interrupt_run(harness: RunHarness, tasks: str, file: str = "wait-1/waits") -> Path:
    """The workspace of a run's one attempt, which was at work when the run was left."""
    run = asyncio.create_task(harness.run(tasks))
    left = harness.home / "work/r1" / file
    await harness.until(left.exists)
    run.cancel()
    await asyncio.wait({run})
    harness.open_gate()
    return left.parent


@pytest.mark.parametrize("workspace", ["null", "project"])
async def test_an_attempt_whose_workspace_is_gone_ends_with_that_reason(
    workspace: str, harness: RunHarness, project: Path
) -> None:
    folder = await interrupt_run(harness, tasks(workspace=workspace))
    shutil.rmtree(folder)
    assert await harness.resume() == 1
    reason = f"the workspace {folder} is gone with the work in it"
    assert await harness.last(AttemptTransition) == failed_transition(Ending.ERROR, reason=reason)
    assert (await harness.last(TaskTransition)).reason == reason


async def test_what_was_half_made_is_made_anew(harness: RunHarness, project: Path) -> None:
    async def is_submitted() -> bool:
        return bool(await harness.told(AttemptTransition))

    run = asyncio.create_task(harness.run(tasks(workspace="project")))
    await harness.until(is_submitted)
    run.cancel()
    await asyncio.wait({run})
    assert (await harness.last(AttemptTransition)).lifecycle is Lifecycle.SUBMITTED
    harness.open_gate()
    assert await harness.resume() == 0
    await prove_one_whole_attempt(harness)
    assert is_repository(harness.home / "work/r1/wait-1")


def break_rows(harness: RunHarness, statement: str) -> None:
    with closing(sqlite3.connect(harness.journal.name)) as connection, connection:
        assert connection.execute(statement).rowcount


DAMAGED = "cannot be read: a history in the journal is damaged: "


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE message SET body = x'0000' WHERE idx = 0", f"message 0 of attempt 1 {DAMAGED}"),
        (
            "UPDATE message SET body = (SELECT x'789c030000000001') WHERE idx = 0",
            "its history is not valid (1 error)",
        ),
        (
            "INSERT INTO result (attempt, call, body) VALUES (1, 'c', x'0000')",
            f"result c of attempt 1 {DAMAGED}",
        ),
    ],
)
async def test_an_attempt_whose_history_is_broken_fails_and_says_which_row_it_is(
    harness: RunHarness, statement: str, why: str
) -> None:
    await interrupt_run(harness, tasks())
    break_rows(harness, statement)
    assert await harness.resume() == 1
    last = await harness.last(AttemptTransition, attempt=1)
    assert (last.lifecycle, last.ending) == (Lifecycle.FAILED, Ending.ERROR)
    assert last.reason.startswith(f"the attempt cannot be resumed: {why}")


async def test_an_attempt_with_entries_that_cannot_be_read_goes_on(harness: RunHarness) -> None:
    await interrupt_run(harness, tasks())
    kinds = "('step', 'change', 'attempt_state', 'alert')"
    break_rows(harness, f"UPDATE entry SET body = '{{' WHERE kind IN {kinds}")
    assert await harness.resume() == 0


async def test_a_run_whose_task_or_settings_cannot_be_read_says_so(harness: RunHarness) -> None:
    await interrupt_run(harness, tasks())
    break_rows(harness, "UPDATE task SET spec = 'my secret'")
    with pytest.raises(JournalCorruptError, match=r"^cannot read what task 1 \('wait'\) of run 1"):
        await harness.resume()
    break_rows(harness, "UPDATE run SET settings = 'my secret'")
    with pytest.raises(JournalTooNewError, match=r"^cannot read the settings of run 1$"):
        await harness.resume()


async def test_a_full_disk_ends_the_run_and_not_the_attempt(
    journal_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(journal_file, Access.CREATE, Synchronous.NORMAL)
    schema.prepare(store)
    assert store.writing is not None
    with store.writing.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=160")
    modules = Path(__file__).parent
    async with Journal(store) as journal:
        with pytest.raises(JournalFullError, match="no space left"):
            await RunHarness(journal, tmp_path, modules).run(tasks("fill", "'true'"))
    assert "Traceback" not in caplog.text
    async with await Journal.open(journal_file) as journal:
        assert await RunHarness(journal, tmp_path, modules).resume() == 0


NOT_AT_FIRST = '"grep -v fix-1 work.txt"'
"""Accepts no first attempt, and every later one."""


async def begin_run(harness: RunHarness, workspace: str) -> "asyncio.Task[int]":
    """A run whose first attempt is at work."""
    text = tasks("fix", NOT_AT_FIRST, workspace=workspace)
    run = asyncio.create_task(harness.run(text))
    await harness.until((harness.home / "work/r1/fix-1/work.txt").exists)
    return run


async def test_after_a_journal_was_restored_nothing_is_lost_and_nothing_fails(
    harness: RunHarness, journal_file: Path, project: Path
) -> None:
    run = await begin_run(harness, "project")
    backup = journal_file.with_name("backup.db")
    with closing(sqlite3.connect(journal_file)) as one, closing(sqlite3.connect(backup)) as other:
        one.backup(other)
    harness.open_gate()
    assert await run == 0
    work = harness.home / "work/r1"
    async with await Journal.open(backup) as harness.journal:
        assert await harness.resume() == 0
    assert (work / "fix-2/work.txt").read_text() == "fix-2\n"
    assert (work / "fix-2.aside-1/work.txt").read_text() == "fix-2\n"
    # The attempt that the backup knows has found its worktree, and has called its tool again.
    assert (work / "fix-1/work.txt").read_text() == "fix-1\nfix-1\n"
    assert await git(project, "show", "midwatch/r1/fix-2.aside-1:work.txt") == "fix-2\n"
    assert sorted(each.name for each in work.iterdir()) == ["fix-1", "fix-2", "fix-2.aside-1"]


@pytest.mark.parametrize("workspace", ["project", "copy"])
async def test_a_ground_that_was_made_before_its_attempt_was_stored_is_no_hindrance(
    workspace: str, harness: RunHarness, project: Path
) -> None:
    shutil.copytree(project, harness.folder / "copy", ignore=shutil.ignore_patterns(".git"))
    run = await begin_run(harness, workspace)
    left = harness.home / "work/r1/fix-2"
    if workspace == "project":
        await git(project, "worktree", "add", "-q", "-b", "midwatch/r1/fix-2", str(left))
    else:
        left.mkdir()
    (left / "unknown.txt").write_text("kept")
    harness.open_gate()
    assert await run == 0
    assert not (left / "unknown.txt").exists()
    assert left.with_name("fix-2.aside-1").joinpath("unknown.txt").read_text() == "kept"


async def test_work_that_no_journal_knows_is_kept(harness: RunHarness, project: Path) -> None:
    text = tasks("fix", NOT_AT_FIRST, workspace="project")
    await interrupt_run(harness, text, "fix-1/work.txt")
    known = await add_submitted_run(harness)
    assert await harness.resume() == 0
    aside = Path(known.workspace).with_name("fix-1.aside-1")
    assert (aside / "work.txt").read_text() == "fix-1\n"


async def add_submitted_run(harness: RunHarness) -> Attempt:
    """A second run as the journal had it before its attempt began, in the place of the first."""
    journal, (task,) = harness.journal, await harness.journal.tasks(1)
    first = (await journal.attempts(task.id))[0]
    settings, at = (await journal.run(1)).settings, first.started_at
    run = await journal.add_run(source="tasks.yaml", settings=settings, at=at)
    named = {"name": task.name, "title": task.title, "spec": task.spec}
    again = await journal.add_task(run=run.id, at=at, **named)
    whose = {"worker": first.worker, "model": first.model, "node": first.node}
    return await journal.add_attempt(
        task=again.id, number=1, at=at, workspace=first.workspace, **whose
    )
