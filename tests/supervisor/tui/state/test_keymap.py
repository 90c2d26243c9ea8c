"""The keys: maps of them, how they are said, and the line of keys at the bottom."""

import pytest

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import ConfigError
from midwatch_supervisor.tui import keys
from midwatch_supervisor.tui.keys import (
    THEME_NAMES,
    Key,
    all_keys,
    check_console,
    in_force,
    key_groups,
    key_problems,
    key_text,
    next_theme,
    textual_key,
    with_new_ids,
)
from midwatch_supervisor.tui.operator_command import Offer
from midwatch_supervisor.tui.widgets.dialogs import help_lines
from midwatch_supervisor.tui.widgets.footer import ShownKey, arrange_keys, fit_keys

UP = Key(id="up", keys="k,up", action="up", does="Go up", short="Up")
DOWN = Key(id="down", keys="j,down", action="down", does="Go down")
ELSEWHERE = Key(id="elsewhere", keys="j", action="jump", does="Jump, where there is no down")


def problem_lines(wanted: dict[str, str], *keys: Key) -> tuple[str, ...]:
    return tuple(line for each in key_problems(wanted, keys) for line in each.lines)


@pytest.mark.parametrize("wanted", [{}, {"up": "ctrl+u"}, {"up": "j", "down": "k"}])
def test_a_map_of_known_acts_to_free_keys_is_taken(wanted: dict[str, str]) -> None:
    assert not key_problems(wanted, [UP, DOWN])
    assert not key_problems({"up": "x"}, [UP, DOWN, ELSEWHERE])  # of another screen


@pytest.mark.parametrize(
    "key", ["x", "X", "7", "/", "slash", "?", "ctrl+shift+f5", "hyphen_minus", "space", "é"]
)
def test_keys_are_named_as_people_and_textual_name_them(key: str) -> None:
    assert not key_problems({"up": key}, [UP])


@pytest.mark.parametrize("key", ["ctlr+x", "slahs", "", "f25", "ctrl+", "xy"])
def test_what_is_no_key_is_refused(key: str) -> None:
    assert problem_lines({"up": key}, UP) == (
        f"configuration: console.keys.up: `{key}` is not a key",
    )


def test_unknown_acts_and_two_acts_on_one_key_are_refused_at_once_with_what_would_be_right() -> (
    None
):
    unknown, no_key = problem_lines({"dwon": "x", "up": "nokey"}, UP, DOWN)
    assert unknown == (
        "configuration: console.keys.dwon: there is no such action; the console's help (`?`) "
        "lists them (did you mean `down`?)"
    )
    assert no_key.endswith("`nokey` is not a key")
    assert problem_lines({"up": "down"}, UP, DOWN) == (
        "configuration: console.keys.up: `down` is already the key of `down` (Go down)",
    )


def test_acts_under_old_names_are_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    old = ConsoleSettings(keys={"roll.down": "x", "guide": "f9"})
    with caplog.at_level("WARNING"), pytest.raises(ConfigError, match="already the key of `stop`"):
        check_console(old)
    assert caplog.messages == ["configuration: `console.keys.roll.down` is now `list.down`"]
    assert with_new_ids(old.keys) == {"list.down": "x", "guide": "f9"}


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        *(("/", "slash", "/"), ("?", "question_mark", "?"), ("-", "minus", "-"), ("G", "G", "G")),
        *(("escape", "escape", "esc"), ("ctrl+slash", "ctrl+slash", "ctrl+/")),
    ],
)
def test_a_key_has_textuals_name_and_is_said_as_typed(key: str, name: str, said: str) -> None:
    assert (textual_key(key), key_text(name)) == (name, said)


def test_the_map_wins_over_the_default() -> None:
    assert in_force(UP, {}) == ("k", "up")
    assert in_force(UP, {"up": "/, f2"}) == ("slash", "f2")


def test_the_consoles_own_keys_have_one_id_each_and_no_clash() -> None:
    ids = [key.id for key in all_keys()]
    assert sorted(set(ids)) == sorted(ids)
    assert not key_problems({}, all_keys())


def test_the_help_says_every_key_with_its_keys_in_force() -> None:
    said = help_lines([("Lists", [UP, DOWN]), ("Empty", [])], {"up": "f2"})
    assert said == [("Lists", "", ""), ("f2", "Go up", "up"), ("j down", "Go down", "down")]


def test_no_table_of_keys_is_missing_in_the_help() -> None:
    tables = {id(each) for each in vars(keys).values() if str(each).startswith("(Key(")}
    assert tables == {id(table) for _, table in key_groups()}


def test_the_themes_follow_each_other_in_a_circle() -> None:
    seen = [THEME_NAMES[0]]
    while (name := next_theme(seen[-1])) not in seen:
        seen.append(name)
    assert tuple(seen) == THEME_NAMES
    assert next_theme("nord") == THEME_NAMES[0]


@pytest.mark.parametrize("theme", [*THEME_NAMES, "nord"])
def test_our_themes_and_textuals_are_taken(theme: str) -> None:
    check_console(ConsoleSettings(theme=theme))


KEYS = [
    ShownKey("enter", "⏎", "Open", "open"),
    ShownKey("i", "i", "Guide", "act('guide')"),
    ShownKey("q", "q", "Quit", "leave"),
    ShownKey("question_mark", "?", "Help", "help"),
]


@pytest.mark.parametrize(("width", "left"), [(80, "⏎iq?"), (30, "⏎q?"), (16, "q?"), (1, "q?")])
def test_help_and_leaving_stay_however_narrow(width: int, left: str) -> None:
    assert "".join(key.key for key in fit_keys(KEYS, width)) == left


OPEN, PAUSE = KEYS[0], ShownKey("p", "p", "Pause or resume", "pause", "pause")


def test_without_a_row_no_act_is_shown_and_what_another_view_has_on_a_key_is_not_offered() -> None:
    assert arrange_keys([PAUSE, OPEN], []) == [OPEN]
    assert arrange_keys([OPEN], [Offer("approve", "Approve")]) == [OPEN]
