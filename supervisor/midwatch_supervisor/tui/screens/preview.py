"""The chosen row in full beside the list, or below it: a person answers without another screen."""

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from midwatch_supervisor.tui.screens.preview_lines import Preview, PreviewLine
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.palette import on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import SCROLL_KEYS, ScrollActions


class PreviewView(ScrollView, ScrollActions, can_focus=True):  # pyright: ignore[reportIncompatibleMethodOverride] - in Textual itself
    """Why the chosen row stands where it does, what it used, what waits, what it reported.

    It is drawn off lines as every list is; tab reaches it, and then the keys of a list scroll it.
    """

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_KEYS
    DEFAULT_CSS = """
    PreviewView { overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self, board: FleetBoard, now: Callable[[], datetime], keys: Mapping[str, str]
    ) -> None:
        """Preview rows of a board; `keys` tells the key of each act, as a person reads it."""
        super().__init__(id="preview")
        self._board = board
        self._now = now
        self._keys = keys
        self._row: Row | None = None
        self._lines: list[PreviewLine] = []
        self._strips: dict[int, Strip] = {}
        """The lines that were seen, as they were drawn."""
        self._under: Style | None = None

    def on_mount(self) -> None:
        on_theme_change(self, self.refresh_board)

    def on_resize(self) -> None:
        self.refresh_board()

    def show_row(self, row: Row | None) -> None:
        """Preview a row from now on."""
        if row is not self._row:
            self._row = row
            self.scroll_home(animate=False)
        self.refresh_board()

    def refresh_board(self) -> None:
        """Show the row as it is now."""
        row, width = self._row, self.size.width - 1
        if not self.display or width < 1:
            return
        lines = [] if row is None else self._drawn(row, width)
        # Another size lays the whole screen out anew: what fits has always the same.
        size = Size(self.size.width, max(len(lines), self.size.height))
        if self.virtual_size != size:
            self.virtual_size = size
        changed = [
            n for n, (one, other) in enumerate(zip_longest(lines, self._lines)) if one != other
        ]
        if not changed:
            return
        self._lines = lines
        for number in changed:
            self._strips.pop(number, None)
        self.refresh_lines(changed[0], changed[-1] - changed[0] + 1)

    def _drawn(self, row: Row, width: int) -> list[PreviewLine]:
        waits = self._board.turn(row) if row.attempt is None else ""
        return Preview(
            row=row,
            width=width,
            now=self._now(),
            colours=palette_of(self),
            waits=waits,
            keys=self._keys,
        ).lines()

    @property
    def text(self) -> str:
        """What it says, without its colours."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The visible lines; each is drawn once, until what it says or its background changes."""
        under = self.rich_style
        if under != self._under:
            self._under, self._strips = under, {}
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        index, width = y + round(self.scroll_offset.y), self.size.width
        under = self._under or self.rich_style
        if index >= len(self._lines):
            return Strip.blank(width, under)
        if index not in self._strips:
            segments = [Segment(text, under + style) for text, style in self._lines[index]]
            self._strips[index] = Strip(segments).adjust_cell_length(width, under)
        return self._strips[index]
