"""The fleet's table under the keys and the mouse of a person, off a board without a journal."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Static

from midwatch_monitor.records import Activity, Budget, Change, Lifecycle, Meter, Record
from midwatch_supervisor.tui.screens.fleet import FleetPane, bar, span, sparkline
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import THEMES
from midwatch_tests.factories import (
    AT,
    after,
    attempt,
    entry,
    plan,
    reflecting,
    run,
    task,
    transition,
)

WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED)
DONE = transition(Lifecycle.COMPLETED)
REPORT = reflecting(1, 50, 70)


class FleetApp(App[None]):
    """The fleet's pane alone."""

    def __init__(self, board: FleetBoard) -> None:
        super().__init__()
        self.time = after(minutes=3)
        self.pane = FleetPane(board, lambda: self.time)
        self.opened: list[int] = []
        for theme in THEMES:
            self.register_theme(theme)

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_line_list_opened(self, message: LineList.Opened) -> None:
        self.opened.append(message.index)


@dataclass
class FleetDriver:
    """A person before the fleet."""

    app: FleetApp
    board: FleetBoard
    pilot: Pilot[None]
    names: list[str] = field(default_factory=list[str])

    async def add(self, *names: str, read: bool = True) -> None:
        """Attempts that work, one of each task, on two nodes; then the history is read."""
        for name in names:
            self.names.append(name)
            id = len(self.names)
            self.board.meet_task(task(id, name, title=f"Do {name}"))
            self.board.meet_attempt(attempt(id, task=id, node=f"node-{id % 2}"))
            self.fold(name, WORKING)
        await self.draw()
        if read:
            self.app.pane.settle()

    def fold(self, name: str, record: Record) -> None:
        """Let an attempt say something; it is drawn later."""
        id = self.names.index(name) + 1
        self.board.fold(entry(1, record, task=id, attempt=id, at=AT))

    async def say(self, name: str, *records: Record) -> None:
        for record in records:
            self.fold(name, record)
            await self.draw()

    async def draw(self) -> None:
        """What the console does at most ten times a second."""
        self.app.pane.refresh_board()
        await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        roll = self.app.pane.list
        strips = roll.render_lines(Region(0, 0, roll.size.width, roll.size.height))
        return [strip.text.rstrip() for strip in strips if strip.text.strip()]

    @property
    def titles(self) -> list[str]:
        return str(self.app.query_one(".titles", Static).content).split()

    @property
    def row_names(self) -> list[str]:
        """The names of all lines; of a heading, its title."""
        items = self.app.pane.items
        return [each.name if isinstance(each, Row) else each.title for each in items]

    @property
    def cursor_row(self) -> str:
        """The name of the row under the cursor."""
        chosen = self.app.pane.chosen
        return chosen.name if chosen else ""


@asynccontextmanager
async def open_fleet(width: int = 120, height: int = 24) -> AsyncGenerator[FleetDriver]:
    board = FleetBoard()
    app = FleetApp(board)
    async with app.run_test(size=(width, height)) as pilot:
        yield FleetDriver(app, board, pilot)


def test_numbers_are_drawn_as_bars_and_spans() -> None:
    bars = ("-", "┄" * 4 + "   0%", "━━┄┄  50%", "━" * 4 + " 100%")
    assert tuple(map(bar, (None, 0, 50, 100))) == bars
    assert [span(each) for each in (-1, 59, 60, 7_199, 90_000)] == ["0s", "59s", "1m", "1h", "1d"]
    assert sparkline((0, 50, 100)) == "▁▄█"


async def test_an_empty_fleet_says_what_brings_tasks() -> None:
    async with open_fleet() as ui:
        await ui.draw()
        said = str(ui.app.query_one(".nothing", Static).content)
        assert all(each in said for each in ("midwatch run", "midwatch submit", "midwatch demo"))
        assert ui.app.query_one(".nothing").display
        await ui.add("fix")
        assert not ui.app.query_one(".nothing").display


async def test_the_cursor_is_on_the_top_until_the_history_is_read_then_stays_on_its_row() -> None:
    async with open_fleet() as ui:
        await ui.add("a", "b", "c", read=False)
        await ui.say("c", ASKS)
        assert (ui.cursor_row, ui.row_names) == ("c", ["c", "a", "b"])
        ui.app.pane.settle()
        await ui.pilot.press("j", "j")
        assert ui.cursor_row == "b"
        await ui.say("a", ASKS)
        assert (ui.row_names, ui.cursor_row) == (["a", "c", "b"], "b")
        assert [line[0] for line in ui.lines] == [" ", " ", ">"]


