"""What commands print."""

import json
import re
from collections.abc import Awaitable, Callable
from io import StringIO

import pytest

from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Action, Lesson, Method, Recall, Recalled, Record
from midwatch_supervisor.cli.output import confirm, write_error, write_json, write_line
from midwatch_supervisor.cli.run.conduct import print_end
from midwatch_tests import factories as make
from midwatch_tests.command import Cli, new_attempt, new_task
from midwatch_tests.command import write as write_records
from midwatch_tests.harness import PastAttempts
from midwatch_tests.nodes import node

Capture = pytest.CaptureFixture[str]
Say = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.mark.parametrize(
    ("write", "said", "printed"),
    [
        (write_line, "a\x1b[2Jb\x9bc\td", "a\\x1b[2Jb\\x9bc    d\n"),
        (write_line, "title: a\nstatus: done\r\u2028x", "title: a\\nstatus: done\\r\\u2028x\n"),
        (write_line, "a\udcff.yaml", "a\\udcff.yaml\n"),
        (write_error, "[red]x[/red] **y**", "[red]x[/red] **y**\n"),
        (write_json, {"a": "é\nü", "n": None}, '{"a": "é\\nü", "n": null}\n'),
        (write_json, {"file": "a\udcff.yaml"}, '{"file": "a\\udcff.yaml"}\n'),
    ],
    ids=["steers", "begins a line", "no text", "markup", "object", "object with no text"],
)
def test_a_line_cannot_steer_the_terminal_or_begin_another(
    write: Callable[[object], None], said: object, printed: str, capsys: Capture
) -> None:
    write(said)
    assert "".join(capsys.readouterr()) == printed


def test_an_object_cannot_steer_the_terminal_and_says_the_same(capsys: Capture) -> None:
    text = "\x7f\x9b31m\u202e\u200b\u2028\U000e0041 日本語"
    write_json({"a": text})
    line = capsys.readouterr().out
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line) == {"a": text}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agrees"), [(" YES \n", True), ("y\n", False), ("\n", False), ("", False)]
)
def test_only_the_whole_word_agrees(
    monkeypatch: pytest.MonkeyPatch, answer: str, agrees: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert confirm("delete it") is agrees


@pytest.mark.usefixtures("named_by_the_environment")
async def test_the_times_of_all_commands_have_one_form(past: PastAttempts, cli: Cli) -> None:
    attempt = await past.attempt()
    lesson = await past.say(attempt, Lesson(text="Look first."))
    await past.say(attempt, Recall(lessons=(Recalled(lesson=lesson, method=Method.TASK, score=1),)))
    await past.end(attempt)
    await Nodes(past.journal).enter(node("node-a"), alive_seconds=60)
    await MonitorLeases(past.journal).take_post("escalate", holder="mon:1", seconds=60)
    commands = (f"lessons show {lesson}", "nodes", "db check", "forget shop --yes")
    said = [await cli.ask(*each.split()) for each in commands]
    found = re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', json.dumps(said))
    assert len(found) == 8
    assert all(re.fullmatch(r"[\dT:-]{19}\.\d{3}Z", each) for each in found), found


# -- a command that was given a journal names it in the commands that it tells ---------------

HINT = re.compile(r"`(midwatch [^`]+)`|^  (?:answer|go on|look|take) +(midwatch .+)$", re.MULTILINE)
HELD = make.intervention(Action.RESTART, needs_approval=True)


@pytest.mark.parametrize(
    ("records", "words", "told"),
    [
        ((HELD,), "status", "approve 4"),
        ((HELD,), "show fix", "approve 4"),
        ((make.ended(),), "tell fix More.", ""),
        ((), "resume --run 7", "status --all"),
        ((), "lessons show 9", "lessons list --all"),
        ((), "facts approve", "facts list"),
        ((), "cancel fix#1", "tell fix#1 --stop"),
        ((), "watch", "status"),
    ],
)
async def test_whatever_is_told_names_it(
    records: tuple[Record, ...], words: str, told: str, say: Say, journal: Journal, location: str
) -> None:
    attempt = await new_attempt(journal, await new_task(journal))
    await write_records(journal, attempt, attempt.started_at, make.transition(), *records)
    _, out, errors = await say(*words.split(), "--journal", location)
    hints = [first or second for first, second in HINT.findall(out + errors)]
    assert [each for each in hints if not each.endswith(f" --journal {location}")] == []
    assert not told or f"midwatch {told} --journal {location}" in hints


async def test_the_line_of_the_exit_code_names_it_too(capsys: Capture) -> None:
    with naming_journal("x.db"):
        await print_end([], 3)
    told = "then continue with `midwatch resume --journal x.db`\n"
    assert capsys.readouterr().out.endswith(told)
