"""How a tool call and its result are read, kept and given again."""

import json
from collections.abc import Callable

import pytest
from pydantic import JsonValue
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart

from midwatch_tools.observation import (
    FOREIGN,
    Reading,
    act_words,
    canonical,
    cut,
    named_path,
    read_result,
    to_json,
)
from midwatch_tools.tool_calls import KeptResults, kept_result


def reading(result: object, *, tool: str = "run_command", failed: bool = False) -> Reading:
    return read_result(tool, result, failed=failed, max_chars=1000)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("3 passed", 0),
        ("[stdout]\n1 failed\n[exit code: 1]", 1),
        ("killed\n[exit code: -9]\n", -9),
        ("[exit code: 153] [a file grew beyond its limit]", 153),
        ("so far\n[Command timed out after 5s]", 124),
        ("the text says [exit code: 1] and goes on", 0),
        ("", 0),
    ],
)
def test_the_exit_code_of_a_command_stands_at_its_end(text: str, code: int) -> None:
    found = reading(text)
    assert (found.exit_code, found.ok) == (code, code == 0)


def test_another_tool_has_no_exit_code() -> None:
    assert reading("fine", tool="read_file").exit_code is None


@pytest.mark.parametrize("output", ["fine", ""])
def test_an_exit_code_that_an_agent_reports_counts_for_any_tool(output: str) -> None:
    found = reading(f"{output}\n[exit code: 0]", tool="execute")
    assert (found.ok, found.exit_code, found.output) == (True, 0, output)


def test_a_failed_tool_is_not_well_and_a_refused_command_has_no_code() -> None:
    found = reading("not allowed", failed=True)
    assert (found.ok, found.exit_code) == (False, None)


@pytest.mark.parametrize(("tool", "ok"), [("str_replace", False), ("fetch", True)])
def test_an_editor_that_refuses_in_words_has_not_done_well(tool: str, *, ok: bool) -> None:
    assert reading("No replacement was performed.", tool=tool).ok is ok


def test_a_cut_output_keeps_head_tail_and_the_digest_of_the_whole() -> None:
    one, other = (
        read_result("t", f"head{middle * 300}tail", failed=False, max_chars=20) for middle in "xy"
    )
    assert one.output.startswith("head")
    assert one.output.endswith("tail")
    assert one.digest != other.digest


def test_a_cut_says_how_much_it_left_out() -> None:
    assert cut("a" * 10 + "b" * 10, 10) == "aaaaa\n[… 10 characters left out …]\nbbbbb"
    assert cut("a" * 10, 10) == "a" * 10


def test_equal_arguments_are_equal_text_whatever_their_order() -> None:
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a": "é", "b": 1}'


def test_a_result_that_is_no_json_becomes_text() -> None:
    itself: list[object] = []
    itself.append(itself)
    mixed = {1: "a", "b": 2}
    assert to_json(mixed) == str(mixed)
    assert to_json(itself) == "[[...]]"
    assert json.loads(to_json({"at": object}))["at"] == str(object)


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("execute", {"command": "make", "cwd": "/w"}, "execute make"),
        ("editor", {"command": "view", "path": "a.py"}, "editor a.py"),
        ("other", {"url": "x"}, "other"),
    ],
)
def test_a_call_of_an_agent_is_named_by_its_file_or_command(
    tool: str, args: dict[str, str], words: str
) -> None:
    assert act_words(ToolCallPart(FOREIGN, {"tool": tool, "args": args})) == words


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"path": "a.py"}, "a.py"),
        ({"file_path": "a.py"}, "a.py"),
        ({"file": 3, "filename": "b"}, "b"),
        ({"command": "ls a.py"}, ""),
    ],
)
def test_the_path_is_what_an_argument_of_that_name_says(args: dict[str, object], path: str) -> None:
    assert named_path(args) == path


@pytest.mark.parametrize("value", ["text", 3, 2.5, None, True, ["a", {"b": [1]}], {"é": ""}])
def test_a_plain_value_comes_back_as_it_was(value: JsonValue) -> None:
    remembered = KeptResults(kept_result("1:a", returned=value))
    assert "1:a" in remembered
    assert remembered.give("1:a") == value


@pytest.mark.parametrize(
    ("error", "kind"), [(ModelRetry("again"), ModelRetry), (ToolFailed("no such file"), ToolFailed)]
)
def test_a_refusal_is_raised_again(error: Exception, kind: type[Exception]) -> None:
    remembered = KeptResults(kept_result("1:a", error=error))
    with pytest.raises(kind, match=r"again|no such file"):
        remembered.give("1:a")


@pytest.mark.parametrize(
    "kept",
    [
        lambda: kept_result("1:a", returned=object()),
        lambda: kept_result("1:a", returned=(1, 2)),
        lambda: kept_result("1:a", returned="half a pair: \udc80"),
        lambda: kept_result("1:a", error=OSError("the disk")),
        lambda: kept_result("", returned="a call without an id"),
    ],
)
def test_what_cannot_be_given_exactly_is_not_kept(kept: Callable[[], tuple[object, ...]]) -> None:
    assert kept() == ()


def test_an_unknown_call_is_not_remembered() -> None:
    assert "2:a" not in KeptResults(kept_result("1:a", returned="x"))
