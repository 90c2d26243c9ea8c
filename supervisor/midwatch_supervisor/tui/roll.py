"""A long list, drawn line by line off a model: only what is visible costs anything."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from midwatch_supervisor.tui.palette import Palette, palette

Cell = tuple[str, Style]
"""A piece of a line with its style; control characters must be gone from the text."""

Painter = Callable[[int, int, Palette], Sequence[Cell]]
"""Draws the line with an index, for a width in cells."""


class Roll(ScrollView, can_focus=True):
    """A list with a cursor, for the keys `j k g G`, the arrows, the mouse and enter.

    It knows nothing of what it shows: a painter draws a line when it becomes visible.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Down", show=False, id="roll.down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="roll.up"),
        Binding("g,home", "first", "First", show=False, id="roll.first"),
        Binding("G,end", "last", "Last", show=False, id="roll.last"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="roll.pagedown"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="roll.pageup"),
        Binding("enter", "open", "Open", id="roll.open"),
    ]
    DEFAULT_CSS = """
    Roll { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    @dataclass
    class Moved(Message):
        """The cursor stands on another line."""

        roll: "Roll"
        index: int

        @property
        def control(self) -> "Roll":
            """The sender, for `@on` selectors."""
            return self.roll

    @dataclass
    class Opened(Message):
        """Enter, or a click on the line of the cursor."""

        roll: "Roll"
        index: int

        @property
        def control(self) -> "Roll":
            """The sender, for `@on` selectors."""
            return self.roll

    def __init__(self, painter: Painter, *, id: str | None = None, follow: bool = False) -> None:
        """Draw with `painter`; with `follow` the cursor stays at the end once it is there."""
        super().__init__(id=id)
        self._painter = painter
        self._follow = follow
        self.count = 0
        self.cursor = 0
        self._colours: Palette | None = None

    def show(self, count: int, *, cursor: int | None = None) -> None:
        """There are `count` lines now, and any of them may have changed; redraw what is visible."""
        at_end = self._follow and self.cursor >= self.count - 1
        self.count = count
        size = Size(self.size.width, count)
        if self.virtual_size != size:
            self.virtual_size = size
        if cursor is None and at_end:
            cursor = count - 1
        self._place(self.cursor if cursor is None else cursor)
        self.refresh()

    def _place(self, index: int) -> None:
        index = max(0, min(index, self.count - 1))
        moved = index != self.cursor
        self.cursor = index
        self._reveal()
        if moved:
            self.post_message(self.Moved(self, index))

    def _reveal(self) -> None:
        top, height = round(self.scroll_offset.y), max(1, self.scrollable_content_region.height)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def recolour(self) -> None:
        """Take the colours of the present theme."""
        self._colours = None
        self.refresh()

    @property
    def colours(self) -> Palette:
        """The styles of the theme."""
        if self._colours is None:
            app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
            self._colours = palette(app.get_css_variables())
        return self._colours

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        index = y + round(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        if not 0 <= index < self.count:
            return Strip.blank(width, self.rich_style)
        colours = self.colours
        cells = self._painter(index, width, colours)
        base = self.rich_style
        strip = Strip([Segment(text, base + style) for text, style in cells])
        strip = strip.adjust_cell_length(width, base)
        if index == self.cursor and self.has_focus:
            return strip.apply_style(colours.cursor)
        return strip

    def action_move(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self._place(self.cursor + lines)
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Move the cursor by a screenful."""
        self.action_move(pages * max(1, self.scrollable_content_region.height - 1))

    def action_first(self) -> None:
        """Go to the first line."""
        self.action_move(-self.count)

    def action_last(self) -> None:
        """Go to the last line."""
        self.action_move(self.count)

    def action_open(self) -> None:
        """Open the line of the cursor."""
        if self.count:
            self.post_message(self.Opened(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """A click selects a line; another on the same line opens it."""
        index = event.y + round(self.scroll_offset.y)
        if not 0 <= index < self.count:
            return
        if index == self.cursor and self.has_focus and event.chain > 1:
            self.action_open()
        self.action_move(index - self.cursor)

    def on_focus(self) -> None:
        """The cursor shows where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is hidden while the keys go elsewhere."""
        self.refresh()