FULL = (REPORT, plan(), Change(budget=Budget(requests=Meter(used=3, limit=10))))
ALL = "! task state plan progress conf why, or latest checkpoint idle budget worker model"


async def test_columns_without_a_value_or_a_place_are_left_out() -> None:
    async with open_fleet(200) as ui:
        await ui.add("fix")
        assert " ".join(ui.titles) == "! task state why, or latest checkpoint idle worker model"
        await ui.say("fix", *FULL)
        for width, titles in (
            (200, ALL),
            (80, "! task state progress conf why, or latest checkpoint"),
            (12, "! task state why, or latest checkpoint"),
        ):
            await ui.pilot.resize_terminal(width, 24)
            await ui.draw()
            assert " ".join(ui.titles) == titles
            assert "●" in ui.lines[0]
        await ui.pilot.resize_terminal(200, 24)
        await ui.say("fix", Change(node="south"))
        assert " ".join(ui.titles) == f"{ALL} node"
        assert ui.lines[0].split()[-1] == "south"


@pytest.mark.parametrize("width", [80, 130])
async def test_a_long_name_is_cut_last_and_in_its_middle(width: int) -> None:
    async with open_fleet(width) as ui:
        await ui.add("p2-a0d7/agent-a5046f1f4c42f813e", "p2-a0d7/agent-a10fd559bf7e30734")
        await ui.say(ui.names[0], *FULL)
        names = [word for line in ui.lines for word in line.split() if "p2" in word]
        cut = {("p2-a0d7/a", "0734#1"), ("p2-a0d7/a", "813e#1")}
        assert {(name[:9], name[-6:]) for name in names} == cut


async def test_the_run_is_named_once_there_are_two() -> None:
    async with open_fleet(80) as ui:
        ui.board.meet_run(run())
        await ui.add("fix")
        before = ui.titles
        ui.board.meet_run(run(id=2))
        ui.board.meet_task(task(2, "fix", run=2))
        ui.board.meet_attempt(attempt(2, task=2, node="node-1"))
        await ui.draw()
        assert ui.titles == ["!", "run", *before[1:]]
        assert {line.partition(" fix#1")[0].split()[-1] for line in ui.lines} == {"1", "2"}


async def group_by_node(ui: FleetDriver) -> None:
    await ui.add("a", "b", "c")
    while ui.app.pane.order.grouping.name != "node":
        ui.app.pane.regroup()
    await ui.draw()


async def test_a_heading_says_how_many_stand_where_and_is_no_attempt() -> None:
    async with open_fleet() as ui:
        await group_by_node(ui)
        await ui.say("c", ASKS)
        assert ui.lines[2].strip() == "▾ node-1 (2)  1 waits for you, 1 working"
        await ui.pilot.press("g")
        assert (ui.lines[0], ui.cursor_row) == (">▾ node-0 (1)  1 working", "")
        await ui.pilot.press("j")
        assert ui.cursor_row == "b"


async def test_who_folds_a_group_stands_on_its_heading() -> None:
    async with open_fleet() as ui:
        await group_by_node(ui)
        await ui.pilot.press("G")
        assert (ui.cursor_row, ui.app.pane.fold()) == ("c", True)
        assert ui.row_names == ["▾ node-0 (1)", "b", "▸ node-1 (2)"]
        assert ui.lines[2].startswith(">▸ node-1")
        await ui.say("a", ASKS)
        assert ui.lines[2] == ">▸ node-1 (2)  1 waits for you, 1 working"
        assert ui.app.pane.fold()
        assert ui.row_names[2:] == ["▾ node-1 (2)", "a", "c"]


async def test_a_row_under_the_cursor_is_seen_to_its_end() -> None:
    async with open_fleet(height=10) as ui:
        await ui.add(*(f"t{n:02}" for n in range(20)))
        await ui.pilot.press("j")
        for n in range(15):
            ui.fold(f"t{n:02}", DONE)
        await ui.draw()
        assert (ui.row_names[-2:], ui.cursor_row) == (["▸ done (15)", "t01"], "t01")
        await ui.pilot.press("k")
        await ui.draw()
        assert (ui.row_names[-1], ui.cursor_row) == ("▸ done (15)", "")


async def test_o_goes_from_one_sort_to_the_next_and_the_column_has_a_sign() -> None:
    async with open_fleet(200) as ui:
        await ui.add("a")
        await ui.say("a", reflecting(1, 50, 70))
        seen: list[tuple[str, str]] = []
        for _ in range(5):
            ui.app.pane.sort_again()
            await ui.pilot.pause()
            signed = "".join(title for title in ui.titles if title.endswith("↓"))
            seen.append((ui.app.pane.order.sort.name, signed))
        columns = (
            ("name", "task↓"),
            ("age", "idle↓"),
            ("confidence", "conf↓"),
            ("budget", "budget↓"),
        )
        assert seen == [*columns, ("need", "")]


