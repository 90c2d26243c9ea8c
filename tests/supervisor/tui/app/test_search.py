"""Finding lines: the search of an attempt's lists, the filter of the others, and where one is."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input
from textual.widgets._toast import Toast

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Plan, PlanStep, Step
from midwatch_stage.console import ConsoleDriver, console_in
from midwatch_stage.factories import acceptance, alert, editing, reflecting, step, transition
from midwatch_supervisor.tui.keys import ATTEMPT
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.attempt_timeline import KINDS
from midwatch_supervisor.tui.widgets.scrolling_text import Detail

Seat = ConsoleDriver[Journal]


def read(number: int, what: str, **fields: object) -> Step:
    return replace(step(number, "read_file", path=what), **fields)


STEPS = (
    transition(),
    *(read(number, f"docs/page_{number}.md") for number in range(1, 20)),
    read(20, "docs/rates.md"),
    *(read(number, f"docs/page_{number}.md") for number in range(21, 40)),
    editing(40, "totals.py"),
    step(41, "run_command", ok=False, output="the Rates are wrong"),
    reflecting(42, notes="I look at the rates again."),
    alert("cycle", step=42, evidence=(3, 41)),
    Plan(steps=(PlanStep(title="Read the tables"), PlanStep(title="Round"))),
    acceptance(check="pytest", passed=False, detail="1 failed"),
    *(read(number, f"docs/page_{number}.md") for number in range(43, 60)),
)


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Seat]:
    """A console on an attempt with some hundred lines, in a terminal that shows a third of them."""
    folder = tmp_path_factory.mktemp("search")
    async with console_in(folder, *STEPS, size=(120, 30)) as driver:
        yield driver


@pytest.fixture
async def seat(shared: Seat) -> Seat:
    """The attempt's view, opened anew, for tests that write nothing."""
    await shared.first_screen()
    shared.app.noticed.clear()
    await shared.open_attempt()
    return shared


async def test_what_is_written_meanwhile_is_searched_too(tmp_path: Path) -> None:
    async with console_in(tmp_path, *STEPS, size=(120, 30)) as seat:
        await seat.open_attempt()
        await seat.press("slash", *"rates", "enter")
        await seat.write(read(60, "rates.csv"))
        await seat.until(lambda: place(seat) == "1 of 4 found")
        assert "docs/rates.md" in seat.cursor_line
        await seat.write(transition(), task="port")
        await seat.press("escape", "escape", "slash", *"port", "enter")
        assert place(seat, "fleet") == "1 of 2 match"
        await seat.press("escape", "2", "slash", *"nothing")
        said = seat.text("#checkpoints-pane > .nothing")
        assert said == "No line matches the filter; escape clears it."


def place(seat: Seat, name: str = "timeline") -> str:
    """What stands at the end of the titles."""
    return seat.text(f"#{name}-pane > .titles").rsplit("  ", 1)[-1].strip()


async def test_a_search_goes_to_the_first_match_and_leaves_the_lines_around(seat: Seat) -> None:
    lines = seat.list("timeline").count
    await seat.press("slash", *"rates", "enter")
    assert "docs/rates.md" in seat.cursor_line
    assert seat.list("timeline").count == lines
    assert place(seat) == "1 of 3 found"
    seen = seat.list("timeline").seen
    assert seen.start < seat.list("timeline").cursor - 3 < seen.stop - 6


async def test_letters_typed_at_once_after_the_key_are_searched_and_are_no_acts(seat: Seat) -> None:
    for key in ("slash", *"xrates"):
        seat.app.post_message(events.Key(key, "/" if key == "slash" else key))
    typed = seat.app.screen.query_one("#timeline-filter", Input)
    await seat.until(lambda: typed.value == "xrates")
    assert len(seat.app.screen_stack) == 2
    assert not seat.app.noticed


async def test_n_and_shift_n_walk_from_match_to_match_and_round(seat: Seat) -> None:
    await seat.press("slash", *"rates", "enter", "n")
    assert "n Match" in seat.footer
    assert "run_command" in seat.cursor_line
    found = [line for line in seat.lines("timeline") if line.startswith("•")]
    assert [line.split()[2] for line in found] == ["◆"]
    await seat.press("n", "n")
    assert "docs/rates.md" in seat.cursor_line
    await seat.press("N")
    assert "checkpoint" in seat.cursor_line
    assert place(seat) == "3 of 3 found"
    await seat.press("j")
    assert place(seat) == "3 found"
    await seat.press("escape")
    assert "n Match" not in seat.footer


