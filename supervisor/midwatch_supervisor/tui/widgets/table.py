"""Tables: columns that fit the width, a filter above, and a sentence while there is nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from time import monotonic
from typing import Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from midwatch_supervisor.tui.widgets.line_list import Cell, LineList
from midwatch_supervisor.tui.widgets.palette import Palette, on_theme_change

T = TypeVar("T")
Draw = Callable[[T, Palette], Cell]


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: how wide, how important, and what it says of an item."""

    title: str
    width: int
    """In cells; at least this much."""
    rank: int
    """Columns with the highest rank are left out first; rank 0 always stays."""
    draw: Draw[T]
    grow: int = 0
    """Its share of the width that is left over."""


def fitted(columns: Sequence[Column[T]], width: int) -> list[tuple[Column[T], int]]:
    """The columns that fit into a width, in their order, with the width of each."""
    kept = list(columns)
    while len(kept) > 1 and _needed(kept) > width:
        worst = max(kept, key=lambda column: column.rank)
        if worst.rank == 0:
            break
        kept.remove(worst)
    spare = max(0, width - _needed(kept))
    shares = sum(column.grow for column in kept)
    return [
        (column, column.width + (spare * column.grow // shares if shares else 0)) for column in kept
    ]


def _needed(columns: Sequence[Column[T]]) -> int:
    return sum(column.width for column in columns) + len(columns) - 1


def draw(item: T, layout: Sequence[tuple[Column[T], int]], colours: Palette) -> list[Cell]:
    """One line of an item; neighbours of one style are one piece, since each piece costs time."""
    cells: list[Cell] = []
    line, last = "", colours.text
    for column, width in layout:
        text, style = column.draw(item, colours)
        if style is not last and line:
            cells.append((line, last))
            line = ""
        line, last = f"{line}{sized(text, width)} ", style
    cells.append((line, last))
    return cells


def heading(layout: Sequence[tuple[Column[T], int]], colours: Palette) -> list[Cell]:
    """The line of the titles."""
    return [(f"{sized(column.title, width)} ", colours.heading) for column, width in layout]


def sized(text: str, width: int) -> str:
    """The text in exactly `width` cells; what does not fit ends in an ellipsis."""
    if text.isascii() and len(text) <= width:
        return text.ljust(width)
    # Characters without a width of their own could go on for ever in one cell.
    kept = text[: 4 * width]
    if len(kept) == len(text) and cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(kept, width - 1)}…" if width > 0 else ""


def span(seconds: float) -> str:
    """A time span in its largest unit: 5s, 3m, 2h, 4d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def long_span(seconds: float) -> str:
    """The same for a sentence: 5 s, 12 min, 2 h, 4 d."""
    short = span(seconds)
    return f"{short[:-1]} {short[-1].replace('m', 'min')}"


def clock(at: datetime, zone: tzinfo | None) -> str:
    """The time of day in a time zone; `None` is this machine's."""
    return f"{at.astimezone(zone):%H:%M:%S}"


def matches(text: str, wanted: str) -> bool:
    """Whether a text holds every word of a filter, in any case and order."""
    lower = text.lower()
    return all(word in lower for word in wanted.lower().split())


class Table(Vertical, Generic[T]):
    """Titles, lines that are drawn off a model, and a filter where there is a `hint` for it.

    The list is called `name`, and the table itself `name`-pane.
    """

    DEFAULT_CSS = """
    Table { height: 1fr; }
    Table > Input { display: none; height: 3; }
    Table > Input.open { display: block; }
    Table > .titles { height: 1; }
    Table > .nothing { display: none; padding: 1 2; }
    Table.empty > .nothing { display: block; }
    Table.empty > .titles { display: none; }
    Table.empty > LineList { height: 0; }
    """

    def __init__(
        self,
        columns: Sequence[Column[T]],
        *,
        name: str,
        nothing: str,
        hint: str = "",
        text: Callable[[T], str] = str,
        key: Callable[[T], object] = id,
        detail: Callable[[T], str] = str,
        follow: bool = False,
    ) -> None:
        """Make an empty table.

        `text` is what the filter looks at, `key` tells items apart, `detail` is all of an item.
        With `follow` the cursor stays at the end once it is there.
        """
        super().__init__(id=f"{name}-pane", classes="empty")
        self.items: Sequence[T] = ()
        """What is shown, in its order."""
        self.list = LineList(self._paint, id=name, follow=follow)
        self._every: Sequence[T] = ()
        self._columns = columns
        self._layout: list[tuple[Column[T], int]] = []
        self._width = -1
        self._slipped_at = 0.0
        """When another item came under the cursor by itself, as `time.monotonic` counts."""
        self._text, self._key, self._detail = text, key, detail
        self._filter = Input(placeholder=f"filter: {hint}", id=f"{name}-filter")
        self._nothing = Static(nothing, classes="nothing", markup=False)
        self._titles = Static(classes="titles")

    def compose(self) -> ComposeResult:
        yield self._filter
        yield self._nothing
        yield self._titles
        yield self.list

    def on_mount(self) -> None:
        on_theme_change(self, self.recolour)

    def on_resize(self) -> None:
        self._fit(self.size.width - 1)

    @property
    def current(self) -> T | None:
        """What the cursor is on."""
        return self.items[self.list.cursor] if self.list.cursor < len(self.items) else None

    @property
    def detail(self) -> str:
        """All that the item of the cursor has to say; empty without one."""
        return "" if self.current is None else self._detail(self.current)

    @property
    def wanted(self) -> str:
        """The words of the filter."""
        return self._filter.value

    def show(self, items: Sequence[T], *, cursor: int | None = None) -> None:
        """Show these items, and put the cursor on one of them."""
        before = self.current
        # What grows or is cut beside it is shown with the next call.
        self.items = tuple(items)
        self.set_class(not items, "empty")
        self.list.show(len(items), cursor=cursor)
        self._notice_slip(before)

    def _notice_slip(self, before: T | None) -> None:
        now = self.current
        if now is before:
            return
        if now is None or before is None or self._key(now) != self._key(before):
            self.list.picked = False
            self._slipped_at = monotonic()

    def slip(self, glance: float) -> str:
        """Why no act is taken on the item of the cursor: nobody can have read it yet.

        Empty if one is: a person picked it, or it has stood there for `glance` seconds.
        """
        if self.list.picked or monotonic() - self._slipped_at >= glance:
            return ""
        return "another line has just come under the cursor: look at it first"

    def take(self, items: Sequence[T]) -> None:
        """Show the items that the filter lets through; the cursor stays on its item."""
        self._every = items
        before, wanted = self.current, self.wanted
        found = [each for each in items if matches(self._text(each), wanted)]
        key = None if before is None else self._key(before)
        place = (n for n, each in enumerate(found) if before and self._key(each) == key)
        self.show(found, cursor=next(place, None))

    def refresh_board(self) -> None:
        """Show the board as it is now."""
        self.take(self._every)

    def see(self, key: object) -> None:
        """Put the cursor on the item with a key."""
        for place, each in enumerate(self.items):
            if self._key(each) == key:
                self.list.go(place)
                return

    def say(self, nothing: str) -> None:
        """Say this where there is nothing."""
        self._nothing.update(nothing)

    def open_filter(self) -> None:
        """Let the operator type a filter."""
        self._filter.add_class("open")
        self._filter.focus()

    def filter_by(self, wanted: str) -> None:
        """Show only the lines that hold these words; the keys stay with the lines."""
        self._filter.add_class("open")
        self._filter.value = wanted

    def close_filter(self) -> bool:
        """Drop the filter; answers whether there was one."""
        was_open = self._filter.has_class("open")
        self._filter.remove_class("open")
        self._filter.value = ""
        if was_open:
            self.list.focus()
        return was_open

    @on(Input.Changed)
    def _filter_changed(self, message: Input.Changed) -> None:
        message.stop()
        self.refresh_board()
        # The cursor may be where it was, and on another line.
        self.post_message(LineList.Moved(self.list, self.list.cursor))

    @on(Input.Submitted)
    def _filter_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.list.focus()

    def use(self, columns: Sequence[Column[T]]) -> None:
        """Show these columns from now on."""
        self._columns = columns
        self._fit(self._width)
        self.list.refresh()

    def recolour(self) -> None:
        """Take the colours of the present theme."""
        self.list.recolour()
        self._draw_titles()

    def _paint(self, index: int, width: int, colours: Palette) -> Sequence[Cell]:
        if width != self._width:
            self._fit(width, later=True)
        return draw(self.items[index], self._layout, colours)

    def _fit(self, width: int, *, later: bool = False) -> None:
        self._width, self._layout = width, fitted(self._columns, width)
        if later:
            self.call_after_refresh(self._draw_titles)
        else:
            self._draw_titles()

    def _draw_titles(self) -> None:
        cells = heading(self._layout, self.list.colours)
        # Each line begins with the cell of the cursor's sign.
        self._titles.update(Text.assemble(" ", *cells, no_wrap=True))
