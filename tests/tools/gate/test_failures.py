"""The same failure is counted whatever command it is of."""

import pytest

from midwatch_tools.gate.failures import Alike


def alike(*requests: int) -> Alike:
    made = Alike()
    for request in requests:
        made.failed(7, request, "KeyError")
    return made


@pytest.mark.parametrize(
    ("requests", "at", "waits"),
    [
        ((1, 2, 3), 4, True),
        ((1, 2), 3, False),
        ((1, 2, 3), 3, False),
        ((1, 1, 1), 2, False),
        ((1, 2, 3, 3), 3, False),
    ],
    ids=["third", "second", "third of this turn", "three in one turn", "two more of this turn"],
)
def test_a_failure_that_came_often_enough_before_the_turn_waits(
    requests: tuple[int, ...], at: int, waits: bool
) -> None:
    kind = alike(*requests).unanswered(7, at, 3)
    assert (kind is not None) is waits


def test_an_analysis_answers_what_came_before_it_and_not_beside_it() -> None:
    state = alike(1, 2, 3)
    state.analysed(4)
    assert state.unanswered(7, 5, 3) is None
    state.failed(7, 4, "KeyError")
    kind = state.unanswered(7, 5, 3)
    assert kind is not None
    assert (kind.times, kind.words) == (4, "KeyError")


def test_a_success_ends_the_count() -> None:
    state = alike(1, 2, 3)
    state.passed(7)
    assert state.unanswered(7, 4, 3) is None


def test_only_so_many_failures_are_told_apart() -> None:
    state = alike(1, 2, 3)
    for outcome in range(100, 200):
        state.failed(outcome, 4, "other")
    assert state.unanswered(7, 5, 3) is None
