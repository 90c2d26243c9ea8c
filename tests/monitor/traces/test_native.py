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


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("bash", "echo 1 > a.py"),
        ("", "echo 1 > a.py"),
        ("Bash", {"command": "echo 1 > a.py"}),
        ("terminal", {"cmd": "echo 1 > a.py"}),
        ("execute_bash", '{"command": "echo 1 > a.py"}'),
        ("shell", {"command": ["bash", "-lc", "echo 1 > a.py"]}),
    ],
)
def test_what_a_shell_writes_is_inferred_where_a_line_says_nothing_of_edits(
    tool: str, args: object
) -> None:
    assert tool_step(tool=tool, args=args).edits == ECHOED


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("search", "1 > a.py"),
        ("search", {"command": "echo 1 > a.py"}),
        ("", {"path": "a.py"}),
        ("", '{"path": "echo 1 > a.py"}'),
        ("", '{"path": "echo 1 > a.py'),
        ("bash", ["echo 1 > a.py"]),
        ("bash", {"command": 1}),
    ],
)
def test_nothing_is_inferred_from_what_is_no_command(tool: str, args: object) -> None:
    assert tool_step(tool=tool, args=args).edits == ()


@pytest.mark.parametrize(
    ("result", "edits"),
    [
        ({"ok": False, "exit_code": 1}, ECHOED),
        ({"ok": False}, ()),
        ({"exit_code": 126}, ()),
        ({"exit_code": 127}, ()),
    ],
)
def test_a_command_that_failed_may_have_written_if_it_ran(
    result: dict[str, object], edits: tuple[Edit, ...]
) -> None:
    assert tool_step(tool="bash", args="echo 1 > a.py", **result).edits == edits


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


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "a"}),
        ("edit_file", '{"path": "a.py", "old": "a"}'),
        ("Edit", {"file_path": "a.py", "old_string": "a"}),
        ("apply_patch", {"patch": PATCH}),
        ("apply_patch", PATCH),
        ("replace", {"file": "a.py"}),
    ],
)
def test_a_tool_that_edits_is_known_by_its_name(tool: str, args: object) -> None:
    assert tool_step(tool=tool, args=args, output="done").edits == ON_A


@pytest.mark.parametrize(
    "line",
    [
        {"edit": True, "args": {"path": "a.py"}},
        {"edit": True, "args": {"target_file": "a.py"}},
        {"edit": True, "path": "a.py"},
        {"tool": "edit", "path": "a.py"},
    ],
)
def test_an_edit_is_of_the_file_that_the_line_or_its_arguments_name(
    line: Mapping[str, object],
) -> None:
    assert tool_step(**{"tool": "change", **line}).edits == ON_A


def test_the_digest_of_a_content_says_that_there_is_one() -> None:
    edits = (Edit(path="a.py", digest="d"),)
    assert tool_step(tool="put", path="a.py", content_digest="d").edits == edits
    assert tool_step(tool="edit", args={"path": "a.py"}, content_digest="d").edits == edits


def test_a_whole_content_has_its_digest() -> None:
    step = tool_step(tool="write_file", args={"path": "a.py", "content": "x"})
    assert step.edits == (Edit(path="a.py", digest=digest("x")),)


@pytest.mark.parametrize(
    "line",
    [
        {"tool": "str_replace_editor", "args": {"command": "view", "path": "a.py"}},
        {"tool": "str_replace_editor", "args": {"command": "view", "path": "a.py"}, "path": "a.py"},
        {"tool": "read_file", "args": {"path": "a.py"}, "path": "a.py", "content_digest": "d"},
        {"tool": "search", "args": {"path": "a.py"}},
        {"tool": "edit", "args": "12:14\nx\nend_of_edit"},
        {"tool": "edit", "args": {"path": "a.py"}, "edit": False},
        {"tool": "edit", "args": {"path": "a.py"}, "edits": []},
        {"tool": "edit", "args": {"path": "a.py"}, "kind": "message"},
        {"tool": "edit", "args": {"path": "a.py"}, "ok": False},
        {"tool": "edit", "args": {"path": "a.py"}, "exit_code": 2},
        {"tool": "edit", "args": {"path": "a.py"}, "output": "String to replace not found"},
        {"tool": "change", "path": "a.py", "edit": True, "output": "No replacement was performed"},
    ],
)
def test_what_only_looks_or_was_refused_edits_nothing(line: dict[str, object]) -> None:
    assert tool_step(**line).edits == ()


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
