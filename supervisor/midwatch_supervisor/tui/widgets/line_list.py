"""A long list drawn line by line from a model: only visible lines cost anything."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from midwatch_supervisor.tui.keys import LIST
from midwatch_supervisor.tui.widgets.palette import Cell, palette, palette_of, palette_on

Painter = Callable[[int, int], Sequence[Cell]]
"""Draws the line with an index, for a width in cells."""

CURSOR = ">"
"""Before the cursor's line, in its own cell, so that no colour is needed."""
MATCH = "•"
"""In the same cell, before a line that matches a search."""
_FOUND = Style(bold=True, underline=True)
"""Added to words that match a search."""


class LineList(ScrollView, can_focus=True):
    """A list with a cursor, for the keys `j k g G`, the arrows, the mouse and enter.

    It does not know what it shows: a painter draws a line when it becomes visible.
    """

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in LIST]
    DEFAULT_CSS = """
    LineList { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    @dataclass
    class Moved(Message):
        """The cursor moved to another line, or a person selected its line."""

        list: "LineList"
        index: int

        @property
        def control(self) -> "LineList":
            """The sender, for `@on` selectors."""
            return self.list

    class Opened(Moved):
        """Enter, or a double click on a line."""

    class Scrolled(Message):
        """Other lines are visible than before."""

    def __init__(
        self,
        painter: Painter,
        *,
        id: str | None = None,
        follow: bool = False,
        marked: Callable[[int], bool] = lambda index: False,
    ) -> None:
        """Draw with `painter`, and a sign before `marked` lines.

        With `follow`, going to the end means following it, not picking its line.
        """
        super().__init__(id=id)
        self._painter = painter
        self._marked = marked
        self._follow = follow
        self.count = 0
        self.cursor = 0
        self.picked = False
        """Whether a person put the cursor there; other movements reset it."""
        self.words: Sequence[str] = ()
        """Words that are highlighted in marked lines, in lower case."""
        self._under = Style.null()
        self._colours = palette({})
        self._first = 0
        self._width = 0

    def show(self, count: int, *, cursor: int | None = None) -> None:
        """Set the number of lines, any of which may have changed, and redraw the visible ones.

        A visible cursor stays visible; if the operator has scrolled away from it, the lines stay
        where they are.
        """
        seen = self._is_visible_line(self.cursor)
        self.count = count
        size = Size(self.size.width, count)
        if self.virtual_size != size:
            self.virtual_size = size
        self._place_cursor(self.cursor if cursor is None else cursor, reveal=seen)
        self.refresh()

    def go(self, index: int, *, around: bool = False) -> None:
        """Move the cursor to a line and into view; `around` centres it if it was out of sight."""
        if around and not self._is_visible_line(index):
            self._place_cursor(index, reveal=False)
            self.scroll_to(y=max(0, index - self._visible_count // 2), animate=False)
        else:
            self._place_cursor(index)
        self.refresh()

    @property
    def at_end(self) -> bool:
        return self.cursor >= self.count - 1

    @property
    def seen(self) -> range:
        return range(
            min(self._top_index, self.count), min(self._top_index + self._visible_count, self.count)
        )

    @property
    def _top_index(self) -> int:
        return round(self.scroll_offset.y)

    @property
    def _visible_count(self) -> int:
        return max(1, self.scrollable_content_region.height)

    def _is_visible_line(self, index: int) -> bool:
        return self._top_index <= index < self._top_index + self._visible_count

    def _place_cursor(self, index: int, *, reveal: bool = True) -> None:
        index = max(0, min(index, self.count - 1))
        moved = index != self.cursor
        self.cursor = index
        if reveal:
            self._reveal_cursor()
        if moved:
            self.post_message(self.Moved(self, index))

    def _reveal_cursor(self) -> None:
        if self.cursor < self._top_index:
            self.scroll_to(y=self.cursor, animate=False)
        elif not self._is_visible_line(self.cursor):
            self.scroll_to(y=self.cursor - self._visible_count + 1, animate=False)

    def on_resize(self) -> None:
        self._reveal_cursor()
        self.post_message(self.Scrolled())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible lines; what they share is computed once."""
        self._first, self._width = self._top_index, self.scrollable_content_region.width
        self._under = self.rich_style
        self._colours = palette_on(palette_of(self), self._under)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        index, width = y + self._first, self._width
        if not 0 <= index < self.count or width < 1:
            return Strip.blank(width, self._under)
        colours, marked, at_cursor = self._colours, self._marked(index), index == self.cursor
        segments = [Segment(text, colours[ink]) for text, ink in self._painter(index, width - 1)]
        segments = mark_words(segments, self.words) if marked else segments
        sign = CURSOR if at_cursor else MATCH if marked else " "
        segments.insert(0, Segment(sign, colours.strong))
        under = self._under
        if at_cursor and self.has_focus:
            # One style for the whole line: signs say the same as the cells' colours.
            under = colours.cursor
            segments = [Segment(text, under) for text, *_ in segments]
        return Strip(segments).adjust_cell_length(width, under)

    def action_move(self, lines: int) -> None:
        before, self.picked = self.picked, self.count > 0
        self.go(self.cursor + lines)
        if self.picked and not before:
            self.post_message(self.Moved(self, self.cursor))

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self._visible_count - 1))

    def action_first(self) -> None:
        self.action_move(-self.count)

    def action_last(self) -> None:
        self.action_move(self.count)
        self.picked = self.picked and not self._follow

    def action_open(self) -> None:
        if self.count:
            self.post_message(self.Opened(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Select a line on a click; open it on a double click."""
        index = event.y + self._top_index
        if not 0 <= index < self.count:
            return
        same = index == self.cursor
        self.action_move(index - self.cursor)
        # If lines moved between the two clicks, the second only selects.
        if same and event.chain > 1:
            self.action_open()

    def on_focus(self) -> None:
        self.refresh()

    on_blur = on_focus


def mark_words(segments: Sequence[Segment], words: Sequence[str]) -> list[Segment]:
    """Return pieces of a line with the given words highlighted."""
    found = re.compile(f"({'|'.join(map(re.escape, words))})", re.IGNORECASE)
    return [
        Segment(piece, (style or Style.null()) + _FOUND if place % 2 else style)
        for text, style, _ in segments
        for place, piece in enumerate(found.split(text))
        if piece
    ]
