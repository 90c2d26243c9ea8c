"""`midwatch lessons add` and `give`: a person writes a lesson, and hands one to a task."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from midwatch_monitor.config.learning import LearningSettings, LessonSettings
from midwatch_monitor.records import (
    Attempt,
    Ending,
    Group,
    Lesson,
    Method,
    Plan,
    Recall,
    Recalled,
)
from midwatch_supervisor.learning.recall import RecalledText, RecallRequest, recall
from midwatch_tests.command import Cli, assignment, midwatch
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import uses
from midwatch_tools.data_blocks import DataBlocks

TEXT = "The rounding is in src/money.py."
ON = LearningSettings()

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


async def lesson_line(cli: Cli, *argv: str) -> dict[str, Any]:
    """The only object that a `lessons` command prints."""
    (line,) = await cli.ask("lessons", *argv)
    return line


async def add_lesson(cli: Cli, *argv: str) -> int:
    """The id of a new lesson."""
    return (await lesson_line(cli, "add", TEXT, *argv))["id"]


async def given_to(
    past: PastAttempts,
    attempt: Attempt,
    settings: LearningSettings = ON,
    *,
    tags: tuple[str, ...] = (),
) -> RecalledText:
    """What an attempt is given, and the journal is told."""
    task = await past.journal.task(attempt.task)
    wanted = assignment(task.name, worker="coder", project=task.project)
    wanted = wanted.model_copy(update={"task": wanted.task.model_copy(update={"tags": tags})})
    request = RecallRequest(task=task, assignment=wanted, attempt=attempt, plan=Plan(steps=()))
    found = await recall(past.journal, request, settings, DataBlocks("0badcafe"))
    if found.records:
        await past.say(attempt, *found.records)
    return found


def methods(given: RecalledText) -> list[Method]:
    """How the lessons of an attempt were found."""
    return [
        each.method
        for record in given.records
        if isinstance(record, Recall)
        for each in record.lessons
    ]


async def test_a_persons_lesson_waits_for_nobody_and_reaches_a_task_of_the_project_that_fits(
    cli: Cli, past: PastAttempts
) -> None:
    last = await past.attempt()
    words = ("--instead", "Change src/money.py.", "--tag", "money", "--file", "src/money.py")
    id = await add_lesson(cli, *words, "--class", "wrong-location", "--from", "ada")
    line = await lesson_line(cli, "list")
    told = {"id": id, "text": TEXT, "insights": ["Change src/money.py."], "tags": ["money"]}
    kept = {"source_attempt": last.id, "project": "shop", "waits": None, "obsolete": False}
    by = {"born": "person", "author": "ada", "failure_class": "wrong_location"}
    assert told | kept | by == {key: line[key] for key in told | kept | by}
    shown = await lesson_line(cli, "show", str(id))
    assert (shown["task"], shown["source_attempts"]) == (None, [])
    assert "\n  shop; entry" in await cli.said("lessons", "show", str(id))
    assert methods(await given_to(past, await past.attempt(number=2))) == []
    given = await given_to(past, await past.attempt(task="sums"), tags=("money",))
    assert methods(given) == [Method.TAGS]
    assert f"1. (written by ada; wrong_location) {TEXT}" in given.text
    assert "what a person wrote down" in given.text


async def test_with_a_task_of_a_run_it_reaches_that_task_and_outlives_an_accepted_result(
    cli: Cli, past: PastAttempts
) -> None:
    first, second = await past.attempt(), await past.attempt()
    for run, attempt in (("1", first), ("2", second)):
        of = ("lessons", "add", f"Of run {run}.", "--task", "fix", "--run", run)
        (line,) = await cli.ask(*of)
        assert line["source_attempt"] == attempt.id
    given = methods(await given_to(past, await past.attempt(number=2)))
    assert given == [Method.TASK] * 2
    told = await lesson_line(cli, "show", str(line["id"]))
    assert (told["task"], told["sources"]) == ("fix", [second.id])
    await past.end(second, Ending.DONE)
    assert await midwatch("feedback", "fix#1", "accept") == 0
    assert [each.obsolete for each in await past.learned.lessons(project="shop")] == [False] * 2


async def test_before_the_first_run_it_is_said_what_a_lesson_needs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(tmp_path / "none.db"))
    said = await cli.refused("lessons", "add", TEXT)
    assert said.startswith("there is no journal at ")
    assert said.endswith("; a lesson is kept with an attempt of its project\n")


async def test_r18_a_lesson_that_a_person_gives_reaches_the_next_attempt_once_as_manual(
    cli: Cli, past: PastAttempts
) -> None:
    await past.attempt()
    id = await add_lesson(cli)
    chart = await past.attempt(task="chart")
    assert methods(await given_to(past, chart)) == []
    line = await lesson_line(cli, "give", str(id), "char", "--from", "ada")
    assert (line["act"], line["task"], line["lesson"]) == ("given", "chart", id)
    second = await past.attempt(task="chart", number=2)
    given = await given_to(past, second)
    assert TEXT in given.text
    assert await uses(past.journal, second.id) == [
        Recalled(lesson=id, method=Method.MANUAL, score=1.0)
    ]
    assert methods(await given_to(past, await past.attempt(task="chart", number=3))) == []
    assert (await lesson_line(cli, "show", str(id)))["uses"][0]["method"] == "manual"


async def test_a_given_lesson_waits_for_room_takes_its_task_out_of_the_groups_and_goes_if_retired(
    cli: Cli, past: PastAttempts
) -> None:
    chart = await past.attempt(task="chart")
    id = str(await add_lesson(cli))
    await midwatch("lessons", "give", id, "chart")
    assert methods(await given_to(past, chart, LearningSettings(prompt_tokens=20))) == []
    control = LearningSettings(lessons=LessonSettings(control_share=1))
    second = await past.attempt(task="chart", number=2)
    (record,) = (await given_to(past, second, control)).records
    assert isinstance(record, Recall)
    assert (record.group, len(record.lessons)) == (Group.NONE, 1)
    await midwatch("lessons", "give", id, "chart")
    await midwatch("lessons", "retire", id)
    third = await past.attempt(task="chart", number=3)
    assert methods(await given_to(past, third)) == []


async def test_the_text_comes_from_stdin_and_is_masked(past: PastAttempts) -> None:
    await past.attempt()
    key = "sk-proj-" + "a1B2c3D4" * 6
    command = [Path(sys.executable).with_name("midwatch"), "lessons", "add"]
    text = f"Use {key}.\n".encode()
    done = await anyio.run_process(command, input=text)
    assert done.returncode == 0
    (known,) = await past.learned.lessons(project="shop")
    assert known.lesson.text.startswith("Use ")
    assert key not in known.lesson.text


async def test_who_writes_a_secret_is_told_how_it_is_masked(cli: Cli, past: PastAttempts) -> None:
    await past.attempt()
    words = ("lessons", "add", "Use the key.", "--instead", "Send sk-proj-" + "a1B2c3D4" * 6)
    (would,) = await cli.read(*words, "--dry-run")
    assert await past.learned.lessons() == []
    (did,) = await cli.read(*words)
    (known,) = await past.learned.lessons(project="shop")
    note = f"; secrets in it are masked: Use the key. {known.lesson.insights[0]}"
    assert "[masked: openai key" in note
    assert would == f"would add a lesson to shop{note}"
    assert did == f"added lesson {known.id} to shop{note}"


async def test_each_class_of_the_error_is_taken(cli: Cli, past: PastAttempts) -> None:
    await past.attempt()
    said = await cli.refused("lessons", "add", "x", "--class", "nonsense")
    names = said.removeprefix("there is no class `nonsense`; known: ").strip().split(", ")
    assert {"wrong_location", "other", "unknown"} <= set(names)
    for name in names:
        await lesson_line(cli, "add", name, "--class", name)


async def test_a_lesson_is_bounded_and_given_in_its_own_project_only(
    cli: Cli, past: PastAttempts
) -> None:
    await past.attempt("other", task="elsewhere")
    await past.attempt()
    id = await past.say(await past.attempt(), Lesson(text="a"))
    long = await cli.refused("lessons", "add", "x" * 2001, "--project", "shop")
    assert long == "2001 characters are too many; at most 2000 are shown\n"
    said = f"lesson {id} belongs to shop, elsewhere does not\n"
    assert await cli.refused("lessons", "give", str(id), "elsewhere") == said
