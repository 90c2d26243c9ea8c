"""Sessions of qwen-code as steps."""

from hashlib import blake2b
from pathlib import Path

import pytest

from midwatch_monitor.records import Edit, Step
from midwatch_monitor.traces import open_trace, recognise
from midwatch_stage.sessions import Line, qwen_line, qwen_result, write

SHELL = "run_shell_command"
SED = {"command": "sed -i s/a/b/ a.py"}


def steps(folder: Path, *lines: object) -> list[Step]:
    path = write(folder / "s.jsonl", lines)
    assert recognise(path) == "qwen"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def call(tool: str, given: object, call: str = "c1") -> Line:
    return {"functionCall": {"id": call, "name": tool, "args": given}}


def called(*parts: Line) -> Line:
    return qwen_line("assistant", *parts, usageMetadata={"totalTokenCount": 9})


def test_what_was_said_and_cost_goes_to_the_first_call(tmp_path: Path) -> None:
    thought: Line = {"text": "hm", "thought": True}
    both = call("read_file", {"absolute_path": "/repo/src/a.py"}), call("glob", {}, "c2")
    first, second = steps(
        tmp_path,
        called(thought, {"text": "I look."}, *both),
        qwen_result("two", call="c2"),
        qwen_result("one"),
    )
    assert (first.call, first.text, first.tokens, first.output) == ("c2", "", 0, "two")
    assert (second.call, second.text, second.tokens, second.path) == (
        "c1",
        "I look.",
        9,
        "src/a.py",
    )
    assert (first.request, second.request, second.exit_code) == (1, 1, None)


@pytest.mark.parametrize(
    ("output", "told", "code", "ok", "written"),
    [
        ("", {"resultDisplay": {"output": "x", "exitCode": 0}}, 0, True, True),
        ("", {"resultDisplay": {"output": "x", "exitCode": 1}}, 1, False, True),
        ("Output: x\nExit Code: 2\nSignal: (none)", {"resultDisplay": "x"}, 2, False, True),
        ("Output: x\nExit Code: 127\nSignal: (none)", {}, 127, False, False),
        ("", {"resultDisplay": {"text": "started", "exitCode": None}}, None, True, True),
        ("denied", {"status": "error"}, None, False, False),
        ("", {"status": "cancelled"}, None, False, False),
    ],
)
def test_a_command_has_an_exit_code(
    tmp_path: Path, output: str, told: Line, code: int | None, ok: bool, written: bool
) -> None:
    (step,) = steps(tmp_path, called(call(SHELL, SED)), qwen_result(output, told))
    assert (step.args, step.exit_code, step.ok) == (SED["command"], code, ok)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


@pytest.mark.parametrize(
    ("tool", "digest"),
    [("edit", ""), ("write_file", blake2b("é".encode(), digest_size=16).hexdigest())],
)
def test_an_editing_tool_changes_its_file_unless_it_fails(
    tmp_path: Path, tool: str, digest: str
) -> None:
    given = {"file_path": "/repo/a.py", "content": "é"}
    refused: Line = {"functionResponse": {"id": "c2", "response": {"error": "no such text"}}}
    done, failed = steps(
        tmp_path,
        called(call(tool, given), call(tool, given, "c2")),
        qwen_result("ok"),
        qwen_line("tool_result", refused),
    )
    assert (done.path, done.edits) == ("a.py", (Edit(path="a.py", digest=digest),))
    assert (failed.ok, failed.output, failed.edits) == (False, "no such text", ())


@pytest.mark.parametrize(
    "other",
    [
        qwen_line("system", subtype="ui_telemetry", systemPayload={}),
        qwen_line("user", {"text": "A task has ended."}, subtype="notification"),
        qwen_line("assistant", {"text": "hm", "thought": True}),
        qwen_result("nobody asked", call="c9"),
    ],
)
def test_other_lines_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = steps(tmp_path, other, qwen_line("assistant", {"text": "Done."}))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]
