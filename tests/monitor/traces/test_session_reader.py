"""What holds for every format that is read line by line."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Change, Edit, Event, Lifecycle, Step, StepKind
from midwatch_monitor.replay.replay import AlertLine, replay
from midwatch_monitor.traces import (
    FORMATS,
    claude_code,
    codex,
    gemini,
    open_trace,
    qwen,
    recognise,
)
from midwatch_monitor.traces.foreign import JsonNode, TraceItem
from midwatch_monitor.traces.json_stream import MAX_LINE, Damage
from midwatch_monitor.traces.session_reader import (
    KEPT,
    SessionReader,
    Tail,
    find_sessions,
    parent_of,
    typed_text,
)
from midwatch_tests.sessions import DIALECTS, NOON, Dialect, Lines, write

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


def read_events(reader: SessionReader, lines: Lines) -> list[Event]:
    """What the reader tells of the lines, one after the other."""
    events = [event for each in lines for event in reader.take(JsonNode(each))]
    return [*events, *reader.finish()]


def steps(path: Path) -> list[Step]:
    return [event for event in open_trace(path) if isinstance(event, Step)]


def event_labels(path: Path, format: str) -> list[object]:
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
        *((StepKind.MESSAGE, "It fails."), (StepKind.MESSAGE, "Left."))
    ]
    assert [(each.number, each.request) for each in (sed, make, fails, left)] == [
        *((1, 1), (2, 2), (3, 3), (4, 4))
    ]


def test_lines_taken_one_by_one_give_the_same_as_the_whole_file(
    tmp_path: Path, format: str, dialect: Dialect
) -> None:
    path = write(tmp_path / "s.jsonl", run(dialect))
    reader = READERS[format]()
    events = read_events(reader, run(dialect))
    assert events == list(open_trace(path, format))
    heading = reader.heading
    assert (heading.id, heading.folder, heading.prompt) == ("s1", "/repo", "Mend it.")
    changes = [event for event in events if isinstance(event, Change)]
    assert [(each.lifecycle, each.at and each.at.hour) for each in changes] == [
        (Lifecycle.INPUT_REQUIRED, 12),
        (Lifecycle.WORKING, 17),
        (Lifecycle.INPUT_REQUIRED, 17),
    ]


def test_the_wait_is_told_with_the_line_that_ends_the_turn(format: str, dialect: Dialect) -> None:
    reader = READERS[format]()
    lines = [*dialect.head, *dialect.prompt("Hello", NOON), *dialect.said("Hi.", NOON)]
    events = [event for each in lines for event in reader.take(JsonNode(each))]
    assert Lifecycle.INPUT_REQUIRED in {
        each.lifecycle for each in events if isinstance(each, Change)
    }


@pytest.mark.parametrize(("answered", "silent"), [(LATER, False), (EVENING, True)])
def test_silence_counts_from_the_prompt_and_not_while_a_person_is_waited_for(
    tmp_path: Path, dialect: Dialect, answered: str, silent: bool
) -> None:
    lines = [*run(dialect)[: -len(dialect.said("", ""))], *dialect.said("Left.", answered)]
    path = write(tmp_path / "s.jsonl", lines)
    settings = Settings.model_validate({"rules": {"silence": {"command": "30m"}}})
    found = {each.rule for each in replay(path, settings) if isinstance(each, AlertLine)}
    assert found == ({"silence"} if silent else set())


def test_a_call_without_a_result_stays_and_one_that_is_written_twice_counts_once(
    tmp_path: Path, dialect: Dialect
) -> None:
    call = [*dialect.called("make", "c1"), *dialect.came("make", "c1", "x", 0)]
    lines = [*dialect.head, *call, *call, *dialect.called(SED, "c2")]
    _, last = steps(write(tmp_path / "s.jsonl", lines))
    assert (last.args, last.ok, last.exit_code, last.edits) == (SED, None, None, ())


def test_a_damaged_line_loses_nothing_else(tmp_path: Path, format: str, dialect: Dialect) -> None:
    whole = write(tmp_path / "whole.jsonl", run(dialect))
    kinds = ["user", "assistant", "tool_result", "gemini", "response_item", "event_msg"]
    empty: Lines = [{"type": kind, "message": {}, "payload": {}} for kind in kinds]
    strange: Lines = [{"type": 7, "payload": []}, {"type": "new-kind", "x": {}}, {}, *empty]
    text = b"".join(json.dumps(each).encode() + b"\n" for each in strange)
    bad, long = b'\xff\xfe\n{"type": \n[1]\n', b'"' + b"x" * MAX_LINE + b'"\n'
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(bad + text + whole.read_bytes() + bad + long)
    assert event_labels(path, format) == event_labels(whole, format)
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


# -- where sessions lie ------------------------------------------------------------------------

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACES = {
    "claude-code": ".claude/projects/-repo/s.jsonl",
    "codex": ".codex/sessions/2026/11/21/rollout-1.jsonl",
    "gemini": ".gemini/tmp/repo/chats/session-1.jsonl",
    "qwen": ".qwen/projects/-repo/chats/s.jsonl",
}


def write_session(path: Path, at: datetime = NOW) -> Path:
    """A file that was last written then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def list_sessions(agent: str, home: Path, **environ: str) -> list[Path]:
    return find_sessions(KEPT[agent], environ, home, since=NOW)


