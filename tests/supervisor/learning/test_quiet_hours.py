"""When a look back disturbs nobody."""

from datetime import datetime, timedelta, timezone

import pytest

from midwatch_supervisor.learning.reflection_schedule import Window, next_window

ZONE = timezone(timedelta(hours=2))


def at(day: int, clock: str) -> datetime:
    hour, minute = map(int, clock.split(":"))
    return datetime(2026, 11, day, hour, minute, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("hours", "moment", "begin", "end"),
    [
        ("02:00-05:00", at(21, "01:59"), at(21, "02:00"), at(21, "05:00")),
        ("02:00-05:00", at(21, "02:00"), at(21, "02:00"), at(21, "05:00")),
        ("02:00-05:00", at(21, "04:59"), at(21, "02:00"), at(21, "05:00")),
        ("02:00-05:00", at(21, "05:00"), at(22, "02:00"), at(22, "05:00")),
        ("22:30-05:00", at(21, "12:00"), at(21, "22:30"), at(22, "05:00")),
        ("22:30-05:00", at(21, "23:00"), at(21, "22:30"), at(22, "05:00")),
        ("22:30-05:00", at(22, "00:10"), at(21, "22:30"), at(22, "05:00")),
        ("03:00-03:00", at(21, "02:00"), at(20, "03:00"), at(21, "03:00")),
    ],
)
def test_s11_the_window_is_the_one_that_is_on_or_the_next(
    hours: str, moment: datetime, begin: datetime, end: datetime
) -> None:
    assert next_window(hours, moment) == Window(begin=begin, end=end)


def test_a_window_holds_its_beginning_and_not_its_end() -> None:
    window = Window(begin=at(21, "02:00"), end=at(21, "05:00"))
    held = [window.holds(at(21, clock)) for clock in ("01:59", "02:00", "04:59", "05:00")]
    assert held == [False, True, True, False]
