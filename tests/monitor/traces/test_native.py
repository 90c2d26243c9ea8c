"""The trace format, line by line."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path

import pytest

from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import (
    Activity,
    Budget,
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Event,
    Lifecycle,
    Meter,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.traces import Damage, native, open_trace
from midwatch_monitor.traces.native import LineReader, write_event

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ON_A = (Edit(path="a.py"),)
ECHOED = (Edit(path="a.py", digest=digest("1\n")),)
"""What `echo 1 > a.py` does."""


def parse(*lines: Mapping[str, object]) -> Event | str:
    """The last of some lines as the reader of their trace takes it."""
    reader = LineReader()
    return [reader.read(line) for line in lines][-1]


def tool_step(**line: object) -> Step:
    """One tool line as a step."""
    step = parse({"step": 1, "kind": "tool", **line})
    assert isinstance(step, Step)
    return step


def write(path: Path, *lines: Mapping[str, object] | str) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_a_tool_line_becomes_a_step() -> None:
    line = {
        "step": 1,
        "kind": "tool",
        "tool": "edit_file",
        "args": {"path": "a.py", "b": [1]},
        "path": "a.py",
        "edit": True,
        "content_digest": "d",
        "ok": True,
        "exit_code": 0,
        "output": "done",
        "text": "I edit.",
        "at": "2026-11-21T12:00:00Z",
        "tokens": 812,
        "cost_usd": 0.004,
        "request": 4,
        "call": "c1",
    }
    assert parse(line) == Step(
        number=1,
        kind=StepKind.TOOL,
        at=NOON,
        request=4,
        tool="edit_file",
        args='{"b": [1], "path": "a.py"}',
        path="a.py",
        edits=(Edit(path="a.py", digest="d"),),
        ok=True,
        exit_code=0,
        output="done",
        text="I edit.",
        tokens=812,
        cost_usd=0.004,
        call="c1",
    )


def test_a_checkpoint_line_carries_its_checkpoint() -> None:
    line = {
        "step": 3,
        "kind": "checkpoint",
        "progress_percent": 40,
        "confidence": 70,
        "decision": "pivot",
        "blockers": ["b"],
        "files_done": ["a.py"],
        "notes": "n",
        "estimated_steps_left": 2,
    }
    assert parse({"kind": "state", "plan_step": 2}, line) == Step(
        number=3,
        kind=StepKind.CHECKPOINT,
        checkpoint=Checkpoint(
            progress_percent=40,
            confidence=70,
            decision=CheckpointDecision.PIVOT,
            blockers=("b",),
            files_done=("a.py",),
            notes="n",
            estimated_steps_left=2,
            plan_step=2,
        ),
    )


def test_a_state_line_names_only_what_changed() -> None:
    line = {
        "kind": "state",
        "at": "2026-11-21T13:00:00+01:00",
        "reflect": True,
        "lifecycle": "input-required",
        "activity": "command",
        "budget": {"requests": [12, 60], "tokens": [5, None]},
    }
    assert parse(line) == Change(
        at=NOON,
        reflect=True,
        lifecycle=Lifecycle.INPUT_REQUIRED,
        activity=Activity.COMMAND,
        budget=Budget(requests=Meter(used=12, limit=60), tokens=Meter(used=5)),
    )


def test_a_line_may_list_every_observed_edit() -> None:
    edits = [
        {"path": "a.py", "digest": "1", "before": "0"},
        {"path": "b", "writer": "person", "deleted": True},
    ]
    assert tool_step(ok=False, edits=edits).edits == (
        Edit(path="a.py", digest="1", before="0"),
        Edit(path="b", writer=Writer.PERSON, deleted=True),
    )


ECHO = "echo 1 > a.py"
SHELL = {"tool": "bash", "args": ECHO}
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"
VIEW = {"tool": "str_replace_editor", "args": {"command": "view", "path": "a.py"}}
EDIT = {"tool": "edit", "args": {"path": "a.py"}}
DIGEST = (Edit(path="a.py", digest="d"),)


@pytest.mark.parametrize(
    ("line", "edits"),
    [
        # What a shell writes is inferred.
        (SHELL, ECHOED),
        ({"tool": "", "args": ECHO}, ECHOED),
        ({"tool": "Bash", "args": {"command": ECHO}}, ECHOED),
        ({"tool": "terminal", "args": {"cmd": ECHO}}, ECHOED),
        ({"tool": "execute_bash", "args": '{"command": "echo 1 > a.py"}'}, ECHOED),
        ({"tool": "shell", "args": {"command": ["bash", "-lc", ECHO]}}, ECHOED),
        # Nothing is inferred from what is no command.
        ({"tool": "search", "args": "1 > a.py"}, ()),
        ({"tool": "search", "args": {"command": ECHO}}, ()),
        ({"tool": "", "args": {"path": "a.py"}}, ()),
        ({"tool": "", "args": '{"path": "echo 1 > a.py"}'}, ()),
        ({"tool": "", "args": '{"path": "echo 1 > a.py'}, ()),
        ({"tool": "bash", "args": [ECHO]}, ()),
        ({"tool": "bash", "args": {"command": 1}}, ()),
        # A command that failed may have written if it ran.
        ({**SHELL, "ok": False, "exit_code": 1}, ECHOED),
        ({**SHELL, "ok": False}, ()),
        ({**SHELL, "exit_code": 126}, ()),
        ({**SHELL, "exit_code": 127}, ()),
        # A tool that edits is known by its name.
        ({**VIEW, "args": {"command": "str_replace", "path": "a.py", "old_str": "a"}}, ON_A),
        ({"tool": "edit_file", "args": '{"path": "a.py", "old": "a"}'}, ON_A),
        ({"tool": "Edit", "args": {"file_path": "a.py", "old_string": "a"}}, ON_A),
        ({"tool": "apply_patch", "args": {"patch": PATCH}}, ON_A),
        ({"tool": "apply_patch", "args": PATCH}, ON_A),
        ({"tool": "replace", "args": {"file": "a.py"}}, ON_A),
        # An edit is of the file that the line or its arguments name.
        ({"tool": "change", "edit": True, "args": {"path": "a.py"}}, ON_A),
        ({"tool": "change", "edit": True, "args": {"target_file": "a.py"}}, ON_A),
        ({"tool": "change", "edit": True, "path": "a.py"}, ON_A),
        ({"tool": "edit", "path": "a.py"}, ON_A),
        # The digest of a content says that there is one.
        ({"tool": "put", "path": "a.py", "content_digest": "d"}, DIGEST),
        ({**EDIT, "content_digest": "d"}, DIGEST),
        (
            {"tool": "write_file", "args": {"path": "a.py", "content": "x"}},
            (Edit(path="a.py", digest=digest("x")),),
        ),
        # What only looks or was refused edits nothing.
        (VIEW, ()),
        ({**VIEW, "path": "a.py"}, ()),
        ({"tool": "read_file", "args": {}, "path": "a.py", "content_digest": "d"}, ()),
        ({"tool": "search", "args": {"path": "a.py"}}, ()),
        ({"tool": "edit", "args": "12:14\nx\nend_of_edit"}, ()),
        ({**EDIT, "edit": False}, ()),
        ({**EDIT, "edits": []}, ()),
        ({**EDIT, "kind": "message"}, ()),
        ({**EDIT, "ok": False}, ()),
        ({**EDIT, "exit_code": 2}, ()),
        ({**EDIT, "output": "String to replace not found"}, ()),
        ({"tool": "change", "path": "a.py", "edit": True, "output": "No replacement was made"}, ()),
    ],
)
def test_the_edits_of_a_line_that_does_not_list_them(
    line: Mapping[str, object], edits: tuple[Edit, ...]
) -> None:
    assert tool_step(**{"output": "done", **line}).edits == edits


def test_arguments_nested_without_end_are_told() -> None:
    args: list[object] = []
    for _ in range(100_000):
        args = [args]
    assert parse({"step": 1, "kind": "tool", "args": args}) == "nested too deeply"


@pytest.mark.parametrize("at", ["2026-11-21T12:00:00", "2026-11-21T12:00:00Z"])
def test_a_time_without_a_zone_is_taken_as_utc(at: str) -> None:
    assert parse({"kind": "state", "at": at}) == Change(at=NOON)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"step": 1}, "kind: Field required"),
        ({"kind": "tool"}, "step: Field required"),
        ({"step": 0, "kind": "tool"}, "step: Input should be greater than or equal to 1"),
        (
            {"step": 1, "kind": "checkpoint", "progress_percent": 101, "confidence": 1},
            "progress_percent: Input should be less than or equal to 100",
        ),
        ({"step": 1, "kind": "x"}, "kind: Input should be 'tool', 'message' or 'checkpoint'"),
    ],
)
def test_a_line_that_says_too_little_or_too_much_is_damage(
    line: dict[str, object], problem: str
) -> None:
    assert parse(line) == problem


def test_damage_is_told_with_its_line_and_skipped(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.jsonl",
        {"step": 1, "kind": "message"},
        "",
        "[]",
        '{"step": 2, "kind"',
        {"step": 3, "kind": "message"},
    )
    first, damaged, broken, last = open_trace(path)
    assert (first, last) == (
        Step(number=1, kind=StepKind.MESSAGE),
        Step(number=3, kind=StepKind.MESSAGE),
    )
    assert damaged == Damage(line=3, problem="not a JSON object")
    assert isinstance(broken, Damage)
    assert broken.line == 4


def test_bytes_that_are_no_text_and_nesting_without_end_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"step":1,"kind":"message"}\n\xff\xfe\n' + b"[" * 200_000 + b"\n")
    assert [type(each) for each in open_trace(path)] == [Step, Damage, Damage]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('\n\n{"kind":"state"}\n', True),
        ('\ufeff{"step":1,"kind":"tool"}', True),
        ('{"type":"user"}\n', False),
        ('{"kind":"MessageEvent"}\n', False),
        ('{"kind":["tool"]}\n', False),
        ("hello\n", False),
        ("", False),
    ],
)
def test_a_trace_is_known_by_its_first_line(tmp_path: Path, text: str, known: bool) -> None:
    path = tmp_path / "some.file"
    path.write_text(text, encoding="utf-8")
    assert native.recognise(path) is known


def test_a_file_in_another_format_is_refused_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "notes.txt", "hello")
    with pytest.raises(TraceError, match=r"notes\.txt: not in the midwatch trace format"):
        open_trace(path, "midwatch")


def test_a_missing_file_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        open_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match="no trace format is called 'papyrus'"):
        open_trace(tmp_path / "none.jsonl", "papyrus")


@pytest.mark.parametrize(
    "args", ['{"b":2,"a": [1, "é"]}', ' {"a": [1, "\\u00e9"], "b": 2}\n', {"b": 2, "a": [1, "é"]}]
)
def test_arguments_as_the_text_of_an_object_are_equal_to_that_object(args: object) -> None:
    assert tool_step(tool="goto", args=args).args == '{"a": [1, "é"], "b": 2}'


@pytest.mark.parametrize("args", ["{ ls; }", '{"a": 1', "[1,2]", " ls  -l ", '"a"'])
def test_other_texts_stay_as_they_are(args: str) -> None:
    assert tool_step(tool="bash", args=args).args == args


@pytest.mark.parametrize("kind", list(StepKind)[:2])
@pytest.mark.parametrize("args", ['{"b":1,  "a":2}', ' {"a": 1}', '{"a": 1}'])
def test_written_arguments_come_back_to_the_letter(kind: StepKind, args: str) -> None:
    step = Step(number=1, kind=kind, tool="goto", args=args)
    assert parse(json.loads(write_event(step))) == step


@pytest.mark.parametrize("none", [nan, inf, -inf])
def test_a_number_that_is_none_is_not_written(none: float) -> None:
    meters = Budget(minutes=Meter(used=1, limit=none), tokens=Meter(used=none, limit=9))
    line = json.loads(write_event(Change(budget=meters)), parse_constant=pytest.fail)
    assert line["budget"] == {"minutes": [1, None], "tokens": [0, 9]}


def test_arguments_that_hold_what_is_no_json_stay_a_text() -> None:
    step = Step(number=1, kind=StepKind.TOOL, tool="put", args='{"a": NaN}')
    line = json.loads(write_event(step), parse_constant=pytest.fail)
    assert line["args"] == '{"a": NaN}'


def test_states_may_have_underscores() -> None:
    line = {"kind": "state", "activity": "rate_limited", "lifecycle": "input_required"}
    assert parse(line) == Change(activity=Activity.RATE_LIMITED, lifecycle=Lifecycle.INPUT_REQUIRED)


def test_running_what_a_call_wrote_edits_what_that_writes() -> None:
    args = {"path": "fix.py", "content": "open('a.py', 'w').write('1')"}
    wrote = {"step": 1, "kind": "tool", "tool": "write_file", "args": args}
    run = parse(wrote, {"step": 2, "kind": "tool", "tool": "bash", "args": "python fix.py"})
    assert isinstance(run, Step)
    assert [edit.path for edit in run.edits] == ["a.py"]


@pytest.mark.parametrize("key", ["speaker", "sender", "name"])
def test_a_turn_begins_with_who_says_it(key: str) -> None:
    said = parse({"step": 1, "kind": "message", key: "Lead", "text": "Begin."})
    assert isinstance(said, Step)
    assert said.text == "[Lead] Begin."
    again = parse({"step": 1, "kind": "message", key: "Lead", "text": "Lead: Begin."})
    assert isinstance(again, Step)
    assert again.text == "Lead: Begin."
