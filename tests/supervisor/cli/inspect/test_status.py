"""`midwatch status` over a real journal."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic_ai import Agent

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_tests import factories as make
from midwatch_tests.command import MIDWATCH, ask, new_attempt, new_task, read, refused, refused_now
from midwatch_tests.command import write as write_records
from midwatch_tests.worker import scripted
from midwatch_tools import Watch

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]


async def test_the_plan_step_is_one_of_the_plan_and_the_task_alone_is_none(
    write: Write, capsys: Capture
) -> None:
    await write(make.transition(), make.plan("Fix it"))
    (line,) = await ask(capsys, "status")
    assert (line["plan_step"], line["plan_steps"]) == (None, 0)
    assert (await read(capsys, "status"))[2].split()[4] == "-"


async def test_a_run_of_an_embedded_agent_that_looped_to_its_end_is_not_told_as_ok(
    journal: Journal, journal_file: Path, capsys: Capture
) -> None:
    turns = [[("look", {"at": "the same"})] for _ in range(13)]
    agent = Agent(scripted(*turns))

    @agent.tool_plain
    def look(at: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return at

    await agent.run("Mend it.", capabilities=[Watch(journal=str(journal_file))])
    line = (await ask(capsys, "status"))[-1]
    assert (line["lifecycle"], line["health"]) == ("completed", "stuck")
    assert line["alerts"] == 4


async def test_an_agent_that_belongs_to_no_fleet_has_no_column_for_its_node(
    journal: Journal, capsys: Capture
) -> None:
    task = await new_task(journal, supervised_by=r.SupervisedBy.MONITOR)
    await new_attempt(journal, task)
    assert "node" not in (await read(capsys, "status"))[1].split()


QUESTION = f"Which {'very ' * 20}one?"
CAME, PARKED = make.delivery(4, step=1), make.change(lifecycle=r.Lifecycle.INPUT_REQUIRED)
"""What is said first of an attempt at work is entry 4."""


@pytest.mark.parametrize(
    ("records", "waits_for", "cell"),
    [
        ((make.intervention(),), "delivery of nudge (4)", "delivery of nudge (4)"),
        ((make.intervention(), CAME), None, "-"),
        (
            (make.intervention(r.Action.ASK_OPERATOR, message=QUESTION), CAME, PARKED),
            f"an answer: {QUESTION}",
            '`midwatch tell fix --run 1 "your answer"`: an answer: Which very',
        ),
        (
            (r.PermissionRequest(tool="shell", what=QUESTION), PARKED),
            f"permission to {QUESTION}",
            "`midwatch approve 4` or `midwatch reject 4`: permission to Which",
        ),
        (
            (make.intervention(r.Action.RESTART, needs_approval=True),),
            "approval of restart: `midwatch approve 4` or `midwatch reject 4`",
            "`midwatch approve 4` or `midwatch reject 4`: approval of restart",
        ),
        ((r.BudgetRequest(wanted=r.Grant(requests=5), reason="more"),), None, "-"),
    ],
)
async def test_what_it_waits_for_is_said_and_the_command_that_answers_before_what_is_cut_off(
    write: Write, capsys: Capture, records: tuple[r.Record, ...], waits_for: str | None, cell: str
) -> None:
    await write(make.transition(), *records)
    (line,) = await ask(capsys, "status")
    assert (line["waits_for"] or "").startswith(waits_for or "")
    assert (line["waits_for"] is None) is (waits_for is None)
    assert cell in (await read(capsys, "status"))[2]
    shown = await read(capsys, "show", "fix")
    for each in line["commands"]:
        assert each in cell
        assert any(each in text for text in shown[2:4])


async def test_a_task_waits_for_its_turn_or_for_a_decision_and_what_is_over_for_nothing(
    journal: Journal, attempt: r.Attempt, at: datetime, write: Write, capsys: Capture
) -> None:
    await new_task(journal, "later", run=1)
    await write(make.transition())
    await journal.open_escalation(
        attempt=1, task=attempt.task, alerts=(make.alert().key,), reason="", at=at
    )
    begun, later = await ask(capsys, "status")
    assert begun["waits_for"] == "a decision"
    assert (later["attempt"], later["health"], later["waits_for"]) == (None, None, "its turn")
    await write(make.intervention(), make.ended(), make.task_transition(r.Lifecycle.COMPLETED))
    over, _ = await ask(capsys, "status")
    assert (over["status"], over["waits_for"]) == ("completed", None)


async def test_a_task_that_is_completed_with_reservations_says_so(
    write: Write, capsys: Capture
) -> None:
    done = r.Completion(
        plan_step=0, goal="g", confidence=70, accepted=True, flag="still open: b", doubts=("a: x",)
    )
    await write(done, make.ended())
    (before,) = await ask(capsys, "status")
    await write(make.task_transition(r.Lifecycle.COMPLETED))
    (after,) = await ask(capsys, "status")
    assert (before["reservations"], after["reservations"]) == ([], ["still open: b", "a: x"])
    last = (await read(capsys, "status"))[-1]
    assert last == "fix: completed, with reservations: still open: b; a: x"


@pytest.mark.parametrize(("argv", "runs"), [((), [2]), (("--run", "1"), [1]), (("--all",), [1, 2])])
async def test_the_latest_run_is_shown_unless_others_are_asked_for(
    journal: Journal, attempt: r.Attempt, capsys: Capture, argv: tuple[str, ...], runs: list[int]
) -> None:
    await new_task(journal)
    lines = await ask(capsys, "status", *argv)
    assert [line["run"] for line in lines if line["type"] == "status"] == runs
    said = f"there is no run 7 in {journal.name}; known: 2, 1\n"
    assert await refused(capsys, "status", "--run", "7") == said


async def test_an_earlier_run_is_told_below_the_latest_until_it_is_over(
    journal: Journal, capsys: Capture
) -> None:
    now = datetime.now(UTC)
    made = await new_attempt(journal, await new_task(journal, at=now), at=now)
    await write_records(journal, made, now, make.transition(), PARKED)
    await new_task(journal)
    assert (await ask(capsys, "status"))[1:] == [
        {
            "type": "unfinished",
            "run": 1,
            "tasks": [{"task": "fix", "stands": "waits for you"}],
            "stopped": False,
            "command": "midwatch status --run 1",
        }
    ]
    assert (await read(capsys, "status"))[-1] == (
        "run 1 is not over (`midwatch status --run 1`): fix (waits for you)"
    )
    await write_records(journal, made, now, make.task_transition(r.Lifecycle.FAILED))
    assert "is not over" not in "".join(await read(capsys, "status"))


@pytest.mark.parametrize(("age", "told"), [(1, True), (25, False)])
async def test_earlier_runs_of_agents_in_the_last_day_are_counted(
    journal: Journal, capsys: Capture, *, age: int, told: bool
) -> None:
    at = datetime.now(UTC) - timedelta(hours=age)
    looped, failed = make.alert(severity=r.Severity.CRITICAL), r.Lifecycle.FAILED
    for lifecycle, *records in (
        (r.Lifecycle.COMPLETED, looped),
        (failed,),
        (r.Lifecycle.COMPLETED,),
    ):
        made = await new_attempt(journal, await new_task(journal, at=at), at=at)
        over = (
            make.transition(lifecycle, ending=r.Ending.UNCHECKED),
            make.task_transition(lifecycle),
        )
        await write_records(journal, made, at, *records, *over)
    await new_task(journal)
    said = "3 earlier runs of agents with a `Watch` in the last day: 1 failed, 1 stuck"
    assert (f"{said} (`midwatch status --all`)" in await read(capsys, "status")) is told
    counts = [each for each in await ask(capsys, "status") if each["type"] == "agents"]
    assert [(each["runs"], each["failed"], each["stuck"]) for each in counts] == [(3, 1, 1)][:told]


async def test_an_empty_journal_says_nothing_as_json(journal: Journal, capsys: Capture) -> None:
    assert await ask(capsys, "status") == []
    assert await read(capsys, "status") == [f"nothing has run yet in {journal.name}"]


@pytest.mark.parametrize("argv", [["status"], ["tell", "x", "y"], ["merge", "x"]])
def test_without_a_journal_there_is_advice(
    journal_file: Path, capsys: Capture, argv: list[str]
) -> None:
    assert refused_now(capsys, *argv) == (
        f"there is no journal at {journal_file}: start with `midwatch run FILE`, or name another "
        "with --journal\n"
    )
    assert not journal_file.exists()


WALLS = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


async def look(file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (*WALLS, *MIDWATCH, *words, "--journal", str(file))
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("in_use", [False, True])
async def test_a_journal_in_a_folder_that_may_only_be_read_is_shown(
    journal_file: Path, at: datetime, bubblewrap: SandboxKind, *, in_use: bool
) -> None:
    assert bubblewrap is SandboxKind.BUBBLEWRAP
    async with await Journal.open(journal_file) as journal:
        await new_task(journal, at=at)
        said = await look(journal_file, "status") if in_use else None
    said = said or await look(journal_file, "status")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("run 1: ")
