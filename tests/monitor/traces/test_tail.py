"""A file that grows is read as its writer appends to it, whatever becomes of it."""

import json
import os
from pathlib import Path

import pytest

from midwatch_monitor.traces.foreign import TraceItem
from midwatch_monitor.traces.json_stream import MAX_LINE, Damage
from midwatch_monitor.traces.session_reader import Tail


def _line(number: int) -> str:
    return json.dumps({"n": number}) + "\n"


def _numbers(tail: Tail) -> list[int | str]:
    """What was read: the number of each object, or what was wrong."""
    read = list[int | str]()
    for item in tail.read():
        read.append(item.node["n"].count if isinstance(item, TraceItem) else item.problem)
    return read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_lines_are_read_once_and_a_line_counts_when_its_end_is_there(path: Path) -> None:
    tail = Tail(path)
    assert _numbers(tail) == []  # no such file yet
    _append(path, _line(1) + _line(2)[:4])
    assert _numbers(tail) == [1]
    _append(path, _line(2)[4:] + _line(3))
    assert _numbers(tail) == [2, 3]
    assert _numbers(tail) == []
    tail.close()


def test_a_file_that_became_shorter_is_read_from_its_start(path: Path) -> None:
    tail = Tail(path)
    _append(path, _line(1) + _line(2))
    assert _numbers(tail) == [1, 2]
    path.write_text(_line(3), encoding="utf-8")
    assert _numbers(tail) == [3]
    tail.close()


def test_of_a_file_that_was_replaced_the_rest_is_read_before_the_new_one(path: Path) -> None:
    tail = Tail(path)
    _append(path, _line(1))
    assert _numbers(tail) == [1]
    _append(path, _line(2))
    path.rename(path.with_suffix(".old"))
    _append(path, _line(3))
    assert _numbers(tail) == [2, 3]
    tail.close()


def test_a_file_that_was_removed_may_come_back(path: Path) -> None:
    tail = Tail(path)
    _append(path, _line(1))
    assert _numbers(tail) == [1]
    path.unlink()
    assert _numbers(tail) == []
    _append(path, _line(2))
    assert _numbers(tail) == [2]
    tail.close()


def test_what_cannot_be_read_costs_nothing_else(path: Path) -> None:
    path.write_bytes(b"no json\n\xff\xfe\n\n" + _line(1).encode())
    tail = Tail(path)
    found = tail.read()
    assert [type(each) for each in found] == [Damage, Damage, TraceItem]
    tail.close()


def test_a_line_that_is_too_long_is_not_held_in_memory(path: Path) -> None:
    path.write_bytes(b'{"n": "' + b"x" * MAX_LINE + b'"}\n' + _line(1).encode())
    tail = Tail(path)
    # A look that only finds the middle of a line answers nothing.
    read = [each for _ in range(20) for each in _numbers(tail)]
    assert read == [f"longer than {MAX_LINE} bytes", 1]
    tail.close()


def test_a_pipe_under_the_name_keeps_nobody_waiting(path: Path) -> None:
    os.mkfifo(path)
    assert Tail(path).read() == []
