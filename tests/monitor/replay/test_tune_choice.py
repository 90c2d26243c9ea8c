"""Which thresholds are chosen, and which are better."""

from collections.abc import Mapping
from random import Random

import pytest

from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.replay.tune.figures import AlarmFigures, AlarmMeter
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.run import MeasuredRun, Rises, Run, Target
from midwatch_monitor.replay.tune.study import Choice, Verdict, better, choose, target_of

SILENT: Mapping[str, Rises] = {}


def good(
    count: int, rises: Mapping[str, Rises] = SILENT, *, agreed: int | None = None
) -> list[Run]:
    label = Label(path="", task="", resolved=True)
    measured = MeasuredRun(steps=20, rises=rises, agreed=agreed, present=None)
    return [Run(label=label, measured=measured)] * count


def bad(count: int, rises: Mapping[str, Rises] = SILENT) -> list[Run]:
    label = Label(path="", task="", resolved=False)
    measured = MeasuredRun(steps=20, rises=rises, agreed=None, present=None)
    return [Run(label=label, measured=measured)] * count


def chosen(
    of: list[Run], present: Mapping[str, int | None], *, allowed: float = 0.1
) -> dict[str, tuple[int | None, Verdict]]:
    meter = AlarmMeter(of, Target.UNRESOLVED, Random(1))
    choices = choose(meter, present, allowed=allowed)
    assert [choice.rule for choice in choices] == list(present)
    return {choice.rule: (choice.level, choice.verdict) for choice in choices}


CLEAR = [
    *good(40, {"a": ((5, 1),)}),
    *bad(20, {"a": ((5, 1), (6, 2), (7, 3))}),
    *bad(20),
]
"""From the second level on, the rule `a` finds half of what fails and nothing else."""


@pytest.mark.parametrize("now", [None, 1, 3])
def test_the_most_eager_threshold_that_costs_little_is_chosen(now: int | None) -> None:
    assert chosen(CLEAR, {"a": now}) == {"a": (2, Verdict.CHOSEN)}


def test_a_rule_of_which_little_is_seen_stays_as_it_is() -> None:
    few = [*CLEAR, *bad(4, {"b": ((5, 1),)})]
    found = chosen(few, {"a": 2, "b": 1, "c": 7, "d": None})
    kept = {"b": (1, Verdict.TOO_FEW), "c": (7, Verdict.TOO_FEW), "d": (None, Verdict.TOO_FEW)}
    assert found == {"a": (2, Verdict.CHOSEN), **kept}


def test_a_rule_that_alarms_both_alike_finds_nothing() -> None:
    alike = [
        *good(4, {"a": ((5, 3),)}),
        *good(96),
        *bad(4, {"a": ((5, 3),)}),
        *bad(96),
    ]
    assert chosen(alike, {"a": 3}) == {"a": (None, Verdict.BY_CHANCE)}


def test_a_rule_that_alarms_too_many_resolved_runs_is_no_alarm() -> None:
    dear = [*good(40, {"a": ((5, 3),)}), *bad(40, {"a": ((5, 3),)})]
    assert chosen(dear, {"a": 3}) == {"a": (None, Verdict.TOO_DEAR)}


def test_a_rule_that_finds_what_another_does_stays_as_it_is() -> None:
    both: Mapping[str, Rises] = {"a": ((5, 2),), "b": ((5, 2),)}
    twins = [*good(40), *bad(20, both), *bad(20)]
    assert chosen(twins, {"a": None, "b": 2}) == {
        "a": (2, Verdict.CHOSEN),
        "b": (2, Verdict.NO_COST),
    }


def test_rules_are_added_by_what_they_find_until_too_much_is_alarmed() -> None:
    a, b = ({rule: ((5, 2),)} for rule in "ab")
    rivals = [
        *good(2, a),
        *good(2, b),
        *good(1, agreed=9),
        *good(35),
        *bad(12, a),
        *bad(14, b),
        *bad(20),
    ]
    assert chosen(rivals, {"a": 2, "b": 2}) == {
        "a": (None, Verdict.TOO_DEAR),
        "b": (2, Verdict.CHOSEN),
    }
    assert chosen(rivals, {"a": 2, "b": 2}, allowed=0.2) == {
        "a": (2, Verdict.CHOSEN),
        "b": (2, Verdict.CHOSEN),
    }


def test_the_alarms_of_notices_that_agree_count_from_the_start() -> None:
    agreeing = [
        *good(4, agreed=9),
        *good(1, {"a": ((5, 2),)}),
        *good(35),
        *bad(20, {"a": ((5, 2),)}),
        *bad(20),
    ]
    assert chosen(agreeing, {"a": 2}) == {"a": (None, Verdict.TOO_DEAR)}


def test_a_choice_depends_on_the_runs_and_the_seed_alone() -> None:
    yardsticks = [AlarmMeter(CLEAR, Target.UNRESOLVED, Random(1)) for _ in range(2)]
    first, second = (choose(each, {"a": 3}, allowed=0.1) for each in yardsticks)
    assert first == second == (Choice(rule="a", level=2, verdict=Verdict.CHOSEN),)


def figures(false: int, found: int) -> AlarmFigures:
    return AlarmFigures(
        resolved=Share(hits=false, of=100),
        found=Share(hits=found, of=50),
        unresolved=Share(hits=found, of=50),
        lift=None,
        lift_interval=None,
        lift_unresolved=None,
        delay=None,
    )


@pytest.mark.parametrize(
    ("one", "other", "is_better"),
    [
        ((2, 20), (2, 19), True),
        ((2, 20), (2, 20), False),
        ((1, 20), (2, 20), True),
        ((3, 20), (1, 19), True),
        ((4, 40), (1, 10), False),
        ((2, 10), (9, 40), True),
        ((4, 20), (5, 40), True),
        ((0, 0), (9, 40), False),
    ],
)
def test_better_is_to_keep_what_is_allowed_then_to_find_more(
    one: tuple[int, int], other: tuple[int, int], is_better: bool
) -> None:
    assert better(figures(*one), figures(*other), allowed=0.03) is is_better


@pytest.mark.parametrize(("spent", "target"), [(9, Target.UNRESOLVED), (10, Target.SPENT)])
def test_runs_out_of_budget_are_the_target_where_there_are_enough(
    spent: int, target: Target
) -> None:
    labels = [Label(path="", task="", resolved=False, spent=at < spent) for at in range(20)]
    assert target_of(labels) is target
