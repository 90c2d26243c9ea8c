"""`midwatch report` over a real journal."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Checkpoint,
    Commit,
    Completion,
    Delivery,
    DeliveryState,
    Draft,
    Ending,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Severity,
    Spending,
    Step,
    StepKind,
    TaskTransition,
)
from midwatch_stage.command import midwatch

Capture = pytest.CaptureFixture[str]
Write = Callable[[Record], Awaitable[int]]

KEY = AlertKey(rule="cycle")
EVIL = "<img src=x onerror=alert(1)>"


async def lines(capsys: Capture, *argv: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert await midwatch("report", "--json", *argv) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def story(write: Write) -> None:
    """An attempt that goes round in a circle, is nudged, recovers, and is done."""
    for number in range(1, 5):
        await write(Step(number=number, kind=StepKind.TOOL, tool="look", request=number, ok=True))
    alert = Alert(
        key=KEY,
        severity=Severity.WARNING,
        state=AlertState.FIRING,
        value=2,
        summary="round and round",
        evidence=(2, 3, 4),
        since_step=4,
        step=4,
    )
    await write(alert)
    nudge = Intervention(action=Action.NUDGE, by=Actor.POLICY, answers=(KEY,))
    id = await write(nudge)
    said = Checkpoint(progress_percent=90, confidence=80)
    for record in (
        Delivery(intervention=id, state=DeliveryState.DELIVERED, step=4),
        OutcomeReport(intervention=id, outcome=Outcome.RECOVERED, step=9, reason=""),
        Spending(role="supervisor", model="m", requests=1, tokens=10),
        Step(number=5, kind=StepKind.CHECKPOINT, request=5, checkpoint=said),
        Completion(plan_step=1, goal=EVIL, confidence=70, accepted=True, flag=EVIL),
        AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE),
    ):
        await write(record)


async def test_each_figure_is_one_object(capsys: Capture, story: None) -> None:
    found = await lines(capsys)
    assert {line["type"] for line in found} == {
        *("tasks", "task", "detection", "recovery", "restraint", "retries", "analyses"),
        *("plans", "claims", "reservation", "confidence", "spending"),
    }
    (detection, cycle) = [line for line in found if line["type"] == "detection"]
    assert detection == {
        "type": "detection",
        "rule": None,
        "alarms": 1,
        "median": 3.0,
        "requests": [{"requests": 3, "alarms": 1}],
        "unknown": 0,
    }
    assert cycle["rule"] == "cycle"
    by = [(line["by"], line["name"]) for line in found if line["type"] == "recovery"]
    assert by == [
        *(("all", None), ("rule", "cycle"), ("action", "nudge")),
        *(("diagnosis", "unknown"), ("actor", "policy")),
    ]


async def test_the_text_has_every_section(capsys: Capture, story: None) -> None:
    assert await midwatch("report") == 0
    head, *rest = capsys.readouterr().out.splitlines()
    assert head.startswith("1 task in ")
    titles = [rest[at - 1] for at, line in enumerate(rest) if line and set(line) == {"─"}]
    assert titles == [
        *("Tasks", "Detection", "Recovery", "Restraint", "Retries", "Plans"),
        *("Stated confidence", "Spending"),
    ]


async def test_the_page_goes_to_a_file_that_is_not_overwritten_by_accident(
    capsys: Capture, story: None, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "report.html"
    words = ("report", "--html", "--output", str(target))
    assert await midwatch(*words) == 0
    assert capsys.readouterr().out == f"wrote {target}\n"
    text = target.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert (EVIL in text, EVIL.replace("<", "&lt;").replace(">", "&gt;") in text) == (False, True)
    assert await midwatch(*words) == 2
    assert capsys.readouterr().err == f"{target} exists already; --force overwrites it\n"
    assert await midwatch(*words, "--force") == 0
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


async def test_the_page_goes_to_stdout_where_no_file_is_named(capsys: Capture, story: None) -> None:
    assert await midwatch("report", "--html") == 0
    assert capsys.readouterr().out.endswith("</html>\n")


async def later(journal: Journal, at: datetime) -> None:
    """A second run, whose task is submitted two days later."""
    moment = at + timedelta(days=2)
    run = await journal.add_run(source="b.yaml", settings="{}", at=moment)
    await journal.add_task(run=run.id, name="more", title="", spec="{}", at=moment)


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ((), ["fix", "more"]),
        (("--run", "1"), ["fix"]),
        (("--since", "2026-11-23T00:00Z"), ["more"]),
        (("--since", "2026-11-21T20:00Z"), ["fix", "more"]),
        (("--since", "2026-11-22T00:00Z", "--run", "1"), []),
    ],
)
async def test_a_run_and_a_moment_choose_the_tasks(
    capsys: Capture, story: None, journal: Journal, at: datetime, argv: list[str], names: list[str]
) -> None:
    await later(journal, at)
    assert [line["task"] for line in await lines(capsys, *argv) if line["type"] == "task"] == names


async def test_a_task_that_went_on_since_counts_from_its_beginning(
    capsys: Capture, story: None, journal: Journal, at: datetime
) -> None:
    over = TaskTransition(lifecycle=Lifecycle.COMPLETED, reason="done")
    draft = Draft(record=over, at=at + timedelta(days=3), task=1)
    await journal.commit(Commit(drafts=(draft,)))
    found = await lines(capsys, "--since", "2026-11-23T00:00Z")
    (task,) = [line for line in found if line["type"] == "task"]
    assert (task["interventions"], task["recovered"], task["seconds"]) == (1, 1, 259200.0)


async def test_where_nothing_ran_nothing_is_told(capsys: Capture, journal: Journal) -> None:
    assert await lines(capsys) == []
    assert await midwatch("report") == 0
    (head,) = capsys.readouterr().out.splitlines()
    assert head.startswith(f"No task in {journal.name}, as of ")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("--html", "--json"), "choose one of --html and --json"),
        (("--output", "a.html"), "--output is for --html"),
        (("--since", "soon"), "--since 'soon' is no moment"),
        (("--run", "7"), "there is no run 7"),
    ],
)
async def test_what_cannot_be_meant_is_bad_usage(
    capsys: Capture, story: None, argv: tuple[str, ...], error: str
) -> None:
    assert await midwatch("report", *argv) == 2
    assert capsys.readouterr().err.startswith(error)


async def test_the_journal_knows_which_tasks_were_active(
    journal: Journal, story: None, at: datetime
) -> None:
    await later(journal, at)
    day = timedelta(days=1)
    assert [await journal.active(at + each * day) for each in range(4)] == [[1, 2], [2], [2], []]
    assert await journal.active(at.astimezone(UTC)) == [1, 2]