@pytest.mark.parametrize("agent", list(KEPT))
def test_a_program_keeps_its_sessions_below_its_folder(tmp_path: Path, agent: str) -> None:
    session = write_session(tmp_path / PLACES[agent])
    write_session(session.with_name("notes.txt"))
    write_session(session.parent.parent / "else" / "deeper" / "other.jsonl")
    assert list_sessions(agent, tmp_path) == [session]
    assert KEPT[agent].agent == agent
    assert agent in FORMATS


@pytest.mark.parametrize(
    ("agent", "variable"), [("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")]
)
def test_a_variable_names_another_folder_unless_it_is_empty(
    tmp_path: Path, agent: str, variable: str
) -> None:
    at_home = write_session(tmp_path / PLACES[agent])
    place = PLACES[agent].partition("/")[2]
    elsewhere = write_session(tmp_path / "else" / place)
    assert list_sessions(agent, tmp_path, **{variable: str(tmp_path / "else")}) == [elsewhere]
    assert list_sessions(agent, tmp_path, **{variable: ""}) == [at_home]


def test_sub_agents_have_sessions_of_their_own(tmp_path: Path) -> None:
    session = write_session(tmp_path / ".claude" / "projects" / "-repo" / "s.jsonl")
    child = write_session(session.with_suffix("") / "subagents" / "agent-1.jsonl")
    assert list_sessions("claude-code", tmp_path) == [child, session]
    assert parent_of(child) == session
    assert parent_of(session) is None


def test_what_was_last_written_before_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / ".qwen" / "projects" / "-repo" / "chats"
    write_session(folder / "old.jsonl", NOW - timedelta(seconds=1))
    new = [write_session(folder / f"{name}.jsonl", NOW + timedelta(seconds=1)) for name in "ba"]
    assert list_sessions("qwen", tmp_path) == sorted(new)


def test_links_that_lead_out_and_what_is_no_file_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".qwen" / "projects" / "-repo" / "chats"
    session = write_session(folder / "s.jsonl")
    outside = write_session(tmp_path / "else" / "chats" / "o.jsonl")
    (folder / "inside.jsonl").symlink_to(session)
    (folder / "outside.jsonl").symlink_to(outside)
    (folder / "nowhere.jsonl").symlink_to(folder / "gone")
    (folder / "itself.jsonl").symlink_to(folder / "itself.jsonl")
    (folder / "folder.jsonl").mkdir()
    (tmp_path / ".qwen" / "projects" / "linked").symlink_to(outside.parent.parent)
    assert list_sessions("qwen", tmp_path) == [folder / "inside.jsonl", session]
    assert list_sessions("codex", tmp_path) == []  # it was never started


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_folders_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    session = write_session(tmp_path / ".qwen" / "projects" / "a" / "chats" / "s.jsonl")
    closed = write_session(tmp_path / ".qwen" / "projects" / "b" / "chats" / "s.jsonl").parent
    closed.chmod(0)
    try:
        assert list_sessions("qwen", tmp_path) == [session]
    finally:
        closed.chmod(0o700)


# -- a file that grows -------------------------------------------------------------------------


def _line(number: int) -> str:
    return json.dumps({"n": number}) + "\n"


def _numbers(tail: Tail) -> list[int | str]:
    """What was read: the number of each object, or what was wrong."""
    return [
        item.node["n"].count if isinstance(item, TraceItem) else item.problem
        for item in tail.read()
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def tail(path: Path) -> Iterator[Tail]:
    """Of the file, which is not there yet."""
    opened = Tail(path)
    yield opened
    opened.close()


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_lines_are_read_once_and_a_line_counts_when_its_end_is_there(
    path: Path, tail: Tail
) -> None:
    assert _numbers(tail) == []  # no such file yet
    _append(path, _line(1) + _line(2)[:4])
    assert _numbers(tail) == [1]
    _append(path, _line(2)[4:] + _line(3))
    assert _numbers(tail) == [2, 3]
    assert _numbers(tail) == []
    path.write_text(_line(4), encoding="utf-8")  # shorter: it is read from its start
    assert _numbers(tail) == [4]


def test_of_a_file_that_was_replaced_the_rest_is_read_before_the_new_one(
    path: Path, tail: Tail
) -> None:
    _append(path, _line(1))
    assert _numbers(tail) == [1]
    _append(path, _line(2))
    path.rename(path.with_suffix(".old"))
    _append(path, _line(3))
    assert _numbers(tail) == [2, 3]


def test_a_file_that_was_removed_may_come_back(path: Path, tail: Tail) -> None:
    _append(path, _line(1))
    assert _numbers(tail) == [1]
    path.unlink()
    assert _numbers(tail) == []
    _append(path, _line(2))
    assert _numbers(tail) == [2]


def test_what_cannot_be_read_costs_nothing_else(path: Path, tail: Tail) -> None:
    path.write_bytes(b"no json\n\xff\xfe\n\n" + _line(1).encode())
    assert [type(each) for each in tail.read()] == [Damage, Damage, TraceItem]


def test_a_line_that_is_too_long_is_not_held_in_memory(path: Path, tail: Tail) -> None:
    path.write_bytes(b'{"n": "' + b"x" * MAX_LINE + b'"}\n' + _line(1).encode())
    # A look that only finds the middle of a line answers nothing.
    read = [each for _ in range(20) for each in _numbers(tail)]
    assert read == [f"longer than {MAX_LINE} bytes", 1]


def test_a_pipe_under_the_name_keeps_nobody_waiting(path: Path) -> None:
    os.mkfifo(path)
    assert Tail(path).read() == []
