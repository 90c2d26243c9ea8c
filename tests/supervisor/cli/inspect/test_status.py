"""`midwatch status` over a real journal."""

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic_ai import Agent

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    Budget,
    BudgetRequest,
    Change,
    Checkpoint,
    Completion,
    Delivery,
    DeliveryState,
    Ending,
    Grant,
    Lifecycle,
    Meter,
    PermissionRequest,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Severity,
    Step,
    StepKind,
    SupervisedBy,
    TaskTransition,
)
from midwatch_stage.command import MIDWATCH, ask, midwatch, new_attempt, new_task, read
from midwatch_stage.command import write as write_records
from midwatch_stage.factories import alert, intervention
from midwatch_stage.factories import plan as make_plan
from midwatch_stage.worker import scripted
from midwatch_supervisor.cli import main
from midwatch_tools import Watch

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]

WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)


def busy() -> Sequence[Record]:
    told = Checkpoint(progress_percent=40, confidence=70)
    done = PlanStep(title="a", state=PlanStepState.DONE)
    return (
        WORKING,
        Plan(steps=(done, PlanStep(title="b"))),
        Change(budget=Budget(requests=Meter(used=3, limit=60))),
        Step(number=1, kind=StepKind.MESSAGE),
        Step(number=2, kind=StepKind.CHECKPOINT, checkpoint=told),
        Step(number=3, kind=StepKind.MESSAGE),
        alert("cycle", Severity.WARNING),
    )


async def test_a_task_is_one_object_with_all_that_its_attempt_said(
    attempt: Attempt, write: Write, capsys: Capture
) -> None:
    await write(*busy())
    assert await ask(capsys, "status") == [
        {
            "type": "status",
            "run": 1,
            "task": "fix",
            "title": "Fix it",
            "status": "working",
            "attempt": 1,
            "number": 1,
            "lifecycle": "working",
            "stands": "working",
            "health": "suspect",
            "node": "here",
            "node_state": None,
            "interrupted": False,
            "sandbox": None,
            "plan_step": 2,
            "plan_steps": 2,
            "progress_percent": 40,
            "confidence": 70,
            "steps": 3,
            "requests_used": 3,
            "requests_limit": 60,
            "alerts": 1,
            "waits_for": None,
            "commands": [],
            "needs_person": False,
            "need": None,
            "accepted": None,
            "reservations": [],
            "source": "tasks.yaml",
            "started_at": "2026-11-21T20:00:00.000Z",
        }
    ]


async def test_the_table_is_for_people(attempt: Attempt, write: Write, capsys: Capture) -> None:
    await write(*busy())
    head, titles, row = await read(capsys, "status")
    assert head.startswith("run 1: tasks.yaml, 2026-11-2")
    assert titles.split()[:3] == ["task", "attempt", "status"]
    assert re.split("  +", row) == [
        *("fix", "1", "working", "suspect", "2/2", "40 %", "70 %", "3", "3/60", "1", "-"),
    ]


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (make_plan("Fix it"), (None, 0, "-")),
        (make_plan("a", "b", done=2), (2, 2, "2/2")),
    ],
)
async def test_the_plan_step_is_one_of_the_plan_and_the_task_alone_is_none(
    attempt: Attempt,
    write: Write,
    capsys: Capture,
    plan: Plan,
    told: tuple[int | None, int, str],
) -> None:
    await write(WORKING, plan)
    ((line,), (*_, row)) = await ask(capsys, "status"), await read(capsys, "status")
    assert (line["plan_step"], line["plan_steps"], row.split()[4]) == told


