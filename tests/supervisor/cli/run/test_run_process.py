"""`midwatch run` and `midwatch resume` as processes: what they print, and how they can be ended."""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock
from midwatch_monitor.records import Lifecycle, TaskTransition
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.run.conduct import Reporter, conduct_to_end
from midwatch_supervisor.cli.run.options import Output
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.job import Job
from midwatch_supervisor.run.launch import begin_run
from midwatch_tests.command import new_attempt, new_task, write
from midwatch_tests.factories import AT, step
from midwatch_tests.harness import RunHarness

NOTICE = "stopping what is in progress; press Ctrl-C again to leave at once\n"


async def gate(ctx: RunContext[object]) -> str:
    """Wait until there is a file `go` above the workspace; where there is `deaf`, at any cost."""
    workspace = Path(await ctx.workspace.working_dir())
    (workspace / "waits").write_text("here")
    top, nothing = workspace.parents[3], LocalBus().subscribe()
    while not (top / "go").exists():
        try:
            await nothing.wait(0.02)
        except asyncio.CancelledError:
            if not (top / "deaf").exists():
                raise
    return "open"


def script_for(role: Role, key: str) -> Script:
    turns = (Turn(calls=(Call(tool="gate"),)), Turn(say="Done."))
    return Script(phases=(Phase(turns=turns),))


TASKS = """
    models: {worker: "scripted:test_run_process@0", supervisor: none}
    workers: {clerk: {kind: task, tools: ["test_run_process:gate"]}}
    tasks: [{id: fix, goal: Fix it., acceptance: [file: waits]}]
"""


async def test_progress_names_the_day_when_it_changes(
    journal: Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = await new_attempt(journal, await new_task(journal))
    reporter = Reporter(journal, (), Output.PROGRESS, clock=lambda: AT, told=0)
    for days in (0, 1, 1):
        await write(journal, attempt, AT + timedelta(days=days), step(1))
    await reporter.catch_up()
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    day = (AT + timedelta(days=1)).astimezone()
    assert shown[-4:] == ["fix#1:", f"{day:%a}", "fix#1:", "fix#1:"]


@pytest.fixture
def folder(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIDWATCH_RUN__GRACE_SECONDS", "60")
    (harness.folder / "tasks.yaml").write_text(TASKS)
    return harness.folder


async def start_run(harness: RunHarness, *words: str) -> Process:
    """A `midwatch run` whose worker waits at the gate."""
    process = await harness.start("run", "tasks.yaml", *words)
    await harness.until(harness.folder.joinpath(".midwatch", "work", "r1", "fix-1", "waits").exists)
    return process


async def wait_for_end(process: Process) -> tuple[int | None, str, str]:
    """The exit code, and what was still said on standard output and standard error."""
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode, (out or b"").decode(), errors.decode()


@pytest.mark.long
async def test_resume_prints_what_is_new_and_not_the_whole_log(
    harness: RunHarness, folder: Path
) -> None:
    first = await start_run(harness, "--headless")
    first.send_signal(signal.SIGINT)
    code, before, errors = await wait_for_end(first)
    assert (code, errors) == (130, NOTICE + "interrupted; `midwatch resume --run 1` continues it\n")
    (folder / "go").touch()
    code, after, errors = await wait_for_end(await harness.start("resume", "--headless"))
    assert (code, errors) == (0, "")
    assert "Run 1: 1 task, journal" in before
    assert "step 1, gate" in after
    told = {line for line in before.splitlines() if line[0].isdigit()}  # with a time
    assert told
    assert told & set(after.splitlines()) == set()


def test_quiet_prints_only_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_RUN__SANDBOX", "auto")
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("test_run_process", __name__))
    (tmp_path / "go").touch()
    assert main(["run", "tasks.yaml", "-q"]) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    assert out.strip().splitlines()[0] == "fix: completed"
    assert out.splitlines()[-1] == "exit code 0: all tasks completed"


def unread() -> int:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


FULL = "the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("opened", "option", "said"),
    [
        (unread, "--headless", ""),
        pytest.param(unread, "--json", "", marks=pytest.mark.matrix),
        (full_disk, "--headless", FULL),
    ],
)
async def test_a_run_goes_on_without_a_reader_and_its_exit_code_says_what_became_of_it(
    harness: RunHarness, folder: Path, opened: Callable[[], int], option: str, said: str
) -> None:
    (folder / "go").touch()
    output = opened()
    try:
        process = await harness.start("run", "tasks.yaml", option, stdout=output)
    finally:
        os.close(output)
    code, _, errors = await wait_for_end(process)
    assert (code, errors) == (0, said)


async def test_a_second_interrupt_leaves_at_once(harness: RunHarness, folder: Path) -> None:
    (folder / "deaf").touch()
    process = await start_run(harness, "--headless")
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    assert (await asyncio.wait_for(process.stderr.readline(), 300)).decode() == NOTICE
    process.send_signal(signal.SIGINT)
    code, _, errors = await wait_for_end(process)
    assert (code, errors) == (130, "")


@pytest.mark.parametrize(
    ("output", "whole"),
    [
        ("--headless", True),
        pytest.param("--headless", False, marks=pytest.mark.matrix),
        pytest.param("--json", True, marks=pytest.mark.matrix),
    ],
)
async def test_a_run_whose_journal_is_deleted_ends_with_one_sentence(
    harness: RunHarness, folder: Path, output: str, *, whole: bool
) -> None:
    process = await start_run(harness, output)
    journal = folder / ".midwatch" / "journal.db"
    if whole:
        with suppress(OSError):  # the process may write there while it goes
            shutil.rmtree(journal.parent)
    journal.unlink(missing_ok=True)
    code, out, errors = await wait_for_end(process)
    assert (code, errors) == (
        1,
        f"the journal {journal} was deleted during this run, which has ended: start it again\n",
    )
    assert "exit code" not in out


@pytest.mark.parametrize(
    ("resumed", "said"),
    [(None, "the run had not begun"), (1, "`midwatch resume --run 1` continues it")],
)
def test_only_a_run_that_has_begun_can_be_resumed_after_an_interruption(
    resumed: int | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def cancel_opening(journal: Journal, clock: Clock) -> NoReturn:
        raise asyncio.CancelledError

    with pytest.raises(KeyboardInterrupt):
        conduct_to_end(
            cancel_opening,
            settings=Settings(),
            journal=str(tmp_path / "journal.db"),
            output=Output.QUIET,
            resumed=resumed,
        )
    assert capsys.readouterr().err.startswith(f"interrupted; {said}")


def test_a_run_that_only_learned_when_it_was_interrupted_is_not_to_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("test_run_process", __name__))
    wanted = assignments(load_tasks(tmp_path / "tasks.yaml"), tmp_path)
    settings = Settings.model_validate({"run": {"sandbox": "off"}})

    async def open_and_cancel(
        journal: Journal, clock: Clock
    ) -> tuple[RunResources, tuple[Job, ...]]:
        resources, (job,) = await begin_run(
            journal, wanted, source="", settings=settings, home=tmp_path, learning=RunLearning
        )
        job.state = TaskTransition(lifecycle=Lifecycle.FAILED)
        main = asyncio.current_task()
        assert main is not None
        main.cancel()
        return resources, (job,)

    with pytest.raises(KeyboardInterrupt):
        conduct_to_end(
            open_and_cancel,
            settings=settings,
            journal=str(tmp_path / "journal.db"),
            output=Output.QUIET,
        )
    assert capsys.readouterr().err == "interrupted; the run's tasks were over\n"
