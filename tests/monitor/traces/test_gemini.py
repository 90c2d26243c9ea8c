"""Sessions of Gemini CLI and of qwen-code, which began as a copy of it, as steps."""

import json
from hashlib import blake2b
from pathlib import Path

import pytest

from midwatch_monitor.records import Edit, Lifecycle, Step, StepKind
from midwatch_monitor.traces import Damage, find_traces, open_trace, recognise
from midwatch_tests.sessions import Line, gemini_call, gemini_line, qwen_line, qwen_result, write

HEAD: Line = {"sessionId": "s1", "projectHash": "h", "kind": "main"}
SHELL = "run_shell_command"
SED: Line = {"command": "sed -i s/a/b/ a.py"}
WRITE: Line = {"file_path": "/repo/a.py", "content": "é"}
DIGEST = blake2b("é".encode(), digest_size=16).hexdigest()


def steps(folder: Path, *lines: object) -> list[Step]:
    """The steps of a session of Gemini CLI in the project `/repo`."""
    (folder / "p" / "chats").mkdir(parents=True)
    (folder / "p" / ".project_root").write_text("/repo\n")
    path = write(folder / "p" / "chats" / "session-1.jsonl", [HEAD, *lines])
    assert recognise(path) == "gemini"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def qwen_steps(folder: Path, *lines: object) -> list[Step]:
    path = write(folder / "s.jsonl", lines)
    assert recognise(path) == "qwen"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def answer_line(*calls: Line, text: str = "") -> Line:
    return gemini_line("gemini", "m1", text, tokens={"total": 9}, toolCalls=list(calls))


def qwen_answer_line(*calls: tuple[str, Line], parts: tuple[Line, ...] = ()) -> Line:
    """An answer of qwen-code with calls `c1`, `c2` …"""
    told = [
        {"functionCall": {"id": f"c{n}", "name": tool, "args": given}}
        for n, (tool, given) in enumerate(calls, start=1)
    ]
    return qwen_line("assistant", *parts, *told, usageMetadata={"totalTokenCount": 9})


def test_a_message_that_is_written_again_is_one_answer(tmp_path: Path) -> None:
    call = gemini_call("read_file", {"file_path": "/repo/src/a.py"}, "x")
    second = gemini_call("glob", {}, "x", call="c2")
    early = gemini_line("gemini", "m1", "I lo", tokens=None)
    read, glob = steps(
        tmp_path,
        early,
        answer_line(call, text="I look."),
        answer_line(call, second, text="I look."),
    )
    assert (read.kind, read.tool, read.path) == (StepKind.TOOL, "read_file", "src/a.py")
    assert (read.text, read.tokens, read.request) == ("I look.", 9, 1)
    assert (read.ok, read.exit_code, read.output) == (True, None, "x")
    assert (glob.call, glob.text, glob.request) == ("c2", "", 1)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_session_that_is_one_document_has_the_same_steps(
    tmp_path: Path, indent: int | None
) -> None:
    look = answer_line(gemini_call("glob", {}, "x"), text="I look.")
    said = [gemini_line("user", "u1", "Look."), look]
    whole = tmp_path / "session-1.json"
    whole.write_text(json.dumps({**HEAD, "messages": said}, indent=indent))
    by_lines = write(tmp_path / "session-1.jsonl", [HEAD, *said])
    assert (recognise(whole), recognise(by_lines)) == ("gemini", "gemini")
    assert list(open_trace(whole)) == list(open_trace(by_lines))
    assert list(find_traces(tmp_path)) == [whole, by_lines]


def test_an_answer_at_work_looks_like_one_that_has_ended_until_its_call_is_written(
    tmp_path: Path,
) -> None:
    early = gemini_line("gemini", "m1", "I look.")
    lines = [HEAD, early, answer_line(gemini_call("glob", {}, "x"), text="I look.")]
    events = list(open_trace(write(tmp_path / "s.jsonl", lines)))
    told = [
        event.tool if isinstance(event, Step) else event.lifecycle
        for event in events
        if not isinstance(event, Damage)
    ]
    assert told == [Lifecycle.INPUT_REQUIRED, Lifecycle.WORKING, "glob"]


def test_what_was_said_and_cost_goes_to_the_first_call(tmp_path: Path) -> None:
    parts: tuple[Line, ...] = ({"text": "hm", "thought": True}, {"text": "I look."})
    answer = qwen_answer_line(
        ("read_file", {"absolute_path": "/repo/src/a.py"}), ("glob", {}), parts=parts
    )
    taken = qwen_steps(tmp_path, answer, qwen_result("two", call="c2"), qwen_result("one"))
    assert [(step.call, step.text, step.tokens, step.path) for step in taken] == [
        ("c2", "", 0, ""),
        ("c1", "I look.", 9, "src/a.py"),
    ]
    assert [(step.output, step.request, step.exit_code) for step in taken] == [
        ("two", 1, None),
        ("one", 1, None),
    ]


