"""What each screen looks like at three sizes.

`pytest tests/supervisor/tui/app --snapshot-update` takes them anew. The pictures stand in
`__snapshots__/test_snapshots/`; look at them before you commit them.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot
from textual.widgets import Static, TextArea

from midwatch_monitor.journal import Journal
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.learned.statistics import StatisticsPart
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import NodesNow
from midwatch_tests.console import console_on, settle
from midwatch_tests.matrix import matrix

NOW = datetime(2026, 11, 21, 20, 9, 40, tzinfo=UTC)
Size = tuple[int, int]
Keys = dict[str, tuple[str, ...]]

NARROW, MIDDLE, LARGE = (80, 24), (120, 36), (160, 45)
SIZES = matrix(NARROW, MIDDLE, LARGE)
SIZE_NAMES = ("80x24", "120x36", "160x45")
ABOUT = ("Run 1: 6 tasks", "Sandbox for commands: bubblewrap")
SCREENS = {
    "fleet": (),
    "guidance": ("i", *"Look up."),
    "stop": ("escape", "x"),
    "help": ("escape", "question_mark"),
    "fleet_approval": ("escape", "j"),
    "checkpoints": ("2",),
    "attention": ("3",),
    "overview": ("4",),
}
"""Each by its keys, which begin where the one before left."""
VARIANTS = {
    "fleet_filtered": ("1", "/", *"ship", "enter", "g"),
    "fleet_light": ("escape", "g", "T"),
    "fleet_safe": ("T",),
    "overview_safe": ("4",),
}
"""Of these, at the narrowest size only."""
LEARNED = {
    "verdict": ("R",),
    "learned_attention": ("escape", "3"),
    "learned_lessons": ("5",),
    "learned_rating": ("s", "4"),
    "learned_statistics": ("escape", "f5"),
    "learned_guidelines": ("f4", "space"),
    "learned_approval": ("space", "a"),
    "learned_facts": ("escape", "f3", "G", "space"),
}
"""On a journal from which something was learned."""
WIDE = {"learned_lessons": ("5",), "learned_guidelines": ("f4", "space")}
"""Of these, what is also looked at on a large terminal."""
FLEET = {"nodes_fleet": (), "nodes_attention": ("3",), "nodes_overview": ("4",), "nodes": ("6",)}
"""Of several nodes, one of which is lost."""
SIDES = ("timeline", "alerts", "chart", "plan", "messages", "checks")


class Picture(SingleFileSnapshotExtension):
    """Stores each picture as a file that a browser shows."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT


@pytest.fixture(autouse=True, scope="module")
def _utc() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Times are shown as they are where the operator sits: here that is Greenwich."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


async def settled_picture(app: Console, pilot: Pilot[int]) -> str:
    """What is seen once it no longer changes, without what a clock would take away."""
    app.clear_notifications()
    for words in app.screen.query(TextArea):
        words.cursor_blink = False
        words.notify_style_update()  # it may have kept the line as it was without its cursor
    await settle(pilot)
    before, seen = "", picture(app)
    async with asyncio.timeout(120):
        while before != seen:
            drawn = asyncio.Event()
            app.call_after_refresh(drawn.set)  # the pilot does not wait for the next frame
            await drawn.wait()
            await settle(pilot)
            before, seen = seen, picture(app)
    return seen


LooksSame = Callable[[str], Awaitable[bool]]
"""Whether what is seen looks as it did under this name."""


@asynccontextmanager
async def open_console(
    journal: Journal, size: Size, snapshot: SnapshotAssertion, nodes: NodesNow | None = None
) -> AsyncGenerator[tuple[Console, Pilot[int], LooksSame]]:
    """A console that shows all that the journal holds."""
    about = {"about": ABOUT}
    async with console_on(journal, size=size, now=lambda: NOW, console=about, nodes=nodes) as ui:
        ui.app.pass_a_second()
        await ui.pilot.pause()

        async def looks_same(name: str) -> bool:
            return await settled_picture(ui.app, ui.pilot) == snapshot(
                name=name, extension_class=Picture
            )

        yield ui.app, ui.pilot, looks_same


