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


def told(*updates: dict[str, Any]) -> AgentCall:
    """A call after some updates."""
    call = AgentCall(id="1")
    for each in updates:
        call.tell(JsonNode(each))
    return call


def read(call: AgentCall) -> Reading:
    """How the call went, as its step says."""
    return read_result(call.tool, call.result(), failed=call.failed, max_chars=1000)


def test_arguments_that_come_later_are_taken_in() -> None:
    begun = {"title": "bash", "kind": "execute", "status": "pending", "rawInput": {"cwd": "/w"}}
    call = told(begun)
    assert not call.running
    call.tell(
        JsonNode(
            {
                "title": "pytest -q",
                "status": "in_progress",
                "rawInput": {"command": "pytest -q", "cwd": "/w"},
            }
        )
    )
    assert call.running
    assert (call.tool, call.arguments()) == ("bash", {"command": "pytest -q", "cwd": "/w"})


@pytest.mark.parametrize(
    ("title", "args"), [("Shell", {}), ("bash", {"cwd": "/w"}), ("Terminal", {})]
)
def test_a_call_that_only_names_its_tool_has_no_command(title: str, args: dict[str, str]) -> None:
    begun = {"title": title, "kind": "execute", "status": "pending", "rawInput": args}
    call = told(begun)
    assert (call.unfilled, call.arguments()) == (True, args)
    call.tell(JsonNode({"title": "make (run)", "rawInput": {"command": "make"}}))
    assert (call.unfilled, call.words()) == (False, "run `make`")


def test_a_command_that_failed_has_its_exit_code_though_it_completed() -> None:
    result = {"output": "(no output)", "metadata": {"exit": 3, "truncated": False}}
    call = told({"title": "bash", "kind": "execute", "status": "completed", "rawOutput": result})
    assert (call.over, call.failed, call.exit_code, call.output) == (True, False, 3, "(no output)")


def test_output_and_exit_code_of_a_command_of_codex_are_read() -> None:
    begun = {
        "title": "make test",
        "kind": "execute",
        "status": "in_progress",
        "content": [{"type": "terminal", "terminalId": "1"}],
        "rawInput": {"command": "make test", "cwd": "/w"},
    }
    pieces = [{"_meta": {"terminal_output_delta": {"data": each}}} for each in ("1 fai", "led\n")]
    end = {"exit_code": 2, "signal": None, "terminal_id": "1"}
    found = read(told(begun, *pieces, {"status": "failed", "_meta": {"terminal_exit": end}}))
    assert (found.ok, found.exit_code, found.output) == (False, 2, "1 failed\n\n[exit code: 2]")


@pytest.mark.parametrize(("meta", "output"), [({"data": "a = 1\n"}, "a = 1\n"), ({}, "")])
def test_a_file_that_codex_reads_is_the_output(meta: dict[str, str], output: str) -> None:
    begun = {"title": "Read file 'a.py'", "kind": "read", "status": "in_progress"}
    end = {"rawOutput": {"exit_code": 0}, "_meta": {"terminal_output_delta": meta}}
    assert read(told(begun, {"status": "completed", **end})).output == output


def test_of_a_command_of_qwen_only_what_it_printed_is_its_output() -> None:
    report = "Command: id\nOutput: uid=0\nError: (none)\nExit Code: 0\nProcess Group PGID: 1332"
    content = [{"type": "content", "content": {"type": "text", "text": report}}]
    result = {"type": "shell_result", "text": "uid=0", "output": "uid=0", "exitCode": 0}
    call = told(
        {"title": "Shell", "kind": "execute", "_meta": {"toolName": "run_shell_command"}},
        {"status": "completed", "content": content, "rawOutput": result},
    )
    found = read(call)
    assert (found.ok, found.exit_code, found.output) == (True, 0, "uid=0")
    silent = {"status": "completed", "content": content, "rawOutput": {**result, "output": ""}}
    assert read(told({"kind": "execute"}, silent)).output == ""


@pytest.mark.parametrize(
    ("status", "output", "code"),
    [("completed", "1 error: none", 0), ("failed", "Exit code 3\nno", 3), ("failed", "no", None)],
)
def test_claude_code_tells_the_exit_code_first(status: str, output: str, code: int | None) -> None:
    meta = {"claudeCode": {"toolName": "Bash"}}
    content = [{"type": "content", "content": {"type": "text", "text": f"```\n{output}\n```"}}]
    end = {"status": status, "rawOutput": output, "content": content}
    found = read(told({"title": "make", "kind": "execute", "_meta": meta}, end))
    assert (found.exit_code, found.output.startswith(output)) == (code, True)


