"""The line of keys: what can be done now stands first, help and leaving are always there."""

import pytest

from midwatch_supervisor.tui.operator_command import Offer
from midwatch_supervisor.tui.widgets.footer import ShownKey, arrange_keys, fit_keys

KEYS = [
    ShownKey("enter", "⏎", "Open", "open"),
    ShownKey("i", "i", "Guide", "act('guide')"),
    ShownKey("q", "q", "Quit", "leave"),
    ShownKey("question_mark", "?", "Help", "help"),
]


def test_all_keys_stand_where_there_is_room() -> None:
    assert fit_keys(KEYS, 80) == KEYS


@pytest.mark.parametrize(
    ("width", "left"), [(30, ["⏎", "q", "?"]), (16, ["q", "?"]), (1, ["q", "?"])]
)
def test_help_and_leaving_stay_however_narrow(width: int, left: list[str]) -> None:
    assert [key.key for key in fit_keys(KEYS, width)] == left


OPEN, PAUSE = KEYS[0], ShownKey("p", "p", "Pause or resume", "pause", "pause")


def test_without_a_row_no_act_is_shown_and_what_another_view_has_on_a_key_is_not_offered() -> None:
    assert arrange_keys([PAUSE, OPEN], []) == [OPEN]
    assert arrange_keys([OPEN], [Offer("approve", "Approve")]) == [OPEN]
