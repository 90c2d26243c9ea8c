"""A steady worker is reminded less often, and never less than every fourth interval."""

import pytest

from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import Checkpoint
from midwatch_tools.instructions import next_interval, reminder_due, steady

SETTINGS = ReflectSettings(remind_every=3, steady_doublings=2, steady_confidence=70)


def reports(*pairs: tuple[int, int]) -> list[Checkpoint]:
    return [Checkpoint(progress_percent=gain, confidence=sure) for gain, sure in pairs]


@pytest.mark.parametrize(
    ("pairs", "is_steady"),
    [
        ([], False),
        ([(10, 90)], False),
        ([(10, 90), (15, 70)], True),
        ([(10, 90), (14, 90)], False),
        ([(10, 90), (20, 69)], False),
        ([(50, 90), (10, 90), (15, 70)], True),
    ],
)
def test_steady_is_a_gain_with_confidence(pairs: list[tuple[int, int]], is_steady: bool) -> None:
    assert steady(reports(*pairs), firing=False, min_gain=5, settings=SETTINGS) is is_steady


def test_nothing_is_steady_while_an_alert_fires() -> None:
    two = reports((10, 90), (20, 90))
    assert not steady(two, firing=True, min_gain=5, settings=SETTINGS)


def test_the_interval_doubles_up_to_four_times_and_then_stays() -> None:
    intervals = [3]
    for _ in range(3):
        intervals.append(next_interval(intervals[-1], is_steady=True, settings=SETTINGS))
    assert intervals == [3, 6, 12, 12]


def test_the_first_unsteady_checkpoint_resets_the_interval() -> None:
    assert next_interval(12, is_steady=False, settings=SETTINGS) == 3


def test_an_interval_of_zero_stays_off() -> None:
    off = ReflectSettings(remind_every=0)
    assert next_interval(0, is_steady=True, settings=off) == 0
    assert not any(reminder_due(request, 0, 0) for request in range(50))


@pytest.mark.parametrize(
    ("last", "interval", "due"), [(0, 3, [4, 7, 10]), (2, 3, [6, 9]), (0, 1, [*range(2, 11)])]
)
def test_a_reminder_comes_after_each_full_interval_without_a_checkpoint(
    last: int, interval: int, due: list[int]
) -> None:
    requests = range(last + 1, 11)
    assert [request for request in requests if reminder_due(request, last, interval)] == due
