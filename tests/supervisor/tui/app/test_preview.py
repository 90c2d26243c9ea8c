"""The preview beside the list or below it, and what it follows."""

from textual.widgets import TabbedContent

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Lifecycle
from midwatch_stage.console import ConsoleDriver, console_on
from midwatch_stage.factories import reflecting, transition
from midwatch_supervisor.tui.screens.preview import PreviewView


def shown(seat: ConsoleDriver[Journal]) -> PreviewView:
    return seat.app.query_one(PreviewView)


async def test_the_preview_stands_where_there_is_room(six_tasks: Journal) -> None:
    places = {  # neighbours differ, so that what is waited for is not what was there before
        (120, 27): "",
        (160, 45): "beside",
        (80, 24): "",
        (120, 36): "below",
        (40, 10): "",
        (140, 24): "beside",
        (139, 28): "below",
    }
    async with console_on(six_tasks, size=(160, 45)) as seat:
        for size, where in places.items():
            await seat.pilot.resize_terminal(*size)
            await seat.until(lambda where=where: place(seat) == where)


def place(seat: ConsoleDriver[Journal]) -> str:
    """Where the preview stands on the terminal."""
    lists, region = seat.app.query_one(TabbedContent).region, shown(seat).region
    if not region.area:
        return ""
    return "beside" if region.x >= lists.right else "below" if region.y else "over"


async def test_every_list_of_attempts_has_a_preview_that_follows(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(160, 45)) as seat:
        for pane, there in (("2", True), ("3", True), ("4", False), ("5", False), ("1", True)):
            await seat.press(pane)
            assert bool(shown(seat).region.area) is there
        assert "labels#1 ─ WHY" in shown(seat).text
        await seat.press("j")
        assert "PROPOSED: RESTART by supervisor" in shown(seat).text
        await seat.press("r", "enter")
        await seat.until(lambda: "PROPOSED" not in shown(seat).text)


async def test_grouped_anew_the_preview_and_keys_are_the_cursors(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(120, 36)) as seat:
        await seat.press("v")
        assert seat.app.panes.fleet.chosen is seat.app.target
        assert "delivery#1 ─ WHY" in shown(seat).text
        assert "a Approve" in seat.footer


async def test_space_hides_the_preview_or_says_why_there_can_be_none(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(80, 24)) as seat:
        await seat.press("space")
        no_room = "no room: a preview needs 28 lines or 140 columns; enter shows more"
        assert seat.app.told == [no_room]
        await seat.pilot.resize_terminal(120, 36)
        await seat.until(lambda: bool(shown(seat).region.area))  # it was not hidden meanwhile
        await seat.press("space")
        assert not shown(seat).region.area
        await seat.press("space")
        assert "labels#1 ─ WHY" in shown(seat).text
        await seat.press("4", "space")
        assert seat.app.told == [no_room, "only a list of attempts has a preview"]


async def test_a_long_preview_scrolls_by_the_keys_of_a_list(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(120, 28)) as seat:
        said = (reflecting(n, n, 90 - n, notes=f"{n} of 12. " * 20) for n in range(1, 12))
        await seat.write(transition(), *said, transition(Lifecycle.INPUT_REQUIRED))
        await seat.press("g")
        preview = shown(seat)
        assert "fix#1" in preview.text
        preview.focus()
        await seat.press("G")
        assert preview.scroll_offset.y > 0
        await seat.press("g")
        assert preview.scroll_offset.y == 0
