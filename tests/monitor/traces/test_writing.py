"""What is written as a trace is read back as it was."""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Alert,
    Budget,
    Change,
    Checkpoint,
    Edit,
    Event,
    Meter,
    Step,
    StepKind,
)
from midwatch_monitor.traces import open_trace
from midwatch_monitor.traces.native import LineReader, write_event

ACT = Step(number=1, kind=StepKind.TOOL, tool="run_command")
ODD = (
    *("", " ", "a", "ü", "😀", "\0", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\ufeff", "\udc80"),
    *('"', "\\", "\\u2028", "\x1b[31m", "null", "{}", "[1", "x" * 5000),
)


def back(event: Event) -> Event | str:
    """The event, written and read."""
    return LineReader().read(json.loads(write_event(event).encode()))


def text(random: Random) -> str:
    return "".join(random.choices(ODD, k=random.randrange(4)))


def moment(random: Random) -> datetime:
    zone = timezone(timedelta(minutes=random.randrange(-720, 720)))
    noon = datetime(2026, 11, 21, 12, tzinfo=zone)
    return random.choice([noon, noon + timedelta(microseconds=random.randrange(10**12))])


def value(random: Random, kind: Any) -> Any:
    """Any value of a field, by its type; numbers are those that every field may have."""
    if get_origin(kind) is tuple:
        return tuple(value(random, get_args(kind)[0]) for _ in range(random.randrange(3)))
    if get_origin(kind) is UnionType:
        return random.choice([None, *(value(random, each) for each in get_args(kind)[:-1])])
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{each.name: value(random, hints[each.name]) for each in fields(kind)})
    if issubclass(kind, StrEnum):
        return random.choice(list(kind))
    plain: dict[Any, Callable[[], Any]] = {
        str: lambda: text(random),
        bool: lambda: random.random() < 0.5,
        int: lambda: random.randrange(1, 100),
        float: lambda: random.choice([0.25, 7.0, 1e-9]),
        datetime: lambda: moment(random),
    }
    return plain[kind]()


def step(random: Random, number: int) -> Step:
    made: Step = value(random, Step)
    args = random.choice([made.args, '{"command": "echo > a.py"}', '{"b":1}'])
    reports = made.kind is StepKind.CHECKPOINT
    report = value(random, Checkpoint) if reports else None
    return replace(made, number=number, args=args, checkpoint=report)


def change(random: Random) -> Change:
    made: Change = value(random, Change)
    return replace(made, outage=None, acts=None)  # no rule looks at them, so no trace has them


def events(seed: int, count: int) -> list[Event]:
    random = Random(seed)
    return [
        change(random) if random.random() < 0.2 else step(random, number)
        for number in range(1, count + 1)
    ]


def judged(told: Iterable[Event | object]) -> list[tuple[Alert, ...]]:
    judge = Judge(Rules())
    return [judge.observe(event).alerts for event in told if isinstance(event, Step | Change)]


@pytest.mark.parametrize("odd", ODD)
def test_odd_text_survives_wherever_it_stands(odd: str) -> None:
    said = Checkpoint(progress_percent=0, confidence=0, blockers=(odd,), notes=odd)
    for event in (
        replace(ACT, args=odd, path=odd, output=odd, text=odd, edits=(Edit(path=odd),)),
        Step(number=1, kind=StepKind.CHECKPOINT, checkpoint=said),
        Change(doing=odd),
    ):
        assert back(event) == event


@pytest.mark.parametrize("seed", range(5))
def test_a_written_run_is_read_as_it_was_and_judged_the_same(tmp_path: Path, seed: int) -> None:
    told = events(seed, 100)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(write_event(event) + "\n" for event in told), encoding="utf-8")
    assert list(open_trace(path)) == told
    assert judged(open_trace(path)) == judged(told)
    assert any(judged(told))


def test_every_event_is_one_line_whoever_cuts_the_lines() -> None:
    assert [len(write_event(event).splitlines()) for event in events(7, 100)] == [1] * 100


def test_what_has_its_default_is_left_out_but_the_edits_of_a_tool_step() -> None:
    assert write_event(ACT) == '{"step":1,"kind":"tool","tool":"run_command","edits":[]}'
    assert write_event(Step(number=2, kind=StepKind.MESSAGE)) == '{"step":2,"kind":"message"}'
    assert write_event(Change()) == '{"kind":"state"}'


def test_what_is_zero_or_false_is_said_where_that_is_not_the_default() -> None:
    change = Change(reflect=False, reflect_every=0, revision=0, plan_step_files=())
    assert json.loads(write_event(change)) == {
        "kind": "state",
        "reflect": False,
        "reflect_every": 0,
        "revision": 0,
        "plan_step_files": [],
    }
    assert '"exit_code":0' in write_event(replace(ACT, exit_code=0))


def test_a_command_without_edits_infers_none_when_it_is_read_back() -> None:
    quiet = replace(ACT, args='{"command": "echo 1 > a.py"}')
    assert back(quiet) == quiet


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ('{"a": [1, "ü"], "b": 1.5}', {"a": [1, "ü"], "b": 1.5}),
        ('{"a":1}', '{"a":1}'),
        ('{"a": 1.50}', '{"a": 1.50}'),
        ("ls -l", "ls -l"),
        ('{"a": 1', '{"a": 1'),
        ('{"a":' * 5000, '{"a":' * 5000),
        ("[1]", "[1]"),
    ],
)
def test_arguments_are_an_object_where_they_stay_the_same_as_one(args: str, said: object) -> None:
    act = replace(ACT, args=args)
    assert json.loads(write_event(act))["args"] == said
    assert back(act) == act


def test_a_budget_says_used_and_limit_of_what_it_has() -> None:
    budget = Budget(requests=Meter(used=12.0, limit=60.0), minutes=Meter(used=0.5))
    line = write_event(Change(budget=budget))
    assert line == '{"kind":"state","budget":{"requests":[12,60],"minutes":[0.5,null]}}'