def picture(app: Console) -> str:
    """The screen as SVG, which fetches no fonts from elsewhere.

    The number in its names is made of how the lines were cut into pieces, which may be otherwise
    where all looks the same.
    """
    drawn = re.sub(r"\bterminal-\d+", "terminal", app.export_screenshot())
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.S)


@pytest.mark.parametrize("size", SIZES, ids=SIZE_NAMES)
async def test_a_screen_looks_as_it_did(
    size: Size, six_tasks: Journal, snapshot: SnapshotAssertion
) -> None:
    screens = SCREENS | VARIANTS if size == NARROW else SCREENS
    async with open_console(six_tasks, size, snapshot) as (_, pilot, looks_same):
        for screen, keys in screens.items():
            await pilot.press(*keys)
            assert await looks_same(screen), screen


async def test_a_fleet_that_is_grouped_looks_as_it_did(
    six_tasks: Journal, snapshot: SnapshotAssertion
) -> None:
    async with open_console(six_tasks, NARROW, snapshot) as (_, pilot, looks_same):
        await pilot.press("v")
        assert await looks_same("by_task")


@pytest.mark.parametrize("size", SIZES, ids=SIZE_NAMES)
async def test_a_side_of_an_attempt_looks_as_it_did(
    size: Size, six_tasks: Journal, snapshot: SnapshotAssertion
) -> None:
    async with open_console(six_tasks, size, snapshot) as (app, pilot, looks_same):
        row = next(row for row in app.board.rows.values() if row.name == "totals")
        app.open_attempt(row)
        await pilot.pause()
        view = app.screen
        assert isinstance(view, AttemptScreen)
        async with asyncio.timeout(120):
            while view.reading:
                await pilot.pause()
        for side in SIDES:
            await view.run_action(f"tab('{side}')")
            assert await looks_same(side), side


def is_incomplete(app: Console) -> bool:
    """Whether something that is seen was not read or summed up yet."""
    learned = app.learned
    if app.panes.current is not learned:
        return not learned.view.guidelines
    if learned.tab == "statistics":
        return not learned.query_one(StatisticsPart).text
    return "Reading" in str(learned.query_one("#lessons-pane > .nothing", Static).content)


@pytest.mark.parametrize(
    ("size", "screens"), [(NARROW, LEARNED), (LARGE, WIDE)], ids=["80x24", "160x45"]
)
async def test_what_was_learned_looks_as_it_did(
    size: Size, screens: Keys, shop: Journal, snapshot: SnapshotAssertion
) -> None:
    async with open_console(shop, size, snapshot) as (app, pilot, looks_same):
        for screen, keys in screens.items():
            for key in keys:
                await pilot.press(key)
                async with asyncio.timeout(120):
                    while is_incomplete(app):
                        app.refresh_panes()
                        await pilot.pause()
            assert await looks_same(screen), screen


@pytest.mark.parametrize(
    ("size", "screens"),
    [
        (MIDDLE, FLEET),
        pytest.param(NARROW, {"nodes": ("6",)}, marks=pytest.mark.matrix),
        pytest.param(LARGE, {"nodes": ("6",)}, marks=pytest.mark.matrix),
    ],
    ids=["120x36", "80x24", "160x45"],
)
async def test_a_fleet_looks_as_it_did(
    size: Size,
    screens: Keys,
    three_nodes: Journal,
    nodes_now: NodesNow,
    snapshot: SnapshotAssertion,
) -> None:
    async with open_console(three_nodes, size, snapshot, nodes_now) as (_, pilot, looks_same):
        for screen, keys in screens.items():
            await pilot.press(*keys)
            assert await looks_same(screen), screen
