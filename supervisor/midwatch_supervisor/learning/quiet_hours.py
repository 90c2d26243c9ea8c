"""The hours of the day in which a look back disturbs nobody. Pure: the time is an argument."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One night, say: from its beginning up to its end."""

    begin: datetime
    end: datetime

    def holds(self, at: datetime) -> bool:
        """Whether a moment is in it."""
        return self.begin <= at < self.end


def next_window(hours: str, at: datetime) -> Window:
    """The window that a moment is in, or the next one.

    Args:
        hours: `02:00-05:00`, in local time; an end that is not after its beginning is on the next
            day, and the same time twice is the whole day.
        at: An aware moment. Where its zone is a fixed offset, as after `astimezone()`, the clocks
            do not change in between.
    """
    first, _, last = hours.partition("-")
    begin, end = time.fromisoformat(first), time.fromisoformat(last)
    days = (at.date() + offset * _DAY for offset in (-1, 0, 1))
    windows = (_window(day, begin, end, at) for day in days)
    return next(window for window in windows if at < window.end)


def _window(day: date, begin: time, end: time, at: datetime) -> Window:
    until = day if begin < end else day + _DAY
    return Window(
        begin=datetime.combine(day, begin, tzinfo=at.tzinfo),
        end=datetime.combine(until, end, tzinfo=at.tzinfo),
    )
