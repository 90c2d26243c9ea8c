"""What agents tell of their work, in the shapes that real ones were seen to send."""

from typing import Any

import pytest

from midwatch_agents.acp.updates import (
    AgentCall,
    choose_option,
    cost_of,
    is_ours,
    text_of,
    tokens_of,
)
from midwatch_monitor.rules.identity import UNREPORTED
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_tools.observation import Reading, read_result

OURS = ("reflect", "report_error")


def make_call(*updates: dict[str, Any]) -> AgentCall:
    """A call after some updates."""
    call = AgentCall(id="1")
    for each in updates:
        call.tell(JsonNode(each))
    return call


def text_block(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def call_start(title: str, kind: str = "execute", **more: Any) -> dict[str, Any]:
    return {"title": title, "kind": kind, "status": "in_progress", **more}


def read(call: AgentCall) -> Reading:
    """How the call went, as its step says."""
    return read_result(call.tool, call.result(), failed=call.failed, max_chars=1000)


def test_arguments_that_come_later_are_taken_in() -> None:
    call = make_call(call_start("bash", status="pending", rawInput={"cwd": "/w"}))
    assert not call.running
    later = {"command": "pytest -q", "cwd": "/w"}
    call.tell(JsonNode({"title": "pytest -q", "status": "in_progress", "rawInput": later}))
    assert call.running
    assert (call.tool, call.arguments()) == ("bash", later)


@pytest.mark.parametrize(("title", "args"), [("Shell", {}), ("bash", {"cwd": "/w"})])
def test_a_call_that_only_names_its_tool_has_no_command(title: str, args: dict[str, str]) -> None:
    call = make_call(call_start(title, status="pending", rawInput=args))
    assert (call.unfilled, call.arguments()) == (True, args)
    call.tell(JsonNode({"title": "make (run)", "rawInput": {"command": "make"}}))
    assert (call.unfilled, call.words()) == (False, "run `make`")


def test_a_command_that_failed_has_its_exit_code_though_it_completed() -> None:
    result = {"output": "(no output)", "metadata": {"exit": 3, "truncated": False}}
    call = make_call(call_start("bash", status="completed", rawOutput=result))
    assert (call.over, call.failed, call.exit_code, call.output) == (True, False, 3, "(no output)")


def test_output_and_exit_code_of_a_command_of_codex_are_read() -> None:
    content = [{"type": "terminal", "terminalId": "1"}]
    first = call_start("make test", content=content, rawInput={"command": "make test", "cwd": "/w"})
    pieces = [{"_meta": {"terminal_output_delta": {"data": each}}} for each in ("1 fai", "led\n")]
    end = {"exit_code": 2, "signal": None, "terminal_id": "1"}
    found = read(make_call(first, *pieces, {"status": "failed", "_meta": {"terminal_exit": end}}))
    assert (found.ok, found.exit_code, found.output) == (False, 2, "1 failed\n\n[exit code: 2]")


@pytest.mark.parametrize(("meta", "output"), [({"data": "a = 1\n"}, "a = 1\n"), ({}, "")])
def test_a_file_that_codex_reads_is_the_output(meta: dict[str, str], output: str) -> None:
    end = {"rawOutput": {"exit_code": 0}, "_meta": {"terminal_output_delta": meta}}
    call = make_call(call_start("Read file 'a.py'", "read"), {"status": "completed", **end})
    assert read(call).output == output


@pytest.mark.parametrize("output", ["uid=0", ""])
def test_of_a_command_of_qwen_only_what_it_printed_is_its_output(output: str) -> None:
    report = "Command: id\nOutput: uid=0\nError: (none)\nExit Code: 0\nProcess Group PGID: 1332"
    result = {"type": "shell_result", "text": "uid=0", "output": output, "exitCode": 0}
    end = {"status": "completed", "content": text_block(report), "rawOutput": result}
    found = read(make_call(call_start("Shell", _meta={"toolName": "run_shell_command"}), end))
    assert (found.ok, found.exit_code, found.output) == (True, 0, output)


@pytest.mark.parametrize(
    ("status", "output", "code"),
    [("completed", "1 error: none", 0), ("failed", "Exit code 3\nno", 3), ("failed", "no", None)],
)
def test_claude_code_tells_the_exit_code_first(status: str, output: str, code: int | None) -> None:
    end = {"status": status, "rawOutput": output, "content": text_block(f"```\n{output}\n```")}
    found = read(make_call(call_start("make", _meta={"claudeCode": {"toolName": "Bash"}}), end))
    assert (found.exit_code, found.output.startswith(output)) == (code, True)


def test_of_a_command_without_arguments_the_title_says_what_it_is() -> None:
    call = make_call(
        call_start("make test", content=text_block("[in /w] (Runs it)")),
        {"title": "make test", "status": "completed", "content": []},
    )
    assert (call.tool, call.arguments(), call.output) == ("execute", {"command": "make test"}, "")
    assert call.exit_code is None


@pytest.mark.parametrize(
    "told_args",
    [{}, {"rawInput": {"command": "pytest"}}, {"rawInput": {"command": ["sh", "-c", "pytest"]}}],
)
def test_a_command_of_one_word_is_not_the_tool(told_args: dict[str, Any]) -> None:
    call = make_call(call_start("pytest", **told_args))
    assert (call.tool, "pytest" in call.words()) == ("execute", True)


@pytest.mark.parametrize(
    ("title", "kind", "path", "args"),
    [
        ("List files", "read", "", {"title": "List files"}),
        ("Read file '/w/a.py'", "read", "/w/a.py", {"path": "/w/a.py"}),
        ("a.py", "read", "/w/a.py", {"path": "/w/a.py"}),
        ("a.py: 1 => 2", "edit", "/w/a.py", {"path": "/w/a.py", "title": "a.py: 1 => 2"}),
        ("Ask a person", "other", "", {}),
    ],
)
def test_without_arguments_the_title_and_the_place_stand_for_them(
    title: str, kind: str, path: str, args: dict[str, str]
) -> None:
    call = make_call(call_start(title, kind, locations=[{"path": path}]))
    assert (call.path, call.arguments()) == (path, args)


@pytest.mark.parametrize(
    ("update", "tool"),
    [
        (call_start("`ls -l`", _meta={"claudeCode": {"toolName": "Bash"}}), "Bash"),
        (call_start("mcp__board__read", "other"), "mcp__board__read"),
        (call_start("calc.py", "read", locations=[{"path": "/w/calc.py"}]), "read"),
        (call_start("Writing to a.py", "edit", locations=[{"path": "/w/a.py"}]), "edit"),
        ({}, "tool"),
    ],
)
def test_the_name_of_a_tool_is_taken_where_an_agent_says_it(
    update: dict[str, Any], tool: str
) -> None:
    assert make_call(update).tool == tool


@pytest.mark.parametrize("value", [None, [], "x", {"toolCallId": 3}, {"title": {}, "rawInput": 1}])
def test_what_cannot_be_read_says_nothing(value: object) -> None:
    call = AgentCall(id="1")
    call.tell(JsonNode(value))
    assert (call.tool, call.path, call.output, call.over) == ("tool", "", "", False)
    assert make_call({"rawInput": "ls"}).arguments() == {"input": "ls"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("midwatch_reflect", True),
        ("mcp__midwatch__reflect", True),
        ("Tool: midwatch/reflect", True),
        ("reflect (midwatch MCP Server)", True),
        ("reflect", True),
        ("reflect on the plan", False),
        ("bash", False),
    ],
)
def test_a_call_of_our_own_tools_is_known_by_any_of_its_names(name: str, *, ours: bool) -> None:
    assert is_ours(name, OURS) is ours


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (call_start("rm -rf build"), "run `rm -rf build`"),
        (call_start("bash", rawInput={"command": "# ls\nrm x"}), "run `# ls ⏎ rm x`"),
        (call_start("sh", rawInput={"command": ["sh", "-c", "rm x"]}), "run `sh -c 'rm x'`"),
        (call_start("E", "edit", locations=[{"path": "a.py"}]), "edit a.py"),
        (call_start("get", "fetch", rawInput={"url": "http://x"}), 'use get: {"url": "http://x"}'),
        (call_start("Confirm Agent Actions", "other"), "use Confirm Agent Actions"),
    ],
)
def test_what_a_call_would_do_is_said_in_words(update: dict[str, Any], words: str) -> None:
    assert make_call(update).words() == words


