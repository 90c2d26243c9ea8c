"""Runs parted by task."""

from midwatch_monitor.replay.tune.labels import Label
from midwatch_monitor.replay.tune.run import MeasuredRun, Run
from midwatch_monitor.replay.tune.study import fold_of, parted


def run(task: str) -> Run:
    label = Label(path=task, task=task, resolved=True)
    return Run(label=label, measured=MeasuredRun(steps=1, rises={}, agreed=None, present=None))


def test_the_fold_of_a_task_follows_from_its_name_alone() -> None:
    assert [fold_of(f"task-{number}", 5) for number in range(8)] == [2, 3, 1, 0, 1, 2, 3, 4]


def test_runs_of_one_task_are_in_one_fold() -> None:
    parts = parted([run(f"task-{number % 8}") for number in range(24)], 5)
    assert sorted(at for part in parts for at in part) == list(range(24))
    for part in parts:
        assert {at % 8 for at in part} == {at % 8 for at in part if at < 8}


def test_a_fold_without_a_task_is_left_out() -> None:
    assert parted([run("one"), run("one")], 5) == [(0, 1)]
