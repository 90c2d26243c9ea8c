"""A moment in the past, as a person writes it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.report.reading import moment

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", datetime(2026, 11, 21, 17, 0, tzinfo=UTC)),
        ("2 h", datetime(2026, 11, 21, 16, 30, tzinfo=UTC)),
        ("1.5d", datetime(2026, 11, 20, 6, 30, tzinfo=UTC)),
        ("1w", datetime(2026, 11, 14, 18, 30, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 19, 22, 0, tzinfo=UTC)),
        ("2026-11-20T08:15", datetime(2026, 11, 20, 6, 15, tzinfo=UTC)),
        (" 2026-11-20T08:15Z ", datetime(2026, 11, 20, 8, 15, tzinfo=UTC)),
        ("2026-11-20T08:15-05:00", datetime(2026, 11, 20, 13, 15, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_duration_before_now_a_date_or_a_time(text: str, at: datetime) -> None:
    assert moment(text, now=NOW) == at


@pytest.mark.parametrize("text", ["", "yesterday", "2", "-2h", "2026-13-01", "9999999d"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time: write a duration"):
        moment(text, now=NOW)
