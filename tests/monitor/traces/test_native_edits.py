"""Which edits a line of the trace format tells of, where it does not list them."""

import json
from collections.abc import Mapping

import pytest

from midwatch_monitor.records import Activity, Change, Edit, Lifecycle, Step, StepKind
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.traces.native import Reader, written

ON_A = (Edit(path="a.py"),)
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"


def parse(**line: object) -> Step:
    """One tool line as a step."""
    step = Reader().read({"step": 1, "kind": "tool", **line})
    assert isinstance(step, Step)
    return step


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
    assert parse(tool=tool, args=args, output="done").edits == ON_A


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
    assert parse(**{"tool": "change", **line}).edits == ON_A


def test_the_digest_of_a_content_says_that_there_is_one() -> None:
    edits = (Edit(path="a.py", digest="d"),)
    assert parse(tool="put", path="a.py", content_digest="d").edits == edits
    assert parse(tool="edit", args={"path": "a.py"}, content_digest="d").edits == edits


def test_a_whole_content_has_its_digest() -> None:
    step = parse(tool="write_file", args={"path": "a.py", "content": "x"})
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
    assert parse(**line).edits == ()


@pytest.mark.parametrize(
    "args", ['{"b":2,"a": [1, "é"]}', ' {"a": [1, "\\u00e9"], "b": 2}\n', {"b": 2, "a": [1, "é"]}]
)
def test_arguments_as_the_text_of_an_object_are_equal_to_that_object(args: object) -> None:
    assert parse(tool="goto", args=args).args == '{"a": [1, "é"], "b": 2}'


@pytest.mark.parametrize("args", ["{ ls; }", '{"a": 1', "[1,2]", " ls  -l ", '"a"'])
def test_other_texts_stay_as_they_are(args: str) -> None:
    assert parse(tool="bash", args=args).args == args


@pytest.mark.parametrize("kind", list(StepKind)[:2])
@pytest.mark.parametrize("args", ['{"b":1,  "a":2}', ' {"a": 1}', '{"a": 1}'])
def test_written_arguments_come_back_to_the_letter(kind: StepKind, args: str) -> None:
    step = Step(number=1, kind=kind, tool="goto", args=args)
    assert Reader().read(json.loads(written(step))) == step


def test_states_may_have_underscores() -> None:
    line = {"kind": "state", "activity": "rate_limited", "lifecycle": "input_required"}
    assert Reader().read(line) == Change(
        activity=Activity.RATE_LIMITED, lifecycle=Lifecycle.INPUT_REQUIRED
    )


def test_running_what_a_call_wrote_edits_what_that_writes() -> None:
    reader = Reader()
    args = {"path": "fix.py", "content": "open('a.py', 'w').write('1')"}
    reader.read({"step": 1, "kind": "tool", "tool": "write_file", "args": args})
    run = reader.read({"step": 2, "kind": "tool", "tool": "bash", "args": "python fix.py"})
    assert isinstance(run, Step)
    assert [edit.path for edit in run.edits] == ["a.py"]
