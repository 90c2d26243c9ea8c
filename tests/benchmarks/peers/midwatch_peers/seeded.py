"""Runs that are made up: healthy at first, then a loop of a known kind from a known step."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records import Edit, Step, StepKind

HEALTHY_STEPS = 12
"""Different steps before the loop begins."""
CYCLES = 10
"""How often the loop goes round; a detector that is silent until then has not found it."""
PERIODS = range(1, 9)
_EDIT_AND_TEST = 2
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Loop(StrEnum):
    """What repeats."""

    EXACT = "exact"
    """The same calls with the same results."""
    NOISY = "noisy"
    """The same calls; the results differ in a time, a duration and a process id."""
    EDIT_TEST = "edit-test"
    """A different edit of one file each time, then the same test with the same failure."""
    NONE = "healthy"
    """No loop: as many steps again, all different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of loop and the steps that it takes to go round once."""

    loop: Loop
    period: int


CASES = (
    *(Case(loop=loop, period=period) for loop in (Loop.EXACT, Loop.NOISY) for period in PERIODS),
    Case(loop=Loop.EDIT_TEST, period=_EDIT_AND_TEST),
    Case(loop=Loop.NONE, period=max(PERIODS)),
)


def sequence(case: Case, seed: int) -> tuple[Step, ...]:
    """The steps of one made-up run; the loop begins after the first `HEALTHY_STEPS`."""
    rng = random.Random(f"{case.loop} {case.period} {seed}")
    healthy = [healthy_step(rng, number) for number in range(1, HEALTHY_STEPS + 1)]
    return (*healthy, *_looping(case, rng))


def healthy_step(rng: random.Random, number: int) -> Step:
    """A step unlike all others: a read, a search, a command or an edit."""
    if rng.random() < 0.2:
        return _edit(rng, number, f"src/{_word(rng)}.py")
    tool, key = rng.choice((("read_file", "path"), ("search", "query"), ("bash", "command")))
    return Step(
        number=number,
        kind=StepKind.TOOL,
        tool=tool,
        args=_args({key: _words(rng, 3)}),
        ok=True,
        exit_code=0 if tool == "bash" else None,
        output=_words(rng, 30),
    )


def _looping(case: Case, rng: random.Random) -> Iterator[Step]:
    first = HEALTHY_STEPS + 1
    numbers = range(first, first + CYCLES * case.period)
    match case.loop:
        case Loop.NONE:
            yield from (healthy_step(rng, number) for number in numbers)
        case Loop.EDIT_TEST:
            yield from _edits_and_tests(rng, numbers)
        case Loop.EXACT | Loop.NOISY:
            round_trip = [_call(rng) for _ in range(case.period)]
            for at, number in enumerate(numbers):
                tool, args, output = round_trip[at % case.period]
                noise = _noise(rng) if case.loop is Loop.NOISY else ""
                yield _step(number, tool, args, output + noise)


def _edits_and_tests(rng: random.Random, numbers: range) -> Iterator[Step]:
    path, failure = f"src/{_word(rng)}.py", f"{_words(rng, 20)}\n1 failed, 4 passed"
    test = _args({"command": f"pytest tests/test_{_word(rng)}.py"})
    for at, number in enumerate(numbers):
        if at % _EDIT_AND_TEST:
            yield _step(number, "bash", test, failure, exit_code=1)
        else:
            yield _edit(rng, number, path)


def _call(rng: random.Random) -> tuple[str, str, str]:
    tool, key = rng.choice((("read_file", "path"), ("search", "query"), ("bash", "command")))
    return tool, _args({key: _words(rng, 3)}), _words(rng, 30)


def _step(number: int, tool: str, args: str, output: str, exit_code: int | None = None) -> Step:
    return Step(
        number=number,
        kind=StepKind.TOOL,
        tool=tool,
        args=args,
        exit_code=exit_code,
        output=output,
    )


def _edit(rng: random.Random, number: int, path: str) -> Step:
    return Step(
        number=number,
        kind=StepKind.TOOL,
        tool="edit_file",
        args=_args({"path": path, "text": _words(rng, 12)}),
        path=path,
        edits=(Edit(path=path, digest=f"{rng.getrandbits(64):016x}"),),
        ok=True,
        output=f"edited {path}",
    )


def _noise(rng: random.Random) -> str:
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    return (
        f"\nfinished in {rng.uniform(0.1, 9):.2f}s"
        f" at 2026-11-{rng.randrange(1, 29):02} {clock} (pid {rng.randrange(1000, 60000)})"
    )


def _args(args: dict[str, str]) -> str:
    return json.dumps(args, sort_keys=True, separators=(",", ":"))


def _words(rng: random.Random, count: int) -> str:
    return " ".join(_word(rng) for _ in range(count))


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_LETTERS, k=rng.randrange(3, 9)))
