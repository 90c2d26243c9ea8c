"""Sessions of Codex as steps."""

import json
from pathlib import Path

import pytest

from midwatch_monitor.records import Change, Edit, Lifecycle, Step
from midwatch_monitor.traces import open_trace, recognise
from midwatch_tests.sessions import Line, codex_item, codex_line, write

META = codex_line("session_meta", id="s1", cwd="/repo")
PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Delete File: b.py\n*** End Patch"
)


def call_line(tool: str, given: object, call: str = "c1", namespace: str = "") -> Line:
    told = {"name": tool, "arguments": json.dumps(given), "call_id": call, "namespace": namespace}
    return codex_line("response_item", type="function_call", **told)


def result_line(output: object, call: str = "c1", kind: str = "function_call_output") -> Line:
    return codex_line("response_item", type=kind, call_id=call, output=output)


def text_line(text: str) -> Line:
    content = [{"type": "output_text", "text": text}]
    return codex_line("response_item", type="message", role="assistant", content=content)


def token_count_line(total: int) -> Line:
    usage = {"total_token_usage": {"total_tokens": total}}
    return codex_line("event_msg", type="token_count", info=usage)


def token_record_line(total: int) -> Line:
    return codex_line("token_usage_record", thread_token_usage={"total_tokens": total})


def steps(folder: Path, *lines: object) -> list[Step]:
    path = write(folder / "rollout-1.jsonl", [META, *lines])
    assert recognise(path) == "codex"
    return [event for event in open_trace(path) if isinstance(event, Step)]


@pytest.mark.parametrize(
    ("output", "code", "ok", "text", "written"),
    [
        ("Wall time: 0 s\nProcess exited with code 0\nOutput:\nhi\n", 0, True, "hi\n", True),
        ("Exit code: 1\nWall time: 0 s\nOutput:\nboom", 1, False, "boom", True),
        ("Process exited with code 127\nOutput:\n", 127, False, "", False),
        ('{"output":"boom","metadata":{"exit_code":2}}', 2, False, "boom", True),
        ("Command blocked by PreToolUse hook: no", None, False, None, False),
        ("Process running with session ID 7\nOutput:\n", None, None, "", True),
    ],
)
def test_a_command_is_read_from_what_the_model_was_told_where_nothing_else_tells(
    tmp_path: Path, output: str, code: int | None, ok: bool | None, text: str | None, written: bool
) -> None:
    command = "sed -i s/a/b/ a.py"
    (step,) = steps(tmp_path, call_line("exec_command", {"cmd": command}), result_line(output))
    assert (step.args, step.exit_code, step.ok) == (command, code, ok)
    assert step.output == (output if text is None else text)
    assert step.edits == ((Edit(path="a.py"),) if written else ())


@pytest.mark.parametrize("later", [False, True])
def test_a_call_that_is_told_in_two_ways_counts_once(tmp_path: Path, later: bool) -> None:
    seen = codex_item("CommandExecution", id="c1", aggregated_output="x", exit_code=0)
    told = result_line("Process exited with code 0\nOutput:\nx")
    order = [told, seen] if later else [seen, told]
    (step,) = steps(tmp_path, call_line("shell", {"command": ["bash", "-lc", "make"]}), *order)
    assert (step.args, step.exit_code, step.output) == ("make", 0, "x")


def test_a_command_runs_in_its_own_folder(tmp_path: Path) -> None:
    given = {"cmd": "sed -i s/a/b/ a.py", "workdir": "src"}
    seen = codex_item("CommandExecution", id="c1", exit_code=0)
    (step,) = steps(tmp_path, call_line("exec_command", given), seen)
    assert step.edits == (Edit(path="src/a.py"),)


@pytest.mark.parametrize(
    "lines",
    [
        (
            codex_line(
                "response_item",
                type="custom_tool_call",
                name="apply_patch",
                input=PATCH,
                call_id="c1",
            ),
            codex_item("FileChange", id="c1", status="completed"),
        ),
        (
            call_line("apply_patch", {"input": PATCH}),
            result_line("Exit code: 0\nOutput:\nDone"),
        ),
        (
            call_line("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
            codex_item("CommandExecution", id="c1", exit_code=0),
        ),
    ],
)
def test_the_files_of_a_patch_are_edits(tmp_path: Path, lines: tuple[Line, ...]) -> None:
    (step,) = steps(tmp_path, *lines)
    assert step.ok
    assert step.edits == (Edit(path="src/a.py"), Edit(path="b.py", deleted=True))


def test_a_tool_of_a_server_has_the_servers_name(tmp_path: Path) -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    (step,) = steps(
        tmp_path,
        call_line("reflect", {"b": 1, "a": 2}, namespace="mcp__midwatch"),
        codex_item("McpToolCall", id="c1", status="completed", result=result),
    )
    assert (step.tool, step.args) == ("mcp__midwatch__reflect", '{"a":2,"b":1}')
    assert (step.ok, step.exit_code, step.output) == (False, None, "no")


@pytest.mark.parametrize(
    ("item", "facts"),
    [
        (
            codex_item("CommandExecution", id="c1", command=["ls", "a b"], exit_code=0),
            ("exec_command", "ls 'a b'", ()),
        ),
        (
            codex_item("McpToolCall", id="c1", server="s", tool="t", arguments={"a": 1}),
            ("mcp__s__t", '{"a":1}', ()),
        ),
        (
            codex_item("FileChange", id="c1", changes={"/repo/a.py": {}}, status="completed"),
            ("apply_patch", "", (Edit(path="a.py"),)),
        ),
    ],
)
def test_a_call_whose_line_is_missing_is_told_by_its_result(
    tmp_path: Path, item: Line, facts: tuple[object, ...]
) -> None:
    (step,) = steps(tmp_path, item, call_line("exec_command", {"cmd": "late"}))
    assert (step.tool, step.args, step.edits) == facts


def test_what_was_said_goes_to_the_first_call_and_all_tokens_to_some_step(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        text_line("I look."),
        call_line("exec_command", {"cmd": "ls"}, "c1"),
        call_line("exec_command", {"cmd": "cat a"}, "c2"),
        token_record_line(100),
        result_line("Process exited with code 0\nOutput:\n", "c1"),
        result_line("Process exited with code 0\nOutput:\n", "c2"),
        token_count_line(100),
        text_line("Done."),
        token_count_line(150),
    )
    facts = [(step.text, step.request, step.tokens) for step in taken]
    assert facts == [("I look.", 1, 100), ("", 1, 0), ("Done.", 2, 50)]


def test_a_turn_that_was_aborted_waits(tmp_path: Path) -> None:
    aborted = codex_line("event_msg", type="turn_aborted")
    (change,) = open_trace(write(tmp_path / "a.jsonl", [META, aborted]))
    assert isinstance(change, Change)
    assert change.lifecycle is Lifecycle.INPUT_REQUIRED


@pytest.mark.parametrize(
    "other",
    [
        codex_item("CommandExecution", id="u1", source="user_shell", command=["ls"], exit_code=0),
        codex_item("Reasoning", id="r1", summary_text=["hm"]),
        codex_item("AgentMessage", id="m1", content=[{"type": "Text", "text": "Done."}]),
        codex_line("response_item", type="reasoning", summary=[]),
        codex_line("response_item", type="message", role="developer", content=[{"text": "x"}]),
        codex_line("compacted", message="x"),
        result_line("nobody asked", "c9"),
    ],
)
def test_other_lines_are_no_steps(tmp_path: Path, other: Line) -> None:
    taken = steps(tmp_path, other, text_line("Done."))
    assert [(step.number, step.text) for step in taken] == [(1, "Done.")]
