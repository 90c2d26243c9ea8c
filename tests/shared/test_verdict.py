"""A run through chaos is right only if its processes were, too; and slow is not lost."""

from dataclasses import replace

import pytest

from midwatch_tests.aftermath import Evidence, counted
from midwatch_tests.verdict import Exit, Findings, Outage, Verdict, unexpected_exits

COUNTS = counted(Evidence(tasks=[], attempts=[], entries=[]))
RIGHT = Findings(counts=COUNTS)
SLOW = replace(RIGHT, counts=replace(COUNTS, unfinished=("task b never ended",)))


@pytest.mark.parametrize(
    ("findings", "verdict", "code"),
    [
        (RIGHT, Verdict.RIGHT, 0),
        (replace(RIGHT, left=1), Verdict.WRONG, 1),
        (SLOW, Verdict.TOO_SLOW, 3),
        (replace(SLOW, left=1), Verdict.WRONG, 1),
    ],
)
def test_slow_is_not_wrong_unless_something_is_wrong_besides(
    findings: Findings, verdict: Verdict, code: int
) -> None:
    assert (findings.verdict, findings.verdict.exit_code) == (verdict, code)


@pytest.mark.parametrize(
    ("findings", "fault"),
    [
        (replace(RIGHT, ended=("a",)), "a did not end when it was told to, and was killed"),
        (replace(RIGHT, exits={"a": [2]}), "a ended by itself, with exit code 2"),
        (replace(RIGHT, exits={"a": [-11]}), "a ended by itself, by signal 11"),
        (replace(RIGHT, exits={"a": [], "b": [0]}), "b ended by itself, with exit code 0"),
        (replace(RIGHT, left=3), "3 processes were left behind, and were killed"),
        (replace(RIGHT, failure="no disk"), "the run did not come to its end: no disk"),
        (replace(RIGHT, counts=replace(COUNTS, failed=("task b is failed",))), "task b is failed"),
    ],
)
def test_each_thing_that_is_wrong_is_named(findings: Findings, fault: str) -> None:
    assert (findings.verdict, findings.faults) == (Verdict.WRONG, (fault,))


AWAY = Outage(began=10.0, ended=20.0)
NO_DATABASE = Exit(code=1, began=5.0, ended=15.0, ready=False)


@pytest.mark.parametrize(("began", "ended"), [(5, 15), (12, 15), (5, 25), (15, 25), (20, 25)])
def test_one_begun_while_the_database_is_away_may_end_with_1(began: float, ended: float) -> None:
    exits = [replace(NO_DATABASE, began=began, ended=ended)]
    assert unexpected_exits("node-1", exits, [AWAY]) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(NO_DATABASE, ready=True),
        replace(NO_DATABASE, code=2),
        replace(NO_DATABASE, code=-11),
        replace(NO_DATABASE, code=0),
        replace(NO_DATABASE, began=21.0, ended=30.0),
        replace(NO_DATABASE, began=1.0, ended=9.0),
    ],
)
def test_any_other_end_is_unexpected(other: Exit) -> None:
    assert unexpected_exits("node-1", [NO_DATABASE, other], [AWAY]) == [other.code]


def test_a_process_that_is_cut_off_explains_no_end_of_another() -> None:
    away = replace(AWAY, process="node-1")
    assert unexpected_exits("node-1", [NO_DATABASE], [away]) == []
    assert unexpected_exits("node-2", [NO_DATABASE], [away]) == [1]
