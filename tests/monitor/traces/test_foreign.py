"""Foreign JSON, and the places in it, read without trust."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from midwatch_monitor.traces.foreign import Node, within

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_what_is_not_there_is_empty_all_the_way_down() -> None:
    node = Node({"a": [1]})["b"]["c"]
    assert (node.text, node.whole, node.count, list(node), bool(node)) == ("", None, 0, [], False)


@pytest.mark.parametrize("value", [None, 3, "x", [1], True])
def test_only_an_object_has_members(value: object) -> None:
    assert Node(value)["a"] == Node()
    assert "a" not in Node(value)


@pytest.mark.parametrize(
    ("value", "whole"),
    [(3, 3), (-1, -1), (2.0, 2), ("12", 12), ("-1", -1)]
    + [(value, None) for value in (True, 2.5, "x", "", "1" * 30, None, "٣", float("inf"))],
)
def test_a_whole_number_is_read_from_text_too(value: object, whole: int | None) -> None:
    assert Node(value).whole == whole


@pytest.mark.parametrize(
    ("value", "amount"),
    [(0.5, 0.5), (3, 3.0), (-1, 0.0), (True, 0.0), ("3", 0.0), (float("nan"), 0.0), (1e300, 0.0)],
)
def test_an_amount_is_never_below_zero(value: object, amount: float) -> None:
    assert Node(value).amount == amount


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21T12:00:00", NOON),
        ("2026-11-21T13:00:00+01:00", NOON.astimezone(timezone(timedelta(hours=1)))),
        (NOON.timestamp(), NOON),
        ("noon", None),
        (None, None),
        (0, None),
        (1e17, None),
    ],
)
def test_a_time_is_aware_or_none(value: object, time: datetime | None) -> None:
    assert Node(value).time == time


@pytest.mark.parametrize(
    ("value", "decoded"), [('{"a": 1}', {"a": 1}), ("{", "{"), ({"a": 1}, {"a": 1})]
)
def test_json_in_a_text_is_decoded_where_it_is_json(value: object, decoded: object) -> None:
    assert Node(value).decoded == Node(decoded)


def test_equal_values_have_equal_texts() -> None:
    assert Node({"b": "é", "a": [1]}).canonical == '{"a":[1],"b":"é"}'
    assert Node("as it is").canonical == "as it is"


def test_members_can_be_left_out_and_null_ones_are() -> None:
    assert Node({"a": 1, "b": 2, "c": None}).without({"b"}) == Node({"a": 1})


@pytest.mark.parametrize(
    ("path", "root", "cwd", "place"),
    [
        ("/repo/src/a.py", "/repo", "", "src/a.py"),
        ("/repo/src/../a.py", "/repo/", "", "a.py"),
        ("a.py", "/repo", "/repo/src", "src/a.py"),
        ("a.py", "/repo", "", "a.py"),
        ("a.py", "", "", "a.py"),
        ("/tmp/a.py", "/repo", "/repo", "/tmp/a.py"),
        ("/repository/a.py", "/repo", "", "/repository/a.py"),
        ("/a.py", "/", "", "a.py"),
        ("C:\\repo\\a.py", "C:\\repo", "", "a.py"),
        ("", "/repo", "/repo", ""),
    ],
)
def test_a_path_is_relative_to_the_root_it_lies_below(
    path: str, root: str, cwd: str, place: str
) -> None:
    assert within(path, root, cwd) == place
