"""A run through chaos is right only if its processes were, too; and slow is not lost."""

from dataclasses import replace

import pytest

from midwatch_stage.aftermath import Counts
from midwatch_stage.verdict import Exit, Findings, Outage, Verdict, unexpected_exits

COUNTS = Counts(
    tasks=2,
    completed=2,
    attempts=2,
    ended_once=2,
    restarted=0,
    moved=0,
    alerted=0,
    interventions=0,
    delivered=0,
    failed=(),
    unfinished=(),
    lost=(),
    doubled=(),
    lost_interventions=(),
    doubled_interventions=(),
    sequence_gaps=(),
)
RIGHT = Findings(counts=COUNTS)
SLOW = replace(RIGHT, counts=replace(COUNTS, completed=1, unfinished=("task b never ended",)))


def test_a_run_in_which_nothing_went_wrong_is_right() -> None:
    assert (RIGHT.verdict, RIGHT.faults) == (Verdict.RIGHT, ())
    assert RIGHT.verdict.exit_code == 0


@pytest.mark.parametrize(
    ("findings", "fault"),
    [
        (
            replace(RIGHT, ended=("node-1",)),
            "node-1 did not end when it was told to, and was killed",
        ),
        (replace(RIGHT, exits={"node-2": [2]}), "node-2 ended by itself, with exit code 2"),
        (replace(RIGHT, exits={"monitor-1": [-11]}), "monitor-1 ended by itself, by signal 11"),
        (replace(RIGHT, exits={"node-1": [0]}), "node-1 ended by itself, with exit code 0"),
        (replace(RIGHT, left=3), "3 processes were left behind, and were killed"),
        (replace(RIGHT, failure="no disk"), "the run did not come to its end: no disk"),
        (
            replace(RIGHT, counts=replace(COUNTS, failed=("task b is failed",))),
            "task b is failed",
        ),
        (
            replace(RIGHT, counts=replace(COUNTS, lost=("task b never ended",))),
            "task b never ended",
        ),
    ],
)
def test_each_thing_that_is_wrong_is_named(findings: Findings, fault: str) -> None:
    assert (findings.verdict, findings.faults) == (Verdict.WRONG, (fault,))
    assert findings.verdict.exit_code == 1


def test_each_unexpected_exit_is_named() -> None:
    found = replace(RIGHT, exits={"node-1": [1, 1], "node-2": [-6]})
    assert len(found.faults) == 3


def test_work_that_was_still_getting_on_is_too_slow_and_not_wrong() -> None:
    assert (SLOW.verdict, SLOW.faults) == (Verdict.TOO_SLOW, ())
    assert SLOW.verdict.exit_code == 3


def test_a_slow_run_in_which_something_is_wrong_is_wrong() -> None:
    assert replace(SLOW, ended=("node-1",)).verdict is Verdict.WRONG


# -- exits that an outage explains -----------------------------------------------------------------

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
