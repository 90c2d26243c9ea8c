"""What a judge keeps of an attempt stays small, however long the attempt goes on."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import cast

from pydantic import BaseModel

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Change, Event
from midwatch_tests.factories import edit, message, reflecting, step

LIMIT = 12 * 1024
"""Bytes."""

_SHARED = (BaseModel, Enum, type, FunctionType, MethodType, BuiltinFunctionType)
"""What all judges of a process have in common."""


def size(thing: object, seen: set[int] | None = None) -> int:
    """The bytes that a thing keeps alive, without what is shared by all judges."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, _SHARED):
        return 0
    seen.add(id(thing))
    return sys.getsizeof(thing) + sum(size(each, seen) for each in _parts(thing))


def _parts(thing: object) -> Iterator[object]:
    kind, own = type(thing), getattr(thing, "__dict__", {})
    slots = [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]
    yield from own.values()
    yield from (getattr(thing, name, None) for name in slots)
    if isinstance(thing, Mapping):
        for pair in cast("Mapping[object, object]", thing).items():
            yield from pair
    elif isinstance(thing, tuple | list | set | frozenset | deque):
        yield from cast("Iterable[object]", thing)


def varied_event(number: int) -> Event:
    """A step of a long attempt: all kinds, many files, many commands, many failures."""
    match number % 10:
        case 0:
            return reflecting(
                number,
                progress=number // 100 % 100,
                confidence=number * 7 % 100,
                blockers=("a", "b", "c")[: number // 10 % 4],
                notes="all tests pass",
            )
        case 1 | 2:
            return message(number, f"all tests pass {number}")
        case 3 | 4 | 5:
            edits = (edit(f"src/{number % 97}.py", str(number % 1013)),)
            return step(number, "edit", args=f"{number}", edits=edits)
        case _:
            return step(
                number,
                args=f"pytest {number % 53}",
                ok=None,
                exit_code=number % 3,
                output=f"Error: {number % 211}\nsh: p{number % 5}: command not found",
            )


def judge_after(steps: int) -> Judge:
    judge = Judge(Rules())
    for number in range(1, steps + 1):
        judge.observe(varied_event(number))
        if number % 997 == 0:
            judge.observe(Change(plan_step=number // 997, plan_steps=20))
    return judge


def test_a_judge_is_small_and_does_not_grow_with_the_length_of_an_attempt() -> None:
    """What judges of a process share is there once; each alert that stands comes on top."""
    shared: set[int] = set()
    first, judge = judge_after(1_000), judge_after(10_000)
    assert size(judge) < 1.25 * size(first)
    assert size(first, shared)
    assert size(judge, shared) < LIMIT + 1024 * len(judge.firing)


def test_alerts_that_rest_are_dropped_once_their_cooldown_is_over() -> None:
    rules = Rules.model_validate(
        {"repeated_edits": {"notice_after": 1, "cooldown": 2}, "agreement": False}
    )
    judge = Judge(rules)
    sizes: list[int] = []
    for number in range(1, 2_001):
        edits = (edit(f"{number}.py", "d"),)
        judge.observe(step(number, args="t", ok=None, edits=edits, exit_code=number % 2))
        if number % 50 == 0:
            sizes.append(size(judge))
    assert max(sizes[20:]) <= 1.1 * max(sizes[:20])
