"""Whether some alarms are better than others beyond noise."""

from collections.abc import Sequence

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.comparison import Comparison, compare
from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.runs import AlarmTarget, MeasuredRun, RecordedRun

SILENT = MeasuredRun(steps=10, rises={}, agreed=None, present=None)


def run(task: str, *, resolved: bool = False, source: str = "a") -> RecordedRun:
    label = Label(path=task, task=task, source=source, resolved=resolved)
    return RecordedRun(label=label, measured=SILENT)


def held(
    runs: Sequence[RecordedRun],
    before: int,
    after: int,
    *,
    source: str | None = None,
    seed: int = 1,
) -> Comparison:
    """So many of the runs alarmed before, and so many after: always the first ones."""
    alarms = [[5 if at < many else None for at in range(len(runs))] for many in (before, after)]
    return compare(runs, AlarmTarget.UNRESOLVED, (alarms[0], alarms[1]), seed=seed, source=source)


FAILED = [run(f"task-{at}") for at in range(40)]
RESOLVED = [run(f"task-{at}", resolved=True) for at in range(40)]


def test_more_that_is_found_on_many_tasks_is_better() -> None:
    compared = held(FAILED, 10, 20)
    assert compared.found.before == Share(hits=10, of=40)
    assert compared.found.after == Share(hits=20, of=40)
    assert (compared.better, compared.worse) == (True, False)
    back = held(FAILED, 20, 10)
    assert (back.better, back.worse) == (False, True)


def test_fewer_false_alarms_on_many_tasks_are_better() -> None:
    assert held(RESOLVED, 12, 2).better
    assert held(RESOLVED, 2, 12).worse


def test_one_task_more_is_noise() -> None:
    compared = held(FAILED, 10, 11)
    assert compared.found.interval is not None
    assert compared.found.interval.low <= 0 < compared.found.interval.high
    assert not compared.better
    assert not compared.worse


def test_many_runs_of_one_task_are_one_sign() -> None:
    many = [run("one") for _ in range(20)] + FAILED
    compared = held(many, 0, 20)
    assert compared.found.tasks == 1
    assert not compared.better


def test_four_tasks_of_four_are_too_few_to_be_better_and_enough_to_be_worse() -> None:
    assert not held(FAILED[:4], 0, 4).better
    assert held(FAILED[:4], 4, 0).worse


def test_of_a_single_task_nothing_is_claimed() -> None:
    compared = held([run("one"), run("one")], 2, 0)
    assert compared.found.interval is None
    assert not compared.worse


def test_where_nothing_changes_the_interval_is_nothing() -> None:
    compared = held(FAILED, 7, 7)
    assert compared.found.interval == Interval(low=0.0, high=0.0)
    assert compared.resolved.interval is None


def test_only_the_runs_of_a_source_are_compared() -> None:
    other = [run(f"task-{at}", source="b") for at in range(40)]
    assert held([*other, *FAILED], 0, 40, source="a").found.after == Share(hits=0, of=40)
    assert held([*other, *FAILED], 0, 40, source="b").found.after == Share(hits=40, of=40)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert held(FAILED, 10, 14) == held(FAILED, 10, 14)
    assert held(FAILED, 10, 14) != held(FAILED, 10, 14, seed=2)
