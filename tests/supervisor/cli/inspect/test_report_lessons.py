"""`midwatch report lessons` over a real journal."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from midwatch_monitor.records import (
    Budget,
    Change,
    Commit,
    Draft,
    Ending,
    Fact,
    FactReview,
    Feedback,
    Group,
    Guidelines,
    Lesson,
    Lifecycle,
    Meter,
    Method,
    Recall,
    Recalled,
    Reflection,
    ReviewState,
    Spending,
    TaskTransition,
)
from midwatch_stage.command import midwatch
from midwatch_stage.harness import PastAttempts

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]

EVIL = "<img src=x onerror=alert(1)>"
USED = Change(budget=Budget(tokens=Meter(used=500)))


async def lines(capsys: Capture, *argv: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert await midwatch("report", "lessons", "--json", *argv) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        {key: line[key] for key in line if key != "type"} for line in found if line["type"] == kind
    ]


def accepted(found: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """By origin: how many were accepted, of how many."""
    by_origin = of_kind(found, "acceptance")
    return {line["origin"]: (line["accepted"], line["judged"]) for line in by_origin}


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def story(past: PastAttempts) -> int:
    """A lesson of a rejected attempt, given to three attempts at other tasks that were accepted."""
    first = await past.attempt()
    await past.end(first, Ending.STUCK)
    id = await past.say(first, Lesson(text=EVIL, failure_class="loop", sources=(first.id,)))
    for number in range(3):
        attempt = await past.attempt(task=f"more-{number}")
        recalled = Recalled(lesson=id, method=Method.TAGS)
        group = Group.CONTROL if number == 2 else Group.TREATMENT
        await past.say(attempt, Recall(lessons=(recalled,), group=group, seconds=0.1), USED)
        await past.end(attempt, Ending.DONE)
        over = Draft(
            record=TaskTransition(lifecycle=Lifecycle.COMPLETED), at=past.at, task=attempt.task
        )
        await past.journal.commit(Commit(drafts=(over,)))
    await past.say(first, Feedback(accepted=False, comment="no"))
    await past.say(
        first,
        Fact(text="the port is 8080"),
        FactReview(state=ReviewState.OK, facts=(1,), modified=1),
        Spending(role="reflector", model="m", requests=1, tokens=90, cost_usd=0.01),
    )
    await past.say(first, Guidelines(version=1, text="# G"), Reflection(watermark=1, proposed=True))
    return id


async def test_each_figure_is_one_object(capsys: Capture, story: int) -> None:
    found = await lines(capsys)
    assert {line["type"] for line in found} == {
        *("acceptance", "week", "curve", "lessons", "failure_class", "effect", "comparison"),
        *("effort", "saving", "facts", "guidelines", "spending"),
    }
    assert accepted(found) == {"explicit": (0, 1), "automatic": (3, 4)}
    assert [line["part"] for line in of_kind(found, "curve")] == [1, 1, 2, 3, 4]
    (effect,) = of_kind(found, "effect")
    assert (effect["lesson"], effect["text"], effect["accepted"]) == (story, EVIL, 3)


async def test_r66_the_comparison_says_when_there_is_not_enough_to_tell(
    capsys: Capture, story: int
) -> None:
    (found,) = of_kind(await lines(capsys), "comparison")
    assert (found["treatment"]["tasks"], found["control"]["tasks"]) == (2, 1)
    assert (found["answer"], found["difference_low"] < 0 < found["difference_high"]) == (
        "few",
        True,
    )
    assert await midwatch("report", "lessons") == 0
    said = capsys.readouterr().out
    assert "not enough to tell: fewer than 10 different tasks in a group" in said


async def test_v23_the_review_is_told_with_its_cost(capsys: Capture, story: int) -> None:
    (found,) = of_kind(await lines(capsys), "facts")
    assert (found["reviews"], found["modified"]) == ({"ok": 1, "fallback": 0, "skipped": 0}, 1)
    assert (found["worth"], found["tokens"], found["cost_usd"]) == ("early", 90, 0.01)


async def test_attempts_and_tokens_of_a_task_are_told_by_group(capsys: Capture, story: int) -> None:
    found = of_kind(await lines(capsys), "effort")
    assert found == [
        {"cohort": "treatment", "tasks": 2, "attempts": 1.0, "tokens": 500},
        {"cohort": "control", "tasks": 1, "attempts": 1.0, "tokens": 500},
    ]


async def test_the_text_has_every_section_with_its_charts(capsys: Capture, story: int) -> None:
    assert await midwatch("report", "lessons") == 0
    head, *rest = capsys.readouterr().out.splitlines()
    assert head.startswith("4 tasks in ")
    titles = [rest[at - 1] for at, line in enumerate(rest) if line and set(line) == {"─"}]
    assert titles == [
        *("Acceptance", "Learning curve", "Lessons", "Control group", "Effort", "Facts"),
        "Guidelines",
    ]
    assert any(line.startswith("  loop  █") for line in rest)


async def test_the_page_escapes_the_text_of_lessons(
    capsys: Capture, story: int, tmp_path: "Path"
) -> None:
    target = tmp_path / "lessons.html"
    assert await midwatch("report", "lessons", "--html", "--output", str(target)) == 0
    text = target.read_text("utf-8")
    assert (EVIL in text, EVIL.replace("<", "&lt;").replace(">", "&gt;") in text) == (False, True)
    assert text.count("<svg") > 5


async def test_tasks_from_which_nothing_is_learned_do_not_count(
    capsys: Capture, past: PastAttempts, story: int
) -> None:
    trial = await past.attempt("", task="trial")
    await past.end(trial, Ending.STUCK)
    assert accepted(await lines(capsys))["automatic"] == (3, 4)


@pytest.mark.parametrize(
    ("argv", "good", "judged"),
    [
        ((), 4, 5),
        (("--project", "shop"), 3, 4),
        (("--project", "ot"), 1, 1),
        (("--run", "1"), 0, 1),
        (("--since", "2026-12-01"), 1, 1),
    ],
)
async def test_a_project_a_run_and_a_moment_choose_the_tasks(
    capsys: Capture, past: PastAttempts, story: int, argv: tuple[str, ...], good: int, judged: int
) -> None:
    past.at += timedelta(days=30)
    await past.end(await past.attempt("other"), Ending.DONE)
    assert accepted(await lines(capsys, *argv))["automatic"] == (good, judged)


async def test_where_nothing_was_learned_it_says_so(capsys: Capture, past: PastAttempts) -> None:
    assert await lines(capsys) == []
    await past.attempt()
    assert await lines(capsys) == []
    assert await midwatch("report", "lessons") == 0
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith("1 task in ")
    assert said.endswith("Nothing was judged, and nothing was learned yet.")


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("--html", "--json"), "choose one of --html and --json"),
        (("--output", "a.html"), "--output is for --html"),
        (("--run", "77"), "there is no run 77"),
        (("--project", "nowhere"), "there is no project `nowhere`"),
    ],
)
async def test_what_cannot_be_meant_is_bad_usage(
    capsys: Capture, story: int, argv: tuple[str, ...], error: str
) -> None:
    assert await midwatch("report", "lessons", *argv) == 2
    assert capsys.readouterr().err.startswith(error)
