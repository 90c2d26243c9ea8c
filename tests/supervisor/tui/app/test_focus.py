"""Where the keys go is seen wherever tab takes them."""

import pytest
from textual.widget import Widget
from textual.widgets import TextArea

from midwatch_monitor.journal import Journal
from midwatch_stage.console import console_on
from midwatch_supervisor.tui.screens.attempt import AttemptScreen


def drawn(widget: Widget) -> str:
    """A widget and its parts as they are seen, with frames and colours."""
    parts = (widget, *widget.query("*"))
    strips = [strip for part in parts for strip in part.render_lines(part.outer_size.region)]
    return "\n".join(str(segment) for strip in strips for segment in strip)


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (120, ()),
        *(
            pytest.param(width, keys, marks=pytest.mark.matrix)
            for width, keys in ((160, ()), (120, ("4",)), (120, ("5", "f5")), (120, ("5", "space")))
        ),
        (120, ("enter", "space")),
        (120, ("b",)),
    ],
)
async def test_what_has_the_focus_looks_otherwise_than_without_it(
    shop_to_read: Journal, width: int, keys: tuple[str, ...]
) -> None:
    async with console_on(shop_to_read, size=(width, 36)) as seat:
        await seat.press("5")
        seat.app.refresh_panes()
        await seat.until(lambda: bool(seat.app.learned.view.lessons))
        await seat.press("1", *keys)
        view = seat.app.screen
        await seat.until(lambda: not (isinstance(view, AttemptScreen) and view.reading))
        for words in seat.app.screen.query(TextArea):
            words.cursor_blink = False
        for _ in seat.app.screen.focus_chain:
            await seat.press("tab")
            focused = seat.app.focused
            assert focused is not None
            seen = drawn(focused)
            await seat.press("shift+tab")
            await seat.until(lambda focused=focused, seen=seen: drawn(focused) != seen)
            await seat.press("tab")
