"""What a call came to is given again, and never made up."""

from collections.abc import Callable

import pytest
from pydantic import JsonValue
from pydantic_ai.exceptions import ModelRetry, ToolFailed

from midwatch_tools.tool_calls import KeptResults, kept_result


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
def test_what_cannot_be_given_again_exactly_is_not_kept(
    kept: Callable[[], tuple[object, ...]],
) -> None:
    assert kept() == ()


def test_an_unknown_call_is_not_remembered() -> None:
    assert "2:a" not in KeptResults(kept_result("1:a", returned="x"))
