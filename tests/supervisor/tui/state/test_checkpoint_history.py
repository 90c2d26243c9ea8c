from datetime import timedelta

import pytest

from midwatch_monitor.records import Checkpoint
from midwatch_stage.factories import AT
from midwatch_supervisor.tui.state.row import (
    KEPT,
    CheckpointHistory,
    Trend,
    trend,
)


def history(*said: Checkpoint) -> CheckpointHistory:
    """One checkpoint a minute."""
    made = CheckpointHistory()
    for number, checkpoint in enumerate(said, start=1):
        made.add(checkpoint, AT + timedelta(minutes=number))
    return made


def said(confidence: int, notes: str = "") -> Checkpoint:
    return Checkpoint(progress_percent=10, confidence=confidence, notes=notes)


def test_equal_checkpoints_are_one_with_a_count_and_how_long_it_lasted() -> None:
    newest = history(said(50), *[said(24, "No way out.")] * 8).newest
    assert newest is not None
    assert (newest.count, newest.seconds, newest.change) == (8, 7 * 60, -26)


def test_what_differs_in_one_word_is_told_on_its_own() -> None:
    groups = [*history(said(50, "a"), said(50, "b"), said(50, "a")).newest_first]
    assert [each.checkpoint.notes for each in groups] == ["a", "b", "a"]
    assert [each.change for each in groups] == [0, 0, None]


def test_only_the_newest_are_kept() -> None:
    groups = [*history(*(said(n) for n in range(KEPT + 5))).newest_first]
    assert (len(groups), groups[0].checkpoint.confidence) == (KEPT, KEPT + 4)


@pytest.mark.parametrize(
    ("confidences", "found"),
    [
        ((), Trend.UNKNOWN),
        ((60,), Trend.UNKNOWN),
        ((60, 62), Trend.UNKNOWN),
        ((60, 40), Trend.DOWN),
        ((40, 60), Trend.UP),
        ((90, 24, 24, 24, 24), Trend.LEVEL),
        ((24, 25, 24, 26), Trend.LEVEL),
        ((80, 78, 76, 74), Trend.DOWN),
    ],
)
def test_a_trend_is_that_of_the_last_few_reports(
    confidences: tuple[int, ...], found: Trend
) -> None:
    assert trend(confidences) is found