async def test_a_word_for_a_kind_leaves_only_such_lines(seat: Seat) -> None:
    every = seat.list("timeline").count
    for wanted, kinds in {
        "is:failed": ["run_command", "check"],
        "is:edit": ["edit_file"],
        "is:check": ["checkpoint"],
        "is:alert is:checkpoint": ["checkpoint", "alert"],
    }.items():
        await seat.press("slash", *wanted, "enter")
        lines = seat.lines("timeline")
        assert all(kind in line for kind, line in zip(kinds, lines, strict=True))
        assert place(seat) == f"{len(kinds)} of {every} match"
        await seat.press("escape")


async def test_n_goes_through_lines_of_a_kind_and_escape_stays_on_one(seat: Seat) -> None:
    every = seat.list("timeline").count
    await seat.press("slash", *"is:failed rates", "enter")
    assert seat.list("timeline").count == 2
    assert place(seat) == "1 of 1 found"
    await seat.press("escape", "slash", *"is:failed", "enter", "g")
    first = seat.cursor_line
    for key, line in (("n", "check"), ("n", first), ("N", "check"), ("g", "run_command")):
        await seat.press(key)
        assert line in seat.cursor_line
    await seat.press("escape")
    assert seat.list("timeline").count == every
    assert "run_command" in seat.cursor_line
    assert isinstance(seat.app.screen, AttemptScreen)
    await seat.press("escape")
    assert not isinstance(seat.app.screen, AttemptScreen)


async def test_an_unknown_kind_says_which_there_are_as_the_help_does(seat: Seat) -> None:
    await seat.press("slash", *"is:broken", "enter")
    assert seat.text("#timeline-pane > .nothing") == (
        "No line matches the filter; escape clears it."
        " Kinds of lines: is:failed is:edit is:checkpoint is:alert."
    )
    said = next(key.does for key in ATTEMPT if key.id == "attempt.search")
    assert all(f"`is:{kind}`" in said for kind in KINDS)


async def test_evidence_is_reached_through_a_filter_that_hides_it(seat: Seat) -> None:
    await seat.press("slash", *"is:failed", "enter", "f3", "enter")
    await seat.until(lambda: "run_command" in seat.cursor_line)
    assert seat.list("timeline").count == 2  # it shows this one, and stays
    await seat.press("e")
    assert "page_3.md" in seat.cursor_line


async def test_the_detail_follows_the_matches(seat: Seat) -> None:
    await seat.press("slash", *"rates", "enter", "space", "n")
    assert seat.app.screen.query_one(Detail).text.endswith("the Rates are wrong")
    await seat.press("escape")
    assert place(seat) == "2 of 3 found"


async def test_every_list_of_an_attempt_can_be_searched(seat: Seat) -> None:
    wanted = {"f3": ("alerts", "firing"), "f5": ("plan", "tables"), "f8": ("checks", "failed")}
    for key, (name, word) in wanted.items():
        await seat.press(key, "slash", *word, "enter")
        assert place(seat, name) == "1 of 1 found"


async def test_where_there_are_no_lines_no_filter_is_offered(seat: Seat) -> None:
    assert "Search" in seat.footer
    await seat.press("f4", "slash")
    assert "Search" not in seat.footer
    assert not isinstance(seat.app.focused, Input)
    await seat.press("escape")
    assert "Filter" in seat.footer
    await seat.press("4", "slash")
    assert "Filter" not in seat.footer
    assert not isinstance(seat.app.focused, Input)


async def test_a_long_list_says_which_lines_are_seen(seat: Seat) -> None:
    every = seat.list("timeline").count
    seen = seat.list("timeline").seen
    assert place(seat) == f"{every - len(seen) + 1}-{every} of {every}"
    await seat.press("g")
    await seat.until(lambda: place(seat) == f"1-{len(seen)} of {every}")
    await seat.press("f5")
    assert " of " not in place(seat, "plan")


async def test_what_is_told_covers_nothing(tmp_path: Path) -> None:
    async with console_in(tmp_path, transition(), size=(80, 24), toasts=True) as seat:
        for keys in ((), ("4",), ("5",), ("1", "enter"), ("space",)):
            await seat.press(*keys)
            for text in ("one", "three", "long " * 60):
                seat.app.notify(text)
            await seat.until(lambda: [each.region.height for each in toasts(seat)] == [3])
            (told,) = toasts(seat)
            parts = [each for each in seat.app.screen.children if told not in each.walk_children()]
            assert [each for each in parts if each.region.overlaps(told.region)] == []
            assert told.region.bottom == 23  # the keys stand below it
            seat.app.clear_notifications()
            await seat.until(lambda: toasts(seat) == [])


def toasts(seat: Seat) -> list[Toast]:
    """What is told on the screen in front, where it is seen."""
    return [each for each in seat.app.screen.query(Toast) if each.region.height]
