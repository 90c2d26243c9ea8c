"""What each screen looks like at three sizes.

`pytest tests/supervisor/tui/app --snapshot-update` takes them anew. The pictures stand in
`__snapshots__/test_snapshots/`; look at them before you commit them.
"""

import asyncio
import os
import re
import time
from collections.abc import Generator
from datetime import UTC, datetime

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot
from textual.widgets import TextArea

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.learned.statistics import StatisticsPart
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import Feed, NodesNow

NOW = datetime(2026, 11, 21, 20, 9, 40, tzinfo=UTC)
SIZES = [(80, 24), (120, 36), (160, 45)]
ABOUT = ("Run 1: 6 tasks", "Sandbox for commands: bubblewrap")
SCREENS = {
    "fleet": (),
    "fleet_approval": ("j",),
    "checkpoints": ("2",),
    "attention": ("3",),
    "overview": ("4",),
    "help": ("question_mark",),
    "guidance": ("i", *"Look up."),
    "stop": ("x",),
}
VARIANTS = {
    "fleet_by_task": ("v",),
    "fleet_filtered": ("/", *"ship", "enter"),
    "fleet_light": ("T",),
    "fleet_safe": ("T", "T"),
    "overview_safe": ("4", "T", "T"),
}
"""Of a screen, at the narrowest size only."""
PICTURES = [
    *((screen, SIZES[0]) for screen in (*SCREENS, *VARIANTS)),
    *(
        pytest.param(screen, size, marks=pytest.mark.matrix)
        for screen in SCREENS
        for size in SIZES[1:]
    ),
]
LEARNED = {
    "learned_lessons": ("5",),
    "learned_facts": ("5", "f3", "G", "space"),
    "learned_guidelines": ("5", "f4", "space"),
    "learned_statistics": ("5", "f5"),
    "learned_approval": ("5", "f4", "a"),
    "learned_rating": ("5", "s", "4"),
    "learned_attention": ("3",),
    "verdict": ("R",),
}
"""On a journal from which something was learned."""
WIDE = ("learned_lessons", "learned_guidelines")
"""Of these, what is also looked at on a large terminal."""
FLEET = {"nodes": ("6",), "nodes_fleet": (), "nodes_attention": ("3",), "nodes_overview": ("4",)}
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


def console(journal: Journal, nodes: NodesNow | None = None) -> Console:
    feed = Feed(journal, run=1, bus=LocalBus(), poll_seconds=60, hertz=10, nodes=nodes)
    desk = OperatorActions(journal, author="ada", clock=lambda: NOW)
    app = Console(feed, desk, now=lambda: NOW, about=ABOUT)
    app.animation_level = "none"
    return app


def named(value: str | tuple[int, int]) -> str:
    """A screen or a size as a part of a file's name."""
    return value if isinstance(value, str) else f"{value[0]}x{value[1]}"


async def caught_up(app: Console, pilot: Pilot[int], journal: Journal) -> None:
    """Wait until all that the journal holds is shown; half a minute at most."""
    newest = (await journal.entries())[-1].at
    async with asyncio.timeout(30):
        while app.board.last_at != newest:
            await pilot.pause()
    app.pass_a_second()
    await pilot.pause()


async def settled(app: Console, pilot: Pilot[int]) -> str:
    """What is seen once it no longer changes, without what a clock would take away."""
    app.clear_notifications()
    for words in app.screen.query(TextArea):
        words.cursor_blink = False
    await pilot.pause()
    before, seen = "", picture(app)
    async with asyncio.timeout(30):
        while before != seen:
            drawn = asyncio.Event()
            app.call_after_refresh(drawn.set)  # the pilot does not wait for the next frame
            await drawn.wait()
            await pilot.pause()
            before, seen = seen, picture(app)
    return seen


def picture(app: Console) -> str:
    """The screen as SVG, which fetches no fonts from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.S)


@pytest.mark.parametrize(("screen", "size"), PICTURES, ids=named)
async def test_a_screen_looks_as_it_did(
    screen: str, size: tuple[int, int], six_tasks: Journal, snapshot: SnapshotAssertion
) -> None:
    app = console(six_tasks)
    async with app.run_test(size=size) as pilot:
        await caught_up(app, pilot, six_tasks)
        await pilot.press(*(SCREENS | VARIANTS)[screen])
        assert await settled(app, pilot) == snapshot(extension_class=Picture)


def lacks(app: Console) -> bool:
    """Whether something that is seen was not read or summed up yet."""
    learned = app.learned
    if app.panes.current is not learned:
        return not learned.view.guidelines
    if learned.part == "statistics":
        return not learned.query_one(StatisticsPart).text
    return not learned.read


@pytest.mark.parametrize(
    "size",
    [SIZES[0], *(pytest.param(size, marks=pytest.mark.matrix) for size in SIZES[1:])],
    ids=named,
)
@pytest.mark.parametrize("side", SIDES)
async def test_a_side_of_an_attempt_looks_as_it_did(
    side: str, size: tuple[int, int], six_tasks: Journal, snapshot: SnapshotAssertion
) -> None:
    app = console(six_tasks)
    async with app.run_test(size=size) as pilot:
        await caught_up(app, pilot, six_tasks)
        row = next(row for row in app.board.rows.values() if row.name == "totals")
        app.open_attempt(row)
        await pilot.pause()
        view = app.screen
        assert isinstance(view, AttemptScreen)
        async with asyncio.timeout(30):
            while view.reading:
                await pilot.pause()
        await view.run_action(f"side('{side}')")
        assert await settled(app, pilot) == snapshot(extension_class=Picture)


@pytest.mark.parametrize(
    ("screen", "size"),
    [*((screen, SIZES[0]) for screen in LEARNED), *((screen, SIZES[2]) for screen in WIDE)],
    ids=named,
)
async def test_what_was_learned_looks_as_it_did(
    screen: str, size: tuple[int, int], shop: Journal, snapshot: SnapshotAssertion
) -> None:
    app = console(shop)
    async with app.run_test(size=size) as pilot:
        await caught_up(app, pilot, shop)
        for key in LEARNED[screen]:
            await pilot.press(key)
            async with asyncio.timeout(30):
                while lacks(app):
                    app.refresh_panes()
                    await pilot.pause()
        assert await settled(app, pilot) == snapshot(extension_class=Picture)


@pytest.mark.parametrize(
    ("screen", "size"),
    [*((screen, SIZES[1]) for screen in FLEET), ("nodes", SIZES[0]), ("nodes", SIZES[2])],
    ids=named,
)
async def test_a_fleet_looks_as_it_did(
    screen: str,
    size: tuple[int, int],
    three_nodes: Journal,
    nodes_now: NodesNow,
    snapshot: SnapshotAssertion,
) -> None:
    app = console(three_nodes, nodes_now)
    async with app.run_test(size=size) as pilot:
        await caught_up(app, pilot, three_nodes)
        await pilot.press(*FLEET[screen])
        assert await settled(app, pilot) == snapshot(extension_class=Picture)
