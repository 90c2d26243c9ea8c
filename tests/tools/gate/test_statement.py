"""What a worker says through `report_error` and `check_plan`, and whether that says anything."""

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart

from midwatch_monitor.records import Cause
from midwatch_tools.tools.proof import ErrorReport, Statements, statements_in

GOOD: dict[str, Any] = {
    "what_happened": "pytest stops at import: no module named yaml",
    "category": "permanent",
    "root_cause": "PyYAML is not in the environment",
    "change": "install pyyaml",
}
CHECK: dict[str, Any] = {
    "assumption": "there is an auth module",
    "reality": "step 2 found none",
    "impact": "plan steps 4 to 6 need one",
    "options": ["write a small one", "drop the login"],
    "choice": "drop the login: no new file",
}


def lacking(**other: str) -> str:
    return ErrorReport.model_validate({**GOOD, **other}).lacks()


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"what_happened": "timeout"},
        {"category": "unknown", "root_cause": "unknown"},
        {"category": "transient", "change": "try again"},
        {"what_happened": "网络超时"},
    ],
)
def test_what_names_something_is_taken(other: dict[str, str]) -> None:
    assert lacking(**other) == ""


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"what_happened": "Error"}, "what_happened"),
        ({"what_happened": "The test failed again!"}, "what_happened"),
        ({"what_happened": "???"}, "what_happened"),
        ({"root_cause": "unknown"}, "root_cause"),
        ({"category": "transient", "root_cause": "it failed"}, "root_cause"),
        ({"change": "retry"}, "change"),
        ({"category": "unknown", "change": "I will try something"}, "change"),
    ],
)
def test_what_says_nothing_is_told_what_it_lacks(other: dict[str, str], field: str) -> None:
    assert lacking(**other).startswith(f"`{field}` is too general")


def call(tool: str, **args: Any) -> ToolCallPart:
    return ToolCallPart(tool, args, "c")


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], Statements()),
        ([call("put", **GOOD)], Statements()),
        ([call("report_error", **GOOD)], Statements(cause=Cause.PERMANENT)),
        ([call("report_error", **{**GOOD, "category": "odd"})], Statements()),
        ([call("report_error", **{**GOOD, "change": " "})], Statements()),
        ([call("report_error", **{**GOOD, "change": "retry"})], Statements()),
        ([call("check_plan", **CHECK)], Statements(checked=True)),
        ([call("check_plan", **{**CHECK, "options": []})], Statements()),
        ([ToolCallPart("check_plan", "no JSON", "c")], Statements()),
        (
            [call("report_error", **GOOD), call("check_plan", **CHECK)],
            Statements(cause=Cause.PERMANENT, checked=True),
        ),
    ],
)
def test_a_turn_says_what_its_calls_say_that_will_be_taken(
    calls: list[ToolCallPart], said: Statements
) -> None:
    assert statements_in(calls) == said
