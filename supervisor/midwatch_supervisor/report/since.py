"""A moment in the past as a person writes it."""

import re
from datetime import UTC, datetime, timedelta

from midwatch_monitor.errors import UsageError

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def moment(text: str, *, now: datetime) -> datetime:
    """The moment that a date, a time or a duration before now means, in UTC.

    A date is its midnight; without a zone it is the zone of `now`. Raises UsageError.
    """
    written = text.strip()
    try:
        if ago := _AGO.fullmatch(written):
            return (now - float(ago[1]) * _UNITS[ago[2]]).astimezone(UTC)
        found = datetime.fromisoformat(written)
        return (found if found.tzinfo else found.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text!r} is no moment: write a duration (90m, 2h, 7d, 2w), a date "
            "(2026-11-21) or a time (2026-11-21T20:00)"
        ) from None
