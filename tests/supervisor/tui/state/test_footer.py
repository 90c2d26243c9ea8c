"""The line of keys: help and leaving are always there."""

import pytest

from midwatch_supervisor.tui.widgets.footer import Shown, fitting

KEYS = [
    Shown("enter", "⏎", "Open", "open"),
    Shown("i", "i", "Guide", "act('guide')"),
    Shown("q", "q", "Quit", "leave"),
    Shown("question_mark", "?", "Help", "help"),
]


def test_all_keys_stand_where_there_is_room() -> None:
    assert fitting(KEYS, 80) == KEYS


@pytest.mark.parametrize(
    ("width", "left"), [(30, ["⏎", "q", "?"]), (16, ["q", "?"]), (1, ["q", "?"])]
)
def test_help_and_leaving_stay_however_narrow(width: int, left: list[str]) -> None:
    assert [key.key for key in fitting(KEYS, width)] == left
