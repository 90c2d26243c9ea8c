"""`midwatch report` over a real journal."""

import os
import subprocess
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_tests.command import MIDWATCH, ask, midwatch, new_task, printed, read, refused
from midwatch_tests.factories import (
    alert,
    change,
    delivery,
    draft,
    ended,
    intervention,
    outcome,
    reflecting,
    step,
    task_transition,
    transition,
)
from midwatch_tests.harness import PastAttempts

Capture = pytest.CaptureFixture[str]

EVIL = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def recovered_attempt(write: Callable[..., Awaitable[int]]) -> None:
    """An attempt that goes round in a circle, is nudged, recovers, and is done."""
    steps = (step(number, "look", request=number) for number in range(1, 5))
    await write(*steps, alert(step=4, evidence=(2, 3, 4)))
    id = await write(intervention(answers=(alert().key,)))
    await write(
        delivery(id, step=4),
        outcome(id),
        r.Spending(role="supervisor", model="m", requests=1, tokens=10),
        replace(reflecting(5, 90, 80), request=5),
        r.Completion(plan_step=1, goal=EVIL, confidence=70, accepted=True, flag=EVIL),
        ended(),
    )


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        {key: line[key] for key in line if key != "type"} for line in found if line["type"] == kind
    ]


async def test_where_tasks_stand_is_said_in_the_words_of_status(
    capsys: Capture, past: PastAttempts
) -> None:
    watched = change(lifecycle=r.Lifecycle.WORKING, acts=(r.Action.OBSERVE,))
    await past.say(await past.attempt(task="works"), watched)
    idle = change(lifecycle=r.Lifecycle.INPUT_REQUIRED)
    await past.say(await past.attempt(task="idles"), watched, idle)
    asks = await past.attempt(task="asks")
    await past.say(asks, task_transition(r.Lifecycle.INPUT_REQUIRED))
    await past.say(asks, transition(r.Lifecycle.INPUT_REQUIRED))
    wrong = await past.attempt(task="wrong")
    await past.end(wrong, r.Ending.DONE)
    await past.say(wrong, task_transition(r.Lifecycle.COMPLETED))
    await past.say(wrong, r.Feedback(accepted=False))
    lines = [line.split() for line in await read(capsys, "report")]
    for name, *words in (
        ("1/works", "working"),
        ("2/idles", "idle"),
        ("3/asks", "waiting", "for", "a", "person"),
        ("4/wrong", "completed", "(result", "rejected)"),
    ):
        assert [line for line in lines if line[: 1 + len(words)] == [name, *words]]
    assert not [line for line in lines if "begun" in line or "input-required" in line]
    shown = await read(capsys, "show", "wrong")
    assert "status: completed (result rejected)" in "\n".join(shown)
    (counts,) = [line for line in await ask(capsys, "report") if line["type"] == "tasks"]
    assert (counts["submitted"], counts["working"], counts["input-required"]) == (0, 1, 2)


async def test_an_attempt_counts_by_its_last_claim_of_a_plan_step_and_that_is_said(
    capsys: Capture, past: PastAttempts
) -> None:
    for task, steps in (("fix", (1, 2, 0)), ("chart", (0,))):
        attempt = await past.attempt(task=task)
        for number in steps:
            claim = r.Completion(plan_step=number, goal="x", confidence=90, accepted=True)
            await past.say(attempt, claim)
        await past.end(attempt, r.Ending.DONE)
    lines = [" ".join(line.split()) for line in await read(capsys, "report")]
    assert "last claim of a plan step 1 0.10" in lines
    assert lines[lines.index("claims that a plan step or task is done count") + 1] == "accepted 4"


async def test_on_a_terminal_that_knows_only_ascii_the_bars_are_as_long(
    capsys: Capture, recovered_attempt: None
) -> None:
    drawn = [line for line in await read(capsys, "report") if "█" in line]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*MIDWATCH, "report"]
    ended = await to_thread(subprocess.run, words, env=environ, capture_output=True, check=True)
    out = ended.stdout.decode("ascii")
    assert "\\u25" not in out
    plain = str.maketrans("█▒░·│", "#=-.|")
    assert drawn
    assert [line for line in drawn if line.translate(plain) not in out.splitlines()] == []


