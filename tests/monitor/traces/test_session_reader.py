"""What holds for every format that is read line by line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Change, Edit, Event, Lifecycle, Step, StepKind
from midwatch_monitor.replay.replay import AlertLine, replay
from midwatch_monitor.traces import Damage, claude_code, codex, gemini, open_trace, qwen, recognise
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.json_stream import MAX_LINE
from midwatch_monitor.traces.session_reader import SessionReader, typed_text
from midwatch_stage.sessions import DIALECTS, NOON, Dialect, Lines, write

READERS: dict[str, Callable[[], SessionReader]] = {
    "claude-code": claude_code.ClaudeCodeSession,
    "codex": codex.CodexSession,
    "gemini": gemini.GeminiSession,
    "qwen": qwen.QwenSession,
}
LATER = "2026-11-21T17:00:00Z"
EVENING = "2026-11-21T18:00:00Z"
SED = "sed -i s/a/b/ a.py"


@pytest.fixture(params=list(READERS))
def format(request: pytest.FixtureRequest) -> str:
    """The name of the format."""
    return request.param


@pytest.fixture
def dialect(format: str) -> Dialect:
    """How its lines are written."""
    return DIALECTS[format]


def run(dialect: Dialect) -> Lines:
    """Two prompts; what was asked first takes two commands, of which one fails."""
    return [
        *dialect.head,
        *dialect.prompt("Mend it.", NOON),
        *dialect.called(SED, "c1"),
        *dialect.came(SED, "c1", "", 0),
        *dialect.called("make", "c2"),
        *dialect.came("make", "c2", "boom", 2),
        *dialect.said("It fails.", NOON),
        *dialect.prompt("Leave it.", LATER),
        *dialect.said("Left.", LATER),
    ]


def taken(reader: SessionReader, lines: Lines) -> list[Event]:
    """What the reader tells of the lines, one after the other."""
    events = [event for each in lines for event in reader.take(JsonNode(each))]
    return [*events, *reader.finish()]


def steps(path: Path) -> list[Step]:
    return [event for event in open_trace(path) if isinstance(event, Step)]


def told(path: Path, format: str) -> list[object]:
    """For each event what tells it from the others."""
    return [
        event.tool or event.text if isinstance(event, Step) else event.lifecycle
        for event in open_trace(path, format)
        if not isinstance(event, Damage)
    ]


def test_a_whole_run_is_read(tmp_path: Path, format: str, dialect: Dialect) -> None:
    path = write(tmp_path / "s.jsonl", run(dialect))
    assert recognise(path) == format
    sed, make, fails, left = steps(path)
    assert (sed.args, sed.ok, sed.exit_code, sed.edits) == (SED, True, 0, (Edit(path="a.py"),))
    assert (make.args, make.ok, make.exit_code, make.call) == ("make", False, 2, "c2")
    assert "boom" in make.output
    assert [(each.kind, each.text) for each in (fails, left)] == [
        (StepKind.MESSAGE, "It fails."),
        (StepKind.MESSAGE, "Left."),
    ]
    assert [each.number for each in (sed, make, fails, left)] == [1, 2, 3, 4]
    assert [each.request for each in (sed, make, fails, left)] == [1, 2, 3, 4]


def test_lines_taken_one_by_one_give_the_same_as_the_whole_file(
    tmp_path: Path, format: str, dialect: Dialect
) -> None:
    path = write(tmp_path / "s.jsonl", run(dialect))
    assert taken(READERS[format](), run(dialect)) == list(open_trace(path, format))


def test_a_turn_that_has_ended_waits_for_the_next_prompt(format: str, dialect: Dialect) -> None:
    reader = READERS[format]()
    changes = [event for event in taken(reader, run(dialect)) if isinstance(event, Change)]
    assert [each.lifecycle for each in changes] == [
        Lifecycle.INPUT_REQUIRED,
        Lifecycle.WORKING,
        Lifecycle.INPUT_REQUIRED,
    ]
    assert [each.at and each.at.hour for each in changes] == [12, 17, 17]


def test_the_wait_is_told_with_the_line_that_ends_the_turn(format: str, dialect: Dialect) -> None:
    reader = READERS[format]()
    lines = [*dialect.head, *dialect.prompt("Hello", NOON), *dialect.said("Hi.", NOON)]
    events = [event for each in lines for event in reader.take(JsonNode(each))]
    assert Lifecycle.INPUT_REQUIRED in {
        each.lifecycle for each in events if isinstance(each, Change)
    }


def test_the_heading_says_what_was_asked_first_and_where(format: str, dialect: Dialect) -> None:
    reader = READERS[format]()
    taken(reader, run(dialect))
    heading = reader.heading
    assert (heading.id, heading.folder, heading.prompt) == ("s1", "/repo", "Mend it.")


@pytest.mark.parametrize(("answered", "silent"), [(LATER, False), (EVENING, True)])
def test_silence_counts_from_the_prompt_and_not_while_a_person_is_waited_for(
    tmp_path: Path, dialect: Dialect, answered: str, silent: bool
) -> None:
    lines = [*run(dialect)[: -len(dialect.said("", ""))], *dialect.said("Left.", answered)]
    path = write(tmp_path / "s.jsonl", lines)
    settings = Settings.model_validate({"rules": {"silence": {"command": "30m"}}})
    found = {each.rule for each in replay(path, settings) if isinstance(each, AlertLine)}
    assert found == ({"silence"} if silent else set())


def test_a_result_that_never_comes_leaves_the_call_at_the_end(
    tmp_path: Path, dialect: Dialect
) -> None:
    path = write(tmp_path / "s.jsonl", [*dialect.head, *dialect.called(SED, "c1")])
    (step,) = steps(path)
    assert (step.args, step.ok, step.exit_code, step.edits) == (SED, None, None, ())


def test_a_call_that_is_written_twice_counts_once(tmp_path: Path, dialect: Dialect) -> None:
    call = [*dialect.called("make", "c1"), *dialect.came("make", "c1", "x", 0)]
    path = write(tmp_path / "s.jsonl", [*dialect.head, *call, *call])
    assert len(steps(path)) == 1


def test_a_damaged_line_loses_nothing_else(tmp_path: Path, format: str, dialect: Dialect) -> None:
    whole = write(tmp_path / "whole.jsonl", run(dialect))
    kinds = ["user", "assistant", "tool_result", "gemini", "response_item", "event_msg"]
    empty: Lines = [{"type": kind, "message": {}, "payload": {}} for kind in kinds]
    strange: Lines = [{"type": 7, "payload": []}, {"type": "new-kind", "x": {}}, {}, *empty]
    text = b"".join(json.dumps(each).encode() + b"\n" for each in strange)
    bad, long = b'\xff\xfe\n{"type": \n[1]\n', b'"' + b"x" * MAX_LINE + b'"\n'
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(bad + text + whole.read_bytes() + bad + long)
    assert told(path, format) == told(whole, format)
    damage = [event for event in open_trace(path, format) if isinstance(event, Damage)]
    assert [each.line for each in damage[:3]] == [1, 2, 3]
    assert len(damage) == 7


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("Mend <b>it</b>.", "Mend <b>it</b>."),
        ("<command-name>/init</command-name>\n<command-args></command-args>", ""),
        ("<system-reminder>x</system-reminder>\nMend it.", "Mend it."),
        ("<hook_context>never closed", ""),
    ],
)
def test_what_programs_put_around_a_prompt_is_left_out(text: str, prompt: str) -> None:
    assert typed_text(text) == prompt
