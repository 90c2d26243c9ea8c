"""Sessions of Claude Code as steps."""

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.records import Change, Edit, Lifecycle, Step
from midwatch_monitor.traces import open_trace, recognise
from midwatch_tests.factories import step as make_step
from midwatch_tests.sessions import Line, claude_stopped, write

LATER = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)


def line(kind: str, message: Line, **more: object) -> Line:
    shown: Line = {"cwd": "/repo", "timestamp": "2026-11-21T12:00:00Z", "isSidechain": False}
    return {"type": kind, "message": {"role": kind, **message}, **shown, **more}


def prompt_line(text: str, **more: object) -> Line:
    return line("user", {"content": text}, **more)


def answer_line(block: Line, id: str = "m1", **more: object) -> Line:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}
    return line("assistant", {"id": id, "content": [block], "usage": usage}, **more)


def text_line(text: str, id: str = "m1", **more: object) -> Line:
    return answer_line({"type": "text", "text": text}, id, **more)


def call_line(tool: str, given: object, call: str = "c1", id: str = "m1", **more: object) -> Line:
    return answer_line({"type": "tool_use", "id": call, "name": tool, "input": given}, id, **more)


def result_line(content: object, call: str = "c1", *, error: bool = False, **more: object) -> Line:
    block: Line = {"type": "tool_result", "tool_use_id": call, "content": content}
    if error:
        block["is_error"] = True
    return line("user", {"content": [block]}, **{"timestamp": "2026-11-21T12:00:05Z", **more})


def steps(folder: Path, *lines: object) -> list[Step]:
    path = write(folder / "session.jsonl", lines)
    assert recognise(path) == "claude-code"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def test_a_call_with_its_result_is_a_step(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        prompt_line("Do it."),
        text_line("I look."),
        call_line("Read", {"limit": 3, "file_path": "/repo/src/a.py"}),
        result_line("1\tx"),
    )
    assert taken == [
        make_step(
            tool="Read",
            at=LATER,
            request=1,
            args='{"file_path":"/repo/src/a.py","limit":3}',
            path="src/a.py",
            output="1\tx",
            text="I look.",
            tokens=17,
            call="c1",
        )
    ]


def test_parallel_calls_are_one_step_each_of_one_request(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        call_line("Grep", {}, "c1"),
        call_line("Glob", {}, "c2"),
        result_line("two", "c2"),
        result_line("one", "c1"),
        call_line("LS", {}, "c3", "m2"),
        result_line("three", "c3"),
    )
    facts = [(step.number, step.tool, step.request, step.tokens) for step in taken]
    assert facts == [(1, "Glob", 1, 0), (2, "Grep", 1, 17), (3, "LS", 2, 17)]


@pytest.mark.parametrize(
    ("content", "more", "code", "ok", "written"),
    [
        ("done", {}, 0, True, True),
        ("Exit code 1\nboom", {"error": True}, 1, False, True),
        ("Exit code 127\nnot found", {"error": True}, 127, False, False),
        ("The user doesn't want to proceed with this.", {"error": True}, None, False, False),
        ("Running", {"toolUseResult": {"backgroundTaskId": "b1"}}, None, True, True),
    ],
)
def test_a_command_has_an_exit_code(
    tmp_path: Path, content: str, more: dict[str, Any], code: int | None, ok: bool, written: bool
) -> None:
    command = "sed -i s/a/b/ a.py"
    (step,) = steps(
        tmp_path,
        call_line("Bash", {"command": command, "timeout": 9}),
        result_line(content, **more),
    )
    assert (step.args, step.exit_code, step.ok) == (command, code, ok)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


@pytest.mark.parametrize(
    ("tool", "given", "digest"),
    [
        ("Edit", {"file_path": "/repo/a.py", "old_string": "x", "new_string": "y"}, ""),
        ("MultiEdit", {"file_path": "/repo/a.py", "edits": []}, ""),
        ("NotebookEdit", {"notebook_path": "/repo/a.py", "new_source": "y"}, ""),
        (
            "Write",
            {"file_path": "/repo/a.py", "content": "é"},
            blake2b("é".encode(), digest_size=16).hexdigest(),
        ),
    ],
)
def test_an_editing_tool_changes_its_file_unless_it_is_refused(
    tmp_path: Path, tool: str, given: Line, digest: str
) -> None:
    done, refused = steps(
        tmp_path,
        call_line(tool, given),
        result_line("updated"),
        call_line(tool, given, "c2", "m2"),
        result_line("<tool_use_error>no</tool_use_error>", "c2", error=True),
    )
    assert (done.path, done.edits) == ("a.py", (Edit(path="a.py", digest=digest),))
    assert (refused.ok, refused.edits) == (False, ())


