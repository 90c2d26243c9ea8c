"""Which lessons nobody needed for long."""

from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.config.section import parse_duration
from midwatch_monitor.records import KnownLesson, Lesson
from midwatch_supervisor.learning.lessons import unused

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def known(*, written: float, used: float | None = None, obsolete: bool = False) -> KnownLesson:
    return KnownLesson(
        id=1,
        at=ago(written),
        project="p",
        task="t",
        attempt=1,
        lesson=Lesson(text="x"),
        last_used=None if used is None else ago(used),
        obsolete=obsolete,
    )


@pytest.mark.parametrize(
    ("lesson", "ids"),
    [
        (known(written=29.9), ()),
        (known(written=30), (1,)),
        (known(written=90, used=29.9), ()),
        (known(written=90, used=30), (1,)),
        (known(written=90, obsolete=True), ()),
    ],
)
def test_r59_a_lesson_is_unused_from_its_last_use_or_its_writing(
    lesson: KnownLesson, ids: tuple[int, ...]
) -> None:
    settings = LessonSettings(archive_unused_after=parse_duration("30d"))
    assert unused([lesson], NOW, settings) == ids


def test_r59_what_a_person_said_of_it_counts_as_a_use() -> None:
    settings = LessonSettings(archive_unused_after=parse_duration("30d"))
    assert unused([known(written=90)], NOW, settings, {1: ago(3)}) == ()


def test_r59_never_is_the_default() -> None:
    assert unused([known(written=9_000)], NOW, LessonSettings()) == ()