def test_of_a_command_without_arguments_the_title_says_what_it_is() -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "[in /w] (Runs it)"}}]
    begun = {"title": "make test", "kind": "execute", "status": "in_progress", "content": content}
    call = told(begun, {"title": "make test", "status": "completed", "content": []})
    assert (call.tool, call.arguments(), call.output) == ("execute", {"command": "make test"}, "")
    assert call.exit_code is None


@pytest.mark.parametrize(
    "told_args",
    [{}, {"rawInput": {"command": "pytest"}}, {"rawInput": {"command": ["sh", "-c", "pytest"]}}],
)
def test_a_command_of_one_word_is_not_the_tool(told_args: dict[str, Any]) -> None:
    call = told({"title": "pytest", "kind": "execute", "status": "in_progress", **told_args})
    assert (call.tool, "pytest" in call.words()) == ("execute", True)


def test_a_file_that_is_read_is_not_the_tool() -> None:
    place = [{"path": "/w/calc.py"}]
    call = told({"title": "calc.py", "kind": "read", "locations": place, "status": "in_progress"})
    assert (call.tool, call.arguments()) == ("read", {"path": "/w/calc.py"})


def test_an_edit_names_its_file_by_its_place() -> None:
    call = told(
        {
            "title": "Writing to a.py",
            "kind": "edit",
            "locations": [{"path": "/w/a.py"}],
            "status": "x",
        }
    )
    assert (call.tool, call.path) == ("edit", "/w/a.py")


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
def test_without_arguments_the_title_stands_for_them(
    title: str, kind: str, path: str, args: dict[str, str]
) -> None:
    call = told({"title": title, "kind": kind, "locations": [{"path": path}], "status": "x"})
    assert call.arguments() == args


def test_the_name_of_a_tool_is_taken_where_an_agent_says_it() -> None:
    meta = {"claudeCode": {"toolName": "Bash"}}
    assert told({"title": "`ls -l`", "kind": "execute", "_meta": meta}).tool == "Bash"
    assert told({"title": "mcp__board__read", "kind": "other"}).tool == "mcp__board__read"
    assert told({}).tool == "tool"


@pytest.mark.parametrize(
    "value",
    [None, 3, [], "x", {"toolCallId": 3}, {"sessionUpdate": None}, {"title": {}, "rawInput": "x"}],
)
def test_what_cannot_be_read_says_nothing(value: object) -> None:
    call = AgentCall(id="1")
    call.tell(JsonNode(value))
    assert (call.tool, call.path, call.output, call.over) == ("tool", "", "", False)
    assert told({"rawInput": "ls"}).arguments() == {"input": "ls"}


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
    ("told", "words"),
    [
        ({"kind": "execute", "title": "rm -rf build"}, "run `rm -rf build`"),
        (
            {"kind": "execute", "title": "bash", "rawInput": {"command": "# ls\nrm x"}},
            "run `# ls ⏎ rm x`",
        ),
        (
            {"kind": "execute", "title": "sh", "rawInput": {"command": ["sh", "-c", "rm x"]}},
            "run `sh -c 'rm x'`",
        ),
        ({"kind": "edit", "title": "E", "locations": [{"path": "a.py"}]}, "edit a.py"),
        (
            {"kind": "fetch", "title": "fetch", "rawInput": {"url": "http://x"}},
            'use fetch: {"url": "http://x"}',
        ),
        ({"kind": "other", "title": "Confirm Agent Actions"}, "use Confirm Agent Actions"),
    ],
)
def test_what_a_call_would_do_is_said_in_words(told: dict[str, object], words: str) -> None:
    call = AgentCall(id="1")
    call.tell(JsonNode(told))
    assert call.words() == words


@pytest.mark.parametrize(
    ("kind", "output"), [("execute", UNREPORTED), ("read", UNREPORTED), ("edit", "")]
)
def test_what_gemini_leaves_out_is_an_unknown_output(kind: str, output: str) -> None:
    note = {"type": "content", "content": {"type": "text", "text": "[current folder /w] (run)"}}
    begun = {"title": "ls", "kind": kind, "status": "in_progress", "content": [note]}
    found = read(told(begun, {"status": "completed", "title": "ls", "content": []}))
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
