"""Records become JSON and come back the same."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from traceback import format_exception
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from sqlalchemy.dialects.sqlite import dialect

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core.encoding import kind_of, read, record_json
from midwatch_monitor.journal.core.tables import Packed
from midwatch_tests import factories as make

AT = datetime(2026, 11, 21, 20, 0, 0, 123456, tzinfo=UTC)
PLAIN: dict[object, object] = {
    str: 'caf\u00e9 "\\u0000" \x00\u2028\n',
    int: 7,
    float: 0.25,
    bool: True,
    datetime: AT,
}


def filled_value(kind: Any) -> Any:
    """A value of a type, in which nothing is as it would be by default."""
    origin = get_origin(kind)
    if origin is tuple:
        return tuple(filled_value(each) for each in get_args(kind) if each is not ...) * 2
    if origin is not None:
        return filled_value(next(each for each in get_args(kind) if each is not type(None)))
    if hasattr(kind, "__dataclass_fields__"):
        return kind(**{name: filled_value(hint) for name, hint in get_type_hints(kind).items()})
    return list(kind)[-1] if issubclass(kind, Enum) else PLAIN[kind]


RECORDS: list[r.Record] = [filled_value(kind) for kind in get_args(r.Record)]
MORE = [replace(make.alert(), value=math.inf), make.step(ok=False), make.plan()]


@pytest.mark.parametrize("record", [*RECORDS, *MORE], ids=lambda each: type(each).__name__)
def test_a_record_comes_back_the_same(record: r.Record) -> None:
    assert read(kind_of(type(record)), record_json(record)) == record


def test_every_kind_of_record_has_a_name_of_its_own() -> None:
    assert len({kind_of(word) for word in get_args(r.Record)}) == len(RECORDS)


def test_a_record_says_its_defaults_too() -> None:
    record = r.TaskTransition(lifecycle=r.Lifecycle.WORKING)
    assert record_json(record) == '{"lifecycle":"working","reason":"","passed":0,"total":0}'


def test_half_a_surrogate_pair_in_an_output_does_not_stop_the_record() -> None:
    broken = r.Step(number=1, kind=r.StepKind.TOOL, at=AT, output="bytes \udc80 here", ok=True)
    mended = r.Step(number=1, kind=r.StepKind.TOOL, at=AT, output="bytes ? here", ok=True)
    assert read("step", record_json(broken)) == mended


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    assert read("fault", '{"part":"a","error":"b","colour":"red"}') == r.Fault(part="a", error="b")


def test_a_kind_of_a_newer_version_is_named() -> None:
    with pytest.raises(JournalTooNewError, match="'tide'"):
        read("tide", "{}")


@pytest.mark.parametrize("body", ["", "{", "[]", '{"part":"a"}'])
def test_a_broken_body_is_named(body: str) -> None:
    with pytest.raises(JournalCorruptError, match="broken 'fault'"):
        read("fault", body)


def test_the_error_of_a_broken_body_says_what_is_wrong_and_not_what_stands_there() -> None:
    body = '{"text": 7, "certainty": "my secret", "files": ["my secret", 8]}'
    with pytest.raises(JournalCorruptError) as caught:
        read("fact", body)
    assert str(caught.value) == (
        "the journal holds a broken 'fact': text: Input should be a valid string; "
        "certainty: Input should be 'confirmed' or 'inferred'; "
        "files.1: Input should be a valid string"
    )
    assert "my secret" not in "".join(format_exception(caught.value))


def test_a_damaged_history_is_told_as_such() -> None:
    packed, sqlite = Packed(), dialect()
    stored = packed.process_bind_param(b"{}", sqlite)
    assert packed.process_result_value(stored, sqlite) == b"{}"
    with pytest.raises(JournalCorruptError, match="damaged"):
        packed.process_result_value(b"{}", sqlite)
