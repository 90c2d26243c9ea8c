"""What commands print."""

import json
import re
from io import StringIO

import pytest

from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Lesson, Method, Recall, Recalled
from midwatch_stage.command import ask
from midwatch_stage.harness import PastAttempts
from midwatch_stage.nodes import node
from midwatch_supervisor.cli.output import confirm, write_error, write_json, write_line


def test_an_object_is_one_line_with_its_letters(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": "é\nü", "n": None})
    assert capsys.readouterr().out == '{"a": "é\\nü", "n": null}\n'


def test_a_line_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("a\x1b[2Jb\x9bc\td")
    assert capsys.readouterr().out == "a\\x1b[2Jb\\x9bc    d\n"


def test_a_field_cannot_begin_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("title: a\nstatus: done\r\u2028x")
    assert capsys.readouterr().out == "title: a\\nstatus: done\\r\\u2028x\n"


def test_an_object_cannot_steer_the_terminal_and_says_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "\x7f\x9b31m\u202e\u200b\u2028\U000e0041 日本語"
    write_json({"a": text})
    line = capsys.readouterr().out
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line) == {"a": text}


def test_markup_in_a_line_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_error("[red]x[/red] **y**")
    assert capsys.readouterr().err == "[red]x[/red] **y**\n"


def test_a_name_that_is_no_text_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("a\udcff.yaml")
    write_json({"file": "a\udcff.yaml"})
    assert capsys.readouterr().out == 'a\\udcff.yaml\n{"file": "a\\udcff.yaml"}\n'


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agrees"),
    [("yes\n", True), (" YES \n", True), ("y\n", False), ("\n", False), ("", False)],
)
def test_only_the_whole_word_agrees(
    monkeypatch: pytest.MonkeyPatch, answer: str, agrees: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert confirm("delete it") is agrees


@pytest.mark.usefixtures("named_by_the_environment")
async def test_the_times_of_all_commands_have_one_form(
    past: PastAttempts, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, Lesson(text="Look first."))
    await past.say(attempt, Recall(lessons=(Recalled(lesson=lesson, method=Method.TASK, score=1),)))
    await past.end(attempt)
    await Nodes(past.journal).enter(node("node-a"), alive_seconds=60)
    await MonitorLeases(past.journal).take_post("escalate", holder="mon:1", seconds=60)
    said = [
        *await ask(capsys, "lessons", "show", str(lesson)),
        *await ask(capsys, "nodes"),
        *await ask(capsys, "db", "check"),
        *await ask(capsys, "forget", "shop", "--yes"),
    ]
    found = re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', json.dumps(said))
    assert len(found) == 8
    assert all(re.fullmatch(r"[\dT:-]{19}\.\d{3}Z", each) for each in found), found