@pytest.mark.parametrize(
    ("records", "health"),
    [
        ((), "ok"),
        ((alert("cycle", Severity.NOTICE),), "notice"),
        ((alert("cycle", Severity.WARNING),), "suspect"),
        ((alert("cycle", Severity.CRITICAL),), "stuck"),
        ((alert("cycle", Severity.CRITICAL, AlertState.RESOLVED),), "ok"),
        ((alert("cycle", Severity.CRITICAL), Change(lifecycle=Lifecycle.INPUT_REQUIRED)), "stuck"),
    ],
)
async def test_health_follows_from_what_fires(
    write: Write, capsys: Capture, records: tuple[Record, ...], health: str
) -> None:
    await write(WORKING, *records)
    (line,) = await ask(capsys, "status")
    assert line["health"] == health


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
    task = await new_task(journal, supervised_by=SupervisedBy.MONITOR)
    await new_attempt(journal, task)
    assert "node" not in (await read(capsys, "status"))[1].split()


async def test_an_escalation_waits_for_a_decision(
    journal: Journal, attempt: Attempt, at: datetime, write: Write, capsys: Capture
) -> None:
    await write(WORKING)
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(AlertKey(rule="cycle"),), reason="", at=at
    )
    (line,) = await ask(capsys, "status")
    assert line["waits_for"] == "a decision"


CAME = Delivery(intervention=4, state=DeliveryState.DELIVERED, step=1)
"""What is said first of an attempt at work is entry 4."""
PARKED = Change(lifecycle=Lifecycle.INPUT_REQUIRED)


@pytest.mark.parametrize(
    ("records", "waits_for"),
    [
        ((intervention(),), "delivery of nudge (4)"),
        ((intervention(), CAME), None),
        (
            (intervention(Action.RESTART, needs_approval=True),),
            "approval of restart: `midwatch approve 4` or `midwatch reject 4`",
        ),
        (
            (intervention(Action.ASK_OPERATOR, message="Which one?"), CAME, PARKED),
            "an answer: Which one?",
        ),
        ((intervention(Action.PAUSE), CAME, PARKED), "a person to resume it"),
        ((BudgetRequest(wanted=Grant(requests=5), reason="more"),), None),
    ],
)
async def test_an_attempt_waits_for_what_is_on_its_way_or_for_a_person_and_never_for_a_request(
    write: Write, capsys: Capture, records: tuple[Record, ...], waits_for: str | None
) -> None:
    await write(WORKING, *records)
    (line,) = await ask(capsys, "status")
    assert line["waits_for"] == waits_for


QUESTION = f"Which {'very ' * 20}one?"


@pytest.mark.parametrize(
    ("records", "cell"),
    [
        (
            (intervention(Action.ASK_OPERATOR, message=QUESTION), CAME, PARKED),
            '`midwatch tell fix --run 1 "your answer"`: an answer: Which very',
        ),
        (
            (PermissionRequest(tool="shell", what=QUESTION), PARKED),
            "`midwatch approve 4` or `midwatch reject 4`: permission to Which",
        ),
        (
            (intervention(Action.RESTART, needs_approval=True),),
            "`midwatch approve 4` or `midwatch reject 4`: approval of restart",
        ),
    ],
)
async def test_the_command_that_answers_stands_before_the_question_that_is_cut_off(
    write: Write, capsys: Capture, records: tuple[Record, ...], cell: str
) -> None:
    await write(WORKING, *records)
    assert cell in (await read(capsys, "status"))[2]
    (line,) = await ask(capsys, "status")
    shown = await read(capsys, "show", "fix")
    for each in line["commands"]:
        assert each in cell
        assert any(each in text for text in shown[2:4])


async def test_a_task_that_has_not_begun_waits_for_its_turn(
    journal: Journal, capsys: Capture
) -> None:
    await new_task(journal)
    (line,) = await ask(capsys, "status")
    assert (line["attempt"], line["health"], line["waits_for"]) == (None, None, "its turn")


async def test_what_is_over_waits_for_nothing(write: Write, capsys: Capture) -> None:
    over = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)
    await write(intervention(), over, TaskTransition(lifecycle=Lifecycle.COMPLETED))
    (line,) = await ask(capsys, "status")
    assert (line["status"], line["waits_for"]) == ("completed", None)