def test_a_script_that_was_written_is_followed_in_whatever_folder_it_runs(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        call_line(
            "Write", {"file_path": "/repo/fix.py", "content": "open('a.py', 'w').write('x')"}
        ),
        result_line("ok"),
        call_line("Bash", {"command": "cd src"}, "c2"),
        result_line("", "c2"),
        call_line("Bash", {"command": "python ../fix.py"}, "c3", "m2", cwd="/repo/src"),
        result_line("", "c3"),
    )
    assert taken[2].edits == (Edit(path="src/a.py"),)


def test_what_a_sub_agent_does_is_read_only_in_a_session_of_its_own(tmp_path: Path) -> None:
    own = (
        call_line("Read", {}, "s1", "s", isSidechain=True),
        result_line("x", "s1", isSidechain=True),
    )
    within = steps(tmp_path, call_line("Task", {}), *own, result_line("found"))
    alone = steps(tmp_path, prompt_line("Find it.", isSidechain=True), *own)
    assert [[step.tool for step in taken] for taken in (within, alone)] == [["Task"], ["Read"]]


@pytest.mark.parametrize(
    "other",
    [
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        {"type": "system", "content": "x"},
        {"type": "file-history-snapshot", "snapshot": {}},
        prompt_line("Caveat", isMeta=True),
        text_line("API Error: 500", "m9", isApiErrorMessage=True),
        answer_line({"type": "thinking", "thinking": "hm"}, "m9"),
        result_line("nobody asked", "c9"),
    ],
)
def test_other_lines_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = steps(tmp_path, prompt_line("x"), other, text_line("Done."))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]


def test_what_stream_json_prints_is_read(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        {"type": "system", "subtype": "init", "cwd": "/repo"},
        {"type": "assistant", "message": call_line("Read", {"file_path": "/repo/a"})["message"]},
        {
            "type": "assistant",
            "parent_tool_use_id": "c1",
            "message": text_line("no", "s")["message"],
        },
        {"type": "user", "message": result_line([{"type": "text", "text": "x"}])["message"]},
        {"type": "result", "total_cost_usd": 1},
    )
    assert [(step.tool, step.path, step.output, step.at) for step in taken] == [
        ("Read", "a", "x", None)
    ]


def changes(folder: Path, *lines: object) -> list[Lifecycle | None]:
    events = open_trace(write(folder / "session.jsonl", lines))
    return [event.lifecycle for event in events if isinstance(event, Change)]


def end_line(block: Line, **more: object) -> Line:
    return line("assistant", {"id": "m1", "content": [block], "stop_reason": "end_turn"}, **more)


DONE = end_line({"type": "text", "text": "Done."})


def test_an_answer_ends_its_turn_with_its_words_and_not_with_its_thoughts(tmp_path: Path) -> None:
    lines = [end_line({"type": "thinking", "thinking": "hm"}), DONE]
    assert changes(tmp_path, lines[0]) == []
    assert changes(tmp_path, *lines) == [Lifecycle.INPUT_REQUIRED]
    assert [step.text for step in steps(tmp_path, *lines)] == ["Done."]


@pytest.mark.parametrize(
    ("follows", "told"),
    [
        (prompt_line("Go on."), [Lifecycle.WORKING]),
        (text_line("I go on by myself.", "m2"), [Lifecycle.WORKING]),
        (prompt_line("<command-name>/cost</command-name>"), []),
        (prompt_line("Caveat", isMeta=True), []),
        (prompt_line("What came before", isCompactSummary=True), []),
        (prompt_line("[Request interrupted by user]"), []),
    ],
)
def test_the_model_goes_on_with_a_prompt_or_by_itself(
    tmp_path: Path, follows: Line, told: list[Lifecycle]
) -> None:
    assert changes(tmp_path, prompt_line("x"), DONE, follows) == [Lifecycle.INPUT_REQUIRED, *told]


INTERRUPTED: Line = {"type": "text", "text": "[Request interrupted by user for tool use]"}


@pytest.mark.parametrize(
    "last", [line("user", {"content": [INTERRUPTED]}), claude_stopped()], ids=["person", "hook"]
)
def test_a_turn_that_a_person_or_a_hook_ended_waits_for_a_person(
    tmp_path: Path, last: Line
) -> None:
    lines = call_line("Bash", {"command": "make"}), result_line("stopped", error=True), last
    assert changes(tmp_path, *lines) == [Lifecycle.INPUT_REQUIRED]


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
def test_a_session_whose_agent_asks_at_its_own_terminal_waits_for_the_answer(
    tmp_path: Path, tool: str
) -> None:
    asked = (prompt_line("x"), call_line(tool, {}))
    assert changes(tmp_path, *asked) == [Lifecycle.INPUT_REQUIRED]
    told = [Lifecycle.INPUT_REQUIRED, Lifecycle.WORKING]
    assert changes(tmp_path, *asked, result_line("Yes.")) == told
    assert changes(tmp_path, prompt_line("x"), call_line("Bash", {})) == []
