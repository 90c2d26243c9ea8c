"""What alarms cost and find: shares with their intervals, lift over runs of equal length."""

from collections.abc import Sequence
from random import Random

import pytest

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.figures import AlarmFigures, AlarmMeter, RunsByLength
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.run import (
    MeasuredRun,
    Rises,
    Run,
    Target,
    alarms_at,
    earlier,
    first_at,
    levels,
)


def run(
    *,
    resolved: bool | None = True,
    steps: int = 10,
    spent: bool = False,
    source: str = "",
    rises: Rises = (),
) -> Run:
    label = Label(path="", task="", source=source, resolved=resolved, spent=spent)
    measured = MeasuredRun(steps=steps, rises={"cycle": rises}, agreed=None, present=None)
    return Run(label=label, measured=measured)


def lost(*, steps: int = 10, source: str = "") -> Run:
    return run(resolved=False, steps=steps, source=source)


def ends(share: Share) -> tuple[float, float]:
    return round(share.interval.low, 3), round(share.interval.high, 3)


@pytest.mark.parametrize(
    ("hits", "of", "interval"),
    [
        (0, 0, (0.0, 1.0)),
        (0, 10, (0.0, 0.278)),
        (10, 10, (0.722, 1.0)),
        (5, 10, (0.237, 0.763)),
        (1, 100, (0.002, 0.054)),
    ],
)
def test_the_interval_of_a_share_is_wilsons(
    hits: int, of: int, interval: tuple[float, float]
) -> None:
    assert ends(Share(hits=hits, of=of)) == interval


def test_a_share_of_none_is_none() -> None:
    assert Share(hits=0, of=0).rate == 0.0


def test_the_first_step_at_a_level_is_where_the_stairs_reach_it() -> None:
    rises = ((3, 1), (5, 2), (9, 6))
    assert [first_at(rises, level) for level in (1, 2, 4, 6, 7)] == [3, 5, 9, 9, None]


def test_the_levels_of_a_rule_are_those_of_all_runs_together() -> None:
    runs = [run(rises=((3, 1), (5, 4))), run(rises=((2, 2),)), run()]
    assert levels(runs, "cycle") == [1, 2, 4]
    assert list(alarms_at(runs, "cycle", 2)) == [5, 2, None]
    assert list(alarms_at(runs, "cycle", None)) == [None] * 3


def test_of_two_rules_the_sooner_alarm_counts() -> None:
    assert list(earlier([1, None, 5, None], [2, 3, 4, None])) == [1, 3, 4, None]


def lift(runs: Sequence[Run], *alarms: int | None) -> float | None:
    return RunsByLength(runs, Target.UNRESOLVED).lift(alarms)


def test_an_alarm_that_is_right_where_half_fail_lifts_by_a_half() -> None:
    assert lift([run(), lost()], None, 5) == 0.5
    assert lift([run(), lost()], 5, None) == -0.5


def test_only_runs_that_were_still_going_are_peers() -> None:
    assert lift([run(steps=4), lost(steps=9)], None, 5) == 0.0
    assert lift([run(steps=5), lost(steps=9)], None, 5) == 0.5


def test_only_runs_of_the_same_source_are_peers() -> None:
    runs = [run(source="a"), lost(source="a"), lost(source="b")]
    assert lift(runs, None, 5, 5) == 0.25


def test_a_source_in_which_no_run_fails_and_a_run_of_unknown_end_say_nothing() -> None:
    runs = [run(source="a"), run(resolved=None, source="b"), lost(source="b")]
    assert lift(runs, 5, 5, None) is None


def drawn(runs: Sequence[Run], alarms: Sequence[int | None], seed: int = 1) -> Interval | None:
    by_length = RunsByLength(runs, Target.UNRESOLVED)
    by_length.draw(Random(seed))
    return by_length.interval(alarms)


def test_alarms_that_are_always_right_lift_beyond_chance() -> None:
    found = drawn([run()] * 20 + [lost()] * 20, [None] * 20 + [5] * 20)
    assert found is not None
    assert 0.3 < found.low < 0.5 < found.high < 0.7


def test_alarms_at_random_do_not() -> None:
    found = drawn([run()] * 20 + [lost()] * 20, [5, None] * 20)
    assert found is not None
    assert found.low < 0 < found.high


def test_the_same_seed_gives_the_same_interval() -> None:
    runs, alarms = [run(), lost()] * 10, [5, None, None, 5] * 5
    assert drawn(runs, alarms) == drawn(runs, alarms)
    assert drawn(runs, alarms) != drawn(runs, alarms, seed=2)


@pytest.mark.parametrize(("alarmed", "claimed"), [(4, False), (5, True)])
def test_fewer_than_five_alarms_claim_no_interval(alarmed: int, claimed: bool) -> None:
    runs = [run(), lost()] * 10
    alarms = [5] * alarmed + [None] * (20 - alarmed)
    assert (drawn(runs, alarms) is not None) is claimed


def test_a_run_out_of_budget_is_found_only_in_its_first_four_fifths() -> None:
    runs = [run(resolved=False, spent=True)] * 3
    meter = AlarmMeter(runs, Target.SPENT, Random(1))
    assert [meter.found([step] * 3) for step in (1, 8, 9, None)] == [3, 3, 0, 0]


def test_an_unresolved_run_is_found_at_any_step() -> None:
    meter = AlarmMeter([lost(), run()], Target.UNRESOLVED, Random(1))
    assert meter.found([10, 10]) == 1


def test_the_figures_of_alarms() -> None:
    runs = [run(), run(), lost(), lost(steps=20), run(resolved=None)]
    meter = AlarmMeter(runs, Target.UNRESOLVED, Random(1))
    found = meter.figures([2, None, 4, 4, 1])
    assert (found.lift, found.delay) == pytest.approx((1 / 6, 0.3))
    assert found == AlarmFigures(
        resolved=Share(hits=1, of=2),
        found=Share(hits=2, of=2),
        unresolved=Share(hits=2, of=2),
        lift=found.lift,
        lift_interval=None,
        lift_unresolved=found.lift,
        delay=found.delay,
    )


def test_without_alarms_there_is_neither_lift_nor_delay() -> None:
    figures = AlarmMeter([run(), lost()], Target.UNRESOLVED, Random(1)).figures([None, None])
    assert (figures.lift, figures.delay) == (None, None)
