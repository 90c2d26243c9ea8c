"""How a tool call and its result are read, kept and given again."""

import json

import pytest
from pydantic import JsonValue
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart

from midwatch_tools.observation import (
    FOREIGN,
    act_words,
    canonical,
    cut,
    named_path,
    read_result,
    to_json,
)
from midwatch_tools.tool_calls import KeptResults, kept_result


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
    found = read_result("run_command", text, failed=False, max_chars=1000)
    assert (found.exit_code, found.ok) == (code, code == 0)


@pytest.mark.parametrize(
    ("tool", "text", "failed", "ok", "code"),
    [
        ("read_file", "fine", False, True, None),
        ("execute", "fine\n[exit code: 0]", False, True, 0),
        ("execute", "\n[exit code: 0]", False, True, 0),
        ("run_command", "not allowed", True, False, None),
        ("str_replace", "No replacement was performed.", False, False, None),
        ("fetch", "No replacement was performed.", False, True, None),
    ],
    ids=["none", "an agent's", "alone", "refused", "an editor that refuses in words", "no editor"],
)
def test_another_tool_has_an_exit_code_only_if_it_reports_one(
    tool: str, text: str, failed: bool, ok: bool, code: int | None
) -> None:
    found = read_result(tool, text, failed=failed, max_chars=1000)
    assert (found.ok, found.exit_code) == (ok, code)
    assert found.output == text.partition("\n[exit code")[0]


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
    assert "2:a" not in remembered


@pytest.mark.parametrize(
    "error", [ModelRetry("again"), ToolFailed("no such file")], ids=["retry", "failed"]
)
def test_a_refusal_is_raised_again(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        KeptResults(kept_result("1:a", error=error)).give("1:a")


@pytest.mark.parametrize(
    "kept",
    [
        kept_result("1:a", returned=object()),
        kept_result("1:a", returned=(1, 2)),
        kept_result("1:a", returned="half a pair: \udc80"),
        kept_result("1:a", error=OSError("the disk")),
        kept_result("", returned="a call without an id"),
    ],
)
def test_what_cannot_be_given_exactly_is_not_kept(kept: tuple[object, ...]) -> None:
    assert kept == ()