async def test_the_page_goes_to_stdout_or_to_a_file_that_is_not_overwritten_by_accident(
    capsys: Capture, recovered_attempt: None, tmp_path: Path
) -> None:
    assert (await printed(capsys, "report", "--html")).endswith("</html>\n")
    target = tmp_path / "new" / "report.html"
    words = ("report", "--html", "--output", str(target))
    gone = f"{target} cannot be written: the folder {target.parent} does not exist\n"
    assert await refused(capsys, *words) == gone
    target.parent.mkdir()
    assert await read(capsys, *words) == [f"wrote {target}"]
    text = target.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert (EVIL in text, EVIL.replace("<", "&lt;").replace(">", "&gt;") in text) == (False, True)
    assert await refused(capsys, *words) == f"{target} exists already; --force overwrites it\n"
    assert await midwatch(*words, "--force") == 0
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ((), ["fix", "more"]),
        (("--run", "1"), ["fix"]),
        (("--since", "2026-11-23T00:00Z"), ["more"]),
        (("--since", "2026-11-22T00:00Z", "--run", "1"), []),
    ],
)
async def test_a_run_and_a_moment_choose_the_tasks(
    capsys: Capture,
    recovered_attempt: None,
    journal: Journal,
    at: datetime,
    argv: list[str],
    names: list[str],
) -> None:
    await new_task(journal, "more", at=at + timedelta(days=2))
    found = of_kind(await ask(capsys, "report", *argv), "task")
    assert [line["task"] for line in found] == names


async def test_a_task_that_went_on_since_counts_from_its_beginning(
    capsys: Capture, recovered_attempt: None, journal: Journal, at: datetime
) -> None:
    over = draft(task_transition(r.Lifecycle.COMPLETED), at=at + timedelta(days=3), attempt=None)
    await journal.commit(r.Commit(drafts=(over,)))
    (task,) = of_kind(await ask(capsys, "report", "--since", "2026-11-23T00:00Z"), "task")
    assert (task["interventions"], task["recovered"], task["seconds"]) == (1, 1, 259200.0)


async def test_where_nothing_ran_or_was_learned_that_is_said(
    capsys: Capture, past: PastAttempts
) -> None:
    assert await ask(capsys, "report") == []
    (head,) = await read(capsys, "report")
    assert head.startswith(f"No task in {past.journal.name}, as of ")
    await past.attempt()
    assert await ask(capsys, "report", "lessons") == []
    (said,) = await read(capsys, "report", "lessons")
    assert said.startswith("1 task in ")
    assert said.endswith("Nothing has been judged or learned yet.")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("--html", "--json"), "choose one of --html and --json"),
        (("--output", "a.html"), "--output is for --html"),
        (("--since", "soon"), "--since 'soon' is not a time"),
        (("--run", "7"), "there is no run 7"),
        (("lessons", "--project", "nowhere"), "there is no project `nowhere`"),
    ],
)
async def test_what_cannot_be_meant_is_bad_usage(
    capsys: Capture, past: PastAttempts, argv: tuple[str, ...], error: str
) -> None:
    await past.say(await past.attempt(), r.Lesson(text="Wait."))
    assert (await refused(capsys, "report", *argv)).startswith(error)


def acceptance_counts(found: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """By origin: how many were accepted, of how many."""
    by_origin = of_kind(found, "acceptance")
    return {line["origin"]: (line["accepted"], line["judged"]) for line in by_origin}


@pytest.mark.parametrize(
    ("argv", "good", "judged"),
    [
        ((), 4, 5),
        (("--project", "ot"), 1, 1),
        (("--run", "1"), 0, 1),
        (("--since", "2026-12-01"), 1, 1),
    ],
)
async def test_a_project_a_run_and_a_moment_choose_the_tasks_that_something_is_learned_from(
    capsys: Capture, past: PastAttempts, argv: tuple[str, ...], good: int, judged: int
) -> None:
    await past.end(await past.attempt(), r.Ending.STUCK)
    for number in range(3):
        await past.end(await past.attempt(task=f"more-{number}"), r.Ending.DONE)
    past.at += timedelta(days=30)
    await past.end(await past.attempt("other"), r.Ending.DONE)
    await past.end(await past.attempt("", task="trial"), r.Ending.STUCK)
    assert acceptance_counts(await ask(capsys, "report", "lessons", *argv))["automatic"] == (
        good,
        judged,
    )