@pytest.mark.parametrize(
    ("kind", "output"), [("execute", UNREPORTED), ("read", UNREPORTED), ("edit", "")]
)
def test_what_gemini_leaves_out_is_an_unknown_output(kind: str, output: str) -> None:
    note = text_block("[current folder /w] (run)")
    end: dict[str, Any] = {"status": "completed", "title": "ls", "content": []}
    found = read(make_call(call_start("ls", kind, content=note), end))
    assert (found.ok, found.exit_code, found.output) == (True, None, output)


def test_a_permission_is_chosen_by_its_kind_and_only_once() -> None:
    options = [
        {"optionId": "always", "kind": "allow_always"},
        {"optionId": "first", "kind": "allow_once"},
        {"optionId": "other", "kind": "allow_once"},
        {"optionId": "no", "kind": "reject_once"},
        {"optionId": 3},
    ]
    assert choose_option(JsonNode(options), allow=True) == "first"
    assert choose_option(JsonNode(options), allow=False) == "no"
    assert choose_option(JsonNode([options[0]]), allow=True) == "always"
    assert choose_option(JsonNode("none"), allow=True) is None


def test_cost_and_tokens_are_taken_where_they_are_told() -> None:
    assert cost_of(JsonNode({"cost": {"amount": 0.25, "currency": "USD"}})) == 0.25
    assert cost_of(JsonNode({"cost": {"amount": 0.25, "currency": "EUR"}})) is None
    assert cost_of(JsonNode({"cost": 3})) is None
    assert tokens_of(JsonNode({"usage": {"inputTokens": 1000, "outputTokens": 100}})) == (1000, 100)
    assert tokens_of(JsonNode({"usage": {"inputTokens": -1}})) == (0, 0)
    assert tokens_of(JsonNode(None)) == (0, 0)


def test_the_text_of_content_is_found_at_any_depth() -> None:
    assert text_of(JsonNode([{"content": {"text": "one"}}, {"text": "two"}, 3, None])) == "one\ntwo"
