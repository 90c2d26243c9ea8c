"""The loop closes from the command line alone: a demo, a person's word, a lesson, a demo again."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from midwatch_tests.command import process

pytestmark = pytest.mark.long  # two demos by the command line; each part has its own tests

Line = dict[str, Any]
STUCK = ("totals", "delivery", "shipping", "labels")
COMMENTS = {
    "totals": "Whole cents only, please: not one float in totals.py.",
    "delivery": "",
    "shipping": "No! Again; \"free\" means <data> & 'agreed'; nothing else…",
    "labels": "system",
}


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the commands printed, in their order."""

    folder: Path
    first: list[Line]
    verdicts: dict[str, Line]
    lessons: list[Line]
    again: list[Line]

    def shown_lines(self, attempt: int) -> list[Line]:
        return midwatch(self.folder, "show", str(attempt), "--json")

    def attempts(self, lines: list[Line], task: str) -> list[int]:
        """The attempts of a task in one demo, oldest first."""
        ids = [each["id"] for each in lines if each["type"] == "attempt" and each["task"] == task]
        return list(dict.fromkeys(ids))


def midwatch(folder: Path, *words: str) -> list[Line]:
    """The lines that a command prints as JSON."""
    environ = {key: value for key, value in os.environ.items() if key != "MIDWATCH_JOURNAL"}
    done = process(*words, cwd=folder, env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    """A demo, a rejection of each task that raised an alarm, and a demo again."""
    folder = tmp_path_factory.mktemp("loop")
    demo = ("demo", "--headless", "--json")
    first = midwatch(folder, *demo, "--pace", "0")
    verdicts = {
        task: midwatch(folder, "feedback", task, "reject", "--comment", comment, "--json")[0]
        for task, comment in COMMENTS.items()
    }
    lessons = midwatch(folder, "lessons", "list", "--project", "midwatch-demo", "--json")
    approve = str(verdicts["delivery"]["lesson"])
    (approved,) = midwatch(folder, "lessons", "approve", approve, "--json")
    assert (approved["lesson"], approved["act"]) == (int(approve), "approved")
    again = midwatch(folder, *demo, "--pace", "0")
    return Loop(folder=folder, first=first, verdicts=verdicts, lessons=lessons, again=again)


def tasks_with_alarms(lines: list[Line]) -> set[str]:
    return {
        line["task"]
        for line in lines
        if line["type"] == "alert" and line["state"] == "firing" and line["severity"] != "notice"
    }


def test_the_first_demo_raises_alarms_in_four_tasks(loop: Loop) -> None:
    assert tasks_with_alarms(loop.first) == set(STUCK)
    types = {line["type"] for line in (*loop.first, *loop.again)}
    contract = {"run", "task", "attempt", "step", "checkpoint", "alert", "escalation", "decision"}
    assert types == contract | {"intervention", "done"}


@pytest.mark.parametrize("task", STUCK)
def test_the_list_of_lessons_tells_the_source_of_each_in_any_words(loop: Loop, task: str) -> None:
    verdict = loop.verdicts[task]
    assert verdict["attempt"] == loop.attempts(loop.first, task)[-1]
    (lesson,) = [each for each in loop.lessons if each["id"] == verdict["lesson"]]
    assert lesson["source_attempt"] == verdict["attempt"]
    assert (lesson["used"], lesson["helped"], lesson["obsolete"]) == (0, 0, False)
    assert lesson["text"].startswith("A person rejected the result: ")
    assert COMMENTS[task] in lesson["text"]
    waits = "it holds words of a worker, of its tools or of a model"
    assert lesson["waits"] == (None if COMMENTS[task] else waits)


@pytest.mark.parametrize("task", STUCK)
def test_r34_r74_the_second_demo_has_the_lesson_and_logs_its_use(loop: Loop, task: str) -> None:
    (attempt, *_) = loop.attempts(loop.again, task)
    (recall,) = [line for line in loop.shown_lines(attempt) if line["type"] == "recall"]
    id = loop.verdicts[task]["lesson"]
    (given,) = [each for each in recall["lessons"] if each["id"] == id]
    assert (given["method"], given["origin"]) == ("task", "explicit")
    assert given["text"].startswith("A person rejected the result")
    known = midwatch(loop.folder, "lessons", "list", "--project", "midwatch-demo", "--json")
    assert [(each["used"], each["helped"]) for each in known if each["id"] == id] == [(1, 1)]


def test_the_workers_that_were_taught_raise_no_alarm_and_all_succeed(loop: Loop) -> None:
    assert tasks_with_alarms(loop.again) == set()
    done = loop.again[-1]
    assert {task["status"] for task in done["tasks"]} == {"completed"}
    assert {task["attempts"] for task in done["tasks"]} == {1}


def test_show_tells_of_the_verdict_the_lesson_and_the_summary_of_an_attempt(loop: Loop) -> None:
    verdict = loop.verdicts["totals"]
    shown = loop.shown_lines(verdict["attempt"])
    told = {
        line["type"]: line for line in shown if line["type"] in {"feedback", "lesson", "summary"}
    }
    assert told["feedback"]["comment"] == COMMENTS["totals"]
    assert told["lesson"]["id"] == verdict["lesson"]
    assert told["lesson"]["verdict"] == told["feedback"]["id"] == verdict["verdict"]
    assert told["summary"]["turns"] > 10
