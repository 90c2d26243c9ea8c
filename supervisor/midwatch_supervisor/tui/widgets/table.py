"""A roll under a line of titles, whose columns fit the width."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from midwatch_supervisor.tui.widgets.columns import Column, draw, fitted, heading
from midwatch_supervisor.tui.widgets.line_list import Cell, LineList
from midwatch_supervisor.tui.widgets.palette import Palette

T = TypeVar("T")


class RuledTable(Vertical, Generic[T]):
    """A table: titles above, lines below, drawn off a model."""

    DEFAULT_CSS = """
    RuledTable { height: 1fr; }
    RuledTable > .titles { height: 1; }
    """

    def __init__(
        self,
        columns: Sequence[Column[T]],
        item: Callable[[int], T],
        *,
        id: str,
        follow: bool = False,
    ) -> None:
        """Show `item(index)` for each index in `columns`."""
        super().__init__(id=f"{id}-table")
        self._columns = columns
        self._item = item
        self._layout: list[tuple[Column[T], int]] = []
        self._width = -1
        self.roll = LineList(self._paint, id=id, follow=follow)

    def compose(self) -> ComposeResult:
        """The titles and the lines."""
        yield Static(classes="titles")
        yield self.roll

    def on_mount(self) -> None:
        """Another theme colours the titles anew."""
        theme = cast("App[object]", self.app).theme_changed_signal  # pyright: ignore[reportUnknownMemberType]
        theme.subscribe(self, lambda _: self.recolour())

    def _paint(self, index: int, width: int, colours: Palette) -> Sequence[Cell]:
        if width != self._width:
            self._width = width
            self._layout = fitted(self._columns, width)
            self.call_after_refresh(self._title)
        return draw(self._item(index), self._layout, colours)

    def _title(self) -> None:
        cells = heading(self._layout, self.roll.colours)
        # Each line begins with the cell of the cursor's sign.
        self.query_one(".titles", Static).update(Text.assemble(" ", *cells, no_wrap=True))

    def on_resize(self) -> None:
        """The columns are chosen anew for another width."""
        self._fit(self.size.width - 1)

    def use(self, columns: Sequence[Column[T]]) -> None:
        """Show these columns from now on."""
        self._columns = columns
        self._fit(self._width)
        self.roll.refresh()

    def _fit(self, width: int) -> None:
        self._width = width
        self._layout = fitted(self._columns, width)
        self._title()

    def recolour(self) -> None:
        """Take the colours of the present theme."""
        self.roll.recolour()
        self._title()