async def test_lines_sorted_by_confidence_stand_still_while_somebody_goes_through_them() -> None:
    async with open_fleet(200) as ui:
        await ui.add("a", "b", "c")
        for name, confidence in (("a", 20), ("b", 50), ("c", 70)):
            await ui.say(name, reflecting(1, 50, confidence))
        for _ in range(3):
            ui.app.pane.sort_again()
        ui.fold("a", reflecting(2, 50, 90))
        seen: list[str] = []
        for key, at in (("", 181), ("", 183), ("j", 183.5), ("", 184), ("", 185)):
            if key:
                ui.fold("b", reflecting(3, 50, 99))
                await ui.pilot.press(key)
            ui.app.time = after(at)
            await ui.draw()
            seen.append("".join(ui.row_names))
        assert seen == ["abc", "bca", "bca", "bca", "bca"]
        ui.app.time = after(187)
        await ui.draw()
        assert (ui.row_names, ui.cursor_row) == (["c", "a", "b"], "a")


async def test_a_filter_shows_the_lines_that_hold_its_words_until_it_is_dropped() -> None:
    async with open_fleet() as ui:
        await ui.add("fix", "fetch", "build")
        ui.app.pane.open_filter()
        await ui.pilot.press(*"F WORK")
        assert ui.row_names == ["fetch", "fix"]
        assert ui.app.pane.close_filter()
        await ui.pilot.pause()
        assert (ui.row_names, ui.app.focused) == (["build", "fetch", "fix"], ui.app.pane.list)


async def test_a_click_chooses_a_line_and_a_double_click_opens_it() -> None:
    async with open_fleet() as ui:
        await ui.add("a", "b", "c")
        await ui.pilot.click("#fleet", offset=(5, 2))
        assert (ui.cursor_row, ui.app.opened) == ("c", [])
        await ui.pilot.click("#fleet", offset=(5, 1), times=2)
        assert (ui.cursor_row, ui.app.opened) == ("b", [1])


async def test_the_keys_reach_both_ends_and_who_scrolls_away_is_left_alone() -> None:
    async with open_fleet(height=10) as ui:
        await ui.add(*(f"t{n:02}" for n in range(40)))
        reached: list[str] = []
        for key in ("G", "k", "g", "ctrl+d", "pageup", "enter"):
            await ui.pilot.press(key)
            reached.append(ui.cursor_row)
        assert reached == ["t39", "t38", "t00", "t08", "t00", "t00"]
        assert ui.app.opened == [0]
        roll = ui.app.pane.list
        roll.scroll_to(y=20, animate=False)
        for name, record in (("t05", REPORT), ("t39", ASKS)):
            await ui.say(name, record)
            assert (roll.scroll_offset.y, ui.cursor_row) == (20, "t00")
        roll.go(2)
        assert (roll.scroll_offset.y, ui.cursor_row) == (2, "t01")


async def test_the_line_of_the_cursor_is_of_one_style_and_has_a_sign_in_every_theme() -> None:
    async with open_fleet() as ui:
        await ui.add("a", "b")
        for theme in THEMES:
            ui.app.theme = theme.name
            await ui.pilot.pause()
            strips = ui.app.pane.list.render_lines(Region(0, 0, 120, 2))
            grounds = [{each.style.bgcolor for each in strip if each.style} for strip in strips]
            assert [strip.text[0] for strip in strips] == [">", " "]
            assert [len(each) for each in grounds] == [1, 1]
            assert grounds[0] != grounds[1], theme.name


async def test_what_agents_wrote_does_nothing_to_a_line() -> None:
    said = {
        "[red]x[/red]": "[red]x[/red]",
        "\x1b[2J\x1b[31mx": "x",
        "a\u202eb\nc": "ab c",
        "日本語" * 2_000: "日本語",
        "x" * 100_000: "xxx",
        "e" + "\u0301" * 5_000: "e",
    }
    async with open_fleet() as ui:
        await ui.add("fix", "next")
        for doing, shown in said.items():
            await ui.say("fix", Change(activity=Activity.COMMAND, doing=doing))
            strips = ui.app.pane.list.render_lines(Region(0, 0, 120, 2))
            assert [strip.cell_length for strip in strips] == [120, 120]
            assert shown in strips[0].text
            assert not any(ord(char) < 32 for char in strips[0].text)