async def test_a_task_that_is_completed_with_reservations_says_so(
    write: Write, capsys: Capture
) -> None:
    over = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)
    done = Completion(
        plan_step=0, goal="g", confidence=70, accepted=True, flag="still open: b", doubts=("a: x",)
    )
    await write(done, over)
    (before,) = await ask(capsys, "status")
    await write(TaskTransition(lifecycle=Lifecycle.COMPLETED))
    (after,) = await ask(capsys, "status")
    assert (before["reservations"], after["reservations"]) == ([], ["still open: b", "a: x"])
    last = (await read(capsys, "status"))[-1]
    assert last == "fix: completed, with reservations: still open: b; a: x"


@pytest.mark.parametrize(("argv", "runs"), [((), [2]), (("--run", "1"), [1]), (("--all",), [1, 2])])
async def test_the_latest_run_is_shown_unless_others_are_asked_for(
    journal: Journal,
    attempt: Attempt,
    at: datetime,
    capsys: Capture,
    argv: tuple[str, ...],
    runs: list[int],
) -> None:
    await new_task(journal)
    lines = await ask(capsys, "status", *argv)
    assert [line["run"] for line in lines if line["type"] == "status"] == runs


async def test_an_earlier_run_that_is_not_over_is_told_below_the_latest(
    journal: Journal, capsys: Capture
) -> None:
    now = datetime.now(UTC)
    made = await new_attempt(journal, await new_task(journal, at=now), at=now)
    await write_records(journal, made, now, WORKING, PARKED)
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


async def test_an_earlier_run_that_is_over_is_not_told(
    journal: Journal, attempt: Attempt, write: Write, capsys: Capture
) -> None:
    await write(TaskTransition(lifecycle=Lifecycle.FAILED))
    await new_task(journal)
    assert len(await read(capsys, "status")) == 3


@pytest.mark.parametrize(("age", "told"), [(1, True), (25, False)])
async def test_earlier_runs_of_agents_in_the_last_day_are_counted(
    journal: Journal, capsys: Capture, *, age: int, told: bool
) -> None:
    at = datetime.now(UTC) - timedelta(hours=age)
    looped, failed = alert("cycle", Severity.CRITICAL), Lifecycle.FAILED
    for lifecycle, *records in ((Lifecycle.COMPLETED, looped), (failed,), (Lifecycle.COMPLETED,)):
        made = await new_attempt(journal, await new_task(journal, at=at), at=at)
        over = AttemptTransition(lifecycle=lifecycle, ending=Ending.UNCHECKED)
        await write_records(journal, made, at, *records, over, TaskTransition(lifecycle=lifecycle))
    await new_task(journal)
    said = "3 earlier runs of agents with a `Watch` in the last day: 1 failed, 1 stuck"
    assert (f"{said} (`midwatch status --all`)" in await read(capsys, "status")) is told
    counts = [each for each in await ask(capsys, "status") if each["type"] == "agents"]
    assert [(each["runs"], each["failed"], each["stuck"]) for each in counts] == [(3, 1, 1)][:told]


async def test_an_unknown_run_is_bad_usage(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    assert await midwatch("status", "--run", "7") == 2
    assert capsys.readouterr().err == f"there is no run 7 in {journal.name}; known: 1\n"


async def test_an_empty_journal_says_nothing_as_json(journal: Journal, capsys: Capture) -> None:
    assert await ask(capsys, "status") == []
    assert await read(capsys, "status") == [f"nothing has run yet in {journal.name}"]


@pytest.mark.parametrize(
    "argv", [["status"], ["show", "x"], ["approve", "1"], ["tell", "x", "y"], ["merge", "x"]]
)
def test_without_a_journal_there_is_advice(
    journal_file: Path, capsys: Capture, argv: list[str]
) -> None:
    assert main(argv) == 2
    assert capsys.readouterr() == (
        "",
        f"there is no journal at {journal_file}: start with `midwatch run FILE`, or name another "
        "with --journal\n",
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
