"""Sessions of Gemini CLI as steps."""

import json
from hashlib import blake2b
from pathlib import Path

import pytest

from midwatch_monitor.records import Edit, Lifecycle, Step, StepKind
from midwatch_monitor.traces import Damage, find_traces, open_trace, recognise
from midwatch_stage.sessions import Line, gemini_call, gemini_line, write

HEAD: Line = {"sessionId": "s1", "projectHash": "h", "kind": "main"}
SHELL = "run_shell_command"
SED: Line = {"command": "sed -i s/a/b/ a.py"}


def steps(folder: Path, *lines: object) -> list[Step]:
    """The steps of a session of the project `/repo`."""
    (folder / "p" / "chats").mkdir(parents=True)
    (folder / "p" / ".project_root").write_text("/repo\n")
    path = write(folder / "p" / "chats" / "session-1.jsonl", [HEAD, *lines])
    assert recognise(path) == "gemini"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def called(*calls: Line, text: str = "", id: str = "m1") -> Line:
    return gemini_line("gemini", id, text, tokens={"total": 9}, toolCalls=list(calls))


def test_a_message_that_is_written_again_is_one_answer(tmp_path: Path) -> None:
    call = gemini_call("read_file", {"file_path": "/repo/src/a.py"}, "x")
    early = gemini_line("gemini", "m1", "I lo", tokens=None)
    taken = steps(tmp_path, early, called(call, text="I look."), called(call, text="I look."))
    (step,) = taken
    assert (step.kind, step.tool, step.path) == (StepKind.TOOL, "read_file", "src/a.py")
    assert (step.text, step.tokens, step.request) == ("I look.", 9, 1)
    assert (step.ok, step.exit_code, step.output) == (True, None, "x")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_session_that_is_one_document_has_the_same_steps(
    tmp_path: Path, indent: int | None
) -> None:
    said = [
        gemini_line("user", "u1", "Look."),
        called(gemini_call("glob", {}, "x"), text="I look."),
    ]
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
    lines = [HEAD, early, called(gemini_call("glob", {}, "x"), text="I look.")]
    path = write(tmp_path / "s.jsonl", lines)
    events = [event for event in open_trace(path) if not isinstance(event, Damage)]
    told = [event.tool if isinstance(event, Step) else event.lifecycle for event in events]
    assert told == [Lifecycle.INPUT_REQUIRED, Lifecycle.WORKING, "glob"]


def test_each_of_several_calls_is_a_step(tmp_path: Path) -> None:
    first, second = (gemini_call("glob", {}, "x", call=call) for call in ("c1", "c2"))
    taken = steps(tmp_path, called(first, text="Both."), called(first, second, text="Both."))
    assert [(step.call, step.text, step.request) for step in taken] == [
        ("c1", "Both.", 1),
        ("c2", "", 1),
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
def test_a_command_has_an_exit_code(
    tmp_path: Path, told: str, more: Line, code: int | None, ok: bool, written: bool
) -> None:
    (step,) = steps(tmp_path, called(gemini_call(SHELL, SED, told) | more))
    assert (step.args, step.exit_code, step.ok) == (SED["command"], code, ok)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


def test_a_command_runs_in_its_own_folder(tmp_path: Path) -> None:
    given: Line = {**SED, "dir_path": "src"}
    calls = gemini_call(SHELL, given, ""), gemini_call(SHELL, SED, "", call="c2")
    taken = steps(tmp_path, called(*calls))
    assert [step.edits for step in taken] == [(Edit(path="src/a.py"),), (Edit(path="a.py"),)]


@pytest.mark.parametrize(
    ("tool", "digest"),
    [("replace", ""), ("write_file", blake2b("é".encode(), digest_size=16).hexdigest())],
)
def test_an_editing_tool_changes_its_file_unless_it_fails(
    tmp_path: Path, tool: str, digest: str
) -> None:
    given: Line = {"file_path": "/repo/a.py", "content": "é"}
    failing = gemini_call(tool, given, "", call="c2", status="error")
    done, failed = steps(tmp_path, called(gemini_call(tool, given, "ok"), failing))
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
def test_other_lines_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = steps(tmp_path, other, gemini_line("gemini", "m1", "Done."))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]