@pytest.mark.parametrize(
    ("told", "more", "code", "ok", "written"),
    [
        ("Output: \nProcess Group PGID: 7", {}, 0, True, True),
        ("Output: Exit Code: 5\nfine\nProcess Group PGID: 7", {}, 0, True, True),
        ("Output: \nExit Code: 1\nProcess Group PGID: 7", {}, 1, False, True),
        ("Output: \nExit Code: 127\n", {}, 127, False, False),
        ("denied", {"status": "error"}, None, False, False),
        ("", {"status": "cancelled"}, None, False, False),
        ("running", {"args": {**SED, "is_background": True}}, None, True, True),
    ],
)
def test_a_command_of_gemini_has_an_exit_code(
    tmp_path: Path, told: str, more: Line, code: int | None, ok: bool, written: bool
) -> None:
    (step,) = steps(tmp_path, answer_line(gemini_call(SHELL, SED, told) | more))
    assert (step.args, step.exit_code, step.ok) == (SED["command"], code, ok)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


@pytest.mark.parametrize(
    ("output", "told", "code", "ok", "written"),
    [
        ("", {"resultDisplay": {"output": "x", "exitCode": 1}}, 1, False, True),
        ("Output: x\nExit Code: 2\nSignal: (none)", {"resultDisplay": "x"}, 2, False, True),
        ("Output: x\nExit Code: 127\nSignal: (none)", {}, 127, False, False),
        ("", {"resultDisplay": {"text": "started", "exitCode": None}}, None, True, True),
        ("denied", {"status": "error"}, None, False, False),
        ("", {"status": "cancelled"}, None, False, False),
    ],
)
def test_a_command_of_qwen_has_an_exit_code(
    tmp_path: Path, output: str, told: Line, code: int | None, ok: bool, written: bool
) -> None:
    (step,) = qwen_steps(tmp_path, qwen_answer_line((SHELL, SED)), qwen_result(output, told))
    assert (step.args, step.exit_code, step.ok) == (SED["command"], code, ok)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


def test_a_command_runs_in_its_own_folder(tmp_path: Path) -> None:
    given: Line = {**SED, "dir_path": "src"}
    calls = gemini_call(SHELL, given, ""), gemini_call(SHELL, SED, "", call="c2")
    taken = steps(tmp_path, answer_line(*calls))
    assert [step.edits for step in taken] == [(Edit(path="src/a.py"),), (Edit(path="a.py"),)]


@pytest.mark.parametrize(("tool", "digest"), [("edit", ""), ("write_file", DIGEST)])
def test_an_editing_tool_changes_its_file_unless_it_fails(
    tmp_path: Path, tool: str, digest: str
) -> None:
    refused: Line = {"functionResponse": {"id": "c2", "response": {"error": "no such text"}}}
    answers = qwen_result("ok"), qwen_line("tool_result", refused)
    of_qwen = qwen_steps(tmp_path, qwen_answer_line((tool, WRITE), (tool, WRITE)), *answers)
    assert of_qwen[1].output == "no such text"
    name = tool.replace("edit", "replace")
    failing = gemini_call(name, WRITE, "", call="c2", status="error")
    of_gemini = steps(tmp_path, answer_line(gemini_call(name, WRITE, "ok"), failing))
    for done, failed in (of_qwen, of_gemini):
        assert (done.path, done.edits) == ("a.py", (Edit(path="a.py", digest=digest),))
        assert (failed.ok, failed.edits) == (False, ())


@pytest.mark.parametrize(
    "other",
    [
        {"$set": {"messages": [gemini_line("user", "u1", [{"text": "<session_context>x"}])]}},
        {"$rewindTo": "m1"},
        gemini_line("info", "i1", "Request cancelled."),
        gemini_line("user", "u1", [{"functionResponse": {"response": {"output": "x"}}}]),
        gemini_line("gemini", "m9", "", thoughts=[{"subject": "hm"}]),
    ],
)
def test_other_lines_of_gemini_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = steps(tmp_path, other, gemini_line("gemini", "m1", "Done."))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]


@pytest.mark.parametrize(
    "other",
    [
        qwen_line("system", subtype="ui_telemetry", systemPayload={}),
        qwen_line("user", {"text": "A task has ended."}, subtype="notification"),
        qwen_line("assistant", {"text": "hm", "thought": True}),
        qwen_result("nobody asked", call="c9"),
    ],
)
def test_other_lines_of_qwen_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = qwen_steps(tmp_path, other, qwen_line("assistant", {"text": "Done."}))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]
