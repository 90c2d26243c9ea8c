"""Tables: columns that fit the width, a filter or a search, and a sentence for an empty table."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from math import inf
from operator import itemgetter
from time import monotonic
from typing import Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from midwatch_supervisor.present.text_line import cut_middle
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import Cell, on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import TextField

T = TypeVar("T")
Draw = Callable[[T], Cell]

KIND = "is:"
"""Prefix of a filter word that selects a kind of lines, if a table has kinds."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its width, its importance, and its text for an item."""

    title: str
    width: int
    """Minimum width in cells."""
    rank: int
    """Columns with the highest rank are dropped first; rank 0 always stays."""
    draw: Draw[T]
    grow: int = 0
    """Its share of surplus width."""
    differs: Callable[[], bool] = lambda: True
    """Whether it currently distinguishes items; otherwise it is dropped."""
    needed: Callable[[Sequence[T]], int] = lambda _: 0
    """The width that it needs for items, if less important columns are dropped for that."""
    middle: bool = False
    """Whether a text that is too long loses its middle, not its end."""


def fit_columns(
    columns: Sequence[Column[T]], width: int, items: Sequence[T] = ()
) -> list[tuple[Column[T], int]]:
    """Return the columns that fit into a width, in their order, with their widths."""
    kept = [(each, max(each.width, each.needed(items))) for each in columns if each.differs()]
    while (spare := width + 1 - sum(wanted + 1 for _, wanted in kept)) < 0 and len(kept) > 1:
        worst = max(kept, key=lambda each: each[0].rank)
        if worst[0].rank == 0:
            break
        kept.remove(worst)
    shares = sum(column.grow for column, _ in kept) or 1
    cut, more = min(0, spare), max(0, spare)
    return [
        (column, max(column.width, wanted + cut) + more * column.grow // shares)
        for column, wanted in kept
    ]


def draw(item: T, layout: Sequence[tuple[Column[T], int]]) -> list[Cell]:
    """Return an item's line; neighbours of one style are merged, since each piece costs time."""
    drawn = (_fit_cell(column, column.draw(item), width) for column, width in layout)
    return [
        ("".join(f"{text} " for text, _ in cells), ink)
        for ink, cells in groupby(drawn, key=itemgetter(1))
    ]


def _fit_cell(column: Column[T], cell: Cell, width: int) -> Cell:
    text, ink = cell
    return fit_text(cut_middle(text, width) if column.middle else text, width), ink


def title_cells(layout: Sequence[tuple[Column[T], int]]) -> list[Cell]:
    return [(f"{fit_text(column.title, width)} ", "heading") for column, width in layout]


def fit_text(text: str, width: int) -> str:
    """Return a text in exactly `width` cells; a longer one ends in an ellipsis."""
    if text.isascii() and len(text) <= width:
        return text.ljust(width)
    # Zero-width characters could be added to one cell without end.
    kept = text[: 4 * width]
    if len(kept) == len(text) and cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(kept, width - 1)}…" if width > 0 else ""


def span(seconds: float) -> str:
    """Return a duration in its largest unit: 5s, 3m, 2h, 4d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def long_span(seconds: float) -> str:
    """Return the same for a sentence: 5 s, 12 min, 2 h, 4 d."""
    short = span(seconds)
    return f"{short[:-1]} {short[-1].replace('m', 'min')}"


def clock(at: datetime, now: datetime) -> str:
    """Return the time of day in the zone of `now`, with the day if that is another one."""
    local = at.astimezone(now.tzinfo)
    return f"{local:%H:%M:%S}" if local.date() == now.date() else f"{local:%d %b %H:%M:%S}"


def time_column(
    title: str, rank: int, at: Callable[[T], datetime], now: Callable[[], datetime]
) -> Column[T]:
    """Return the column of the items' times."""

    def needed(items: Sequence[T]) -> int:
        return len(clock(min(map(at, items)), now())) if items else 0

    return Column(title, 8, rank, lambda item: (clock(at(item), now()), "dim"), needed=needed)


def holds(text: str, words: Sequence[str]) -> bool:
    """Whether a text contains every word; all in lower case."""
    return all(word in text for word in words)


_NO_KINDS: Mapping[str, Callable[[object], bool]] = {}


class Table(Vertical, Generic[T]):
    """Titles, lines drawn from a model, and a filter if there is a `hint` for it.

    The filter shows only lines that contain its words. With `searches`, all lines stay, matching
    ones are marked, and the cursor jumps between them; only words such as `is:failed` hide lines.
    The list has the name `name`, and the table itself `name`-pane.
    """

    DEFAULT_CSS = """
    Table { height: 1fr; }
    Table > Input { display: none; height: 1; }
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
        text: Callable[[T], str] | None = None,
        kinds: Mapping[str, Callable[[T], bool]] = _NO_KINDS,
        searches: bool = False,
        key: Callable[[T], object] = id,
        detail: Callable[[T], str] = str,
        follow: bool = False,
    ) -> None:
        """Create an empty table.

        `text` returns what the filter searches, in lower case; without it, the drawn line and
        `detail`, an item's full text. `kinds` are the words after `is:`, `key` identifies items.
        With `follow`, the cursor stays at the end once it is there.
        """
        super().__init__(id=f"{name}-pane", classes="empty")
        self.items: Sequence[T] = ()
        """The shown items, in order."""
        self.list = LineList(self._draw_cells, id=name, follow=follow, marked=self._is_match)
        self._every: Sequence[T] = ()
        self._total = 0
        """Number of items without the filter."""
        self._columns = columns
        self._layout: list[tuple[Column[T], int]] = []
        self._width = -1
        self._slipped_at = -inf
        """When another item moved under the cursor by itself, by `time.monotonic`."""
        self._text, self._key, self._detail = text or self._text_of, key, detail
        self._kinds, self._searches, self._follows = kinds, searches, follow
        self._taken_with = ""
        """The filter when the items were last taken."""
        self._matches: Sequence[int] = ()
        """Lines that match a search."""
        self._searched = False
        """Whether there was a search when the filter last changed."""
        self._filter = TextField(
            placeholder=_placeholder(hint, kinds, searches=searches),
            id=f"{name}-filter",
            compact=True,
        )
        self._nothing_at_all = nothing
        self._progress = ""
        self._nothing = Static(nothing, classes="nothing", markup=False)
        self._titles = Static(classes="titles")

    def compose(self) -> ComposeResult:
        yield self._filter
        yield self._nothing
        yield self._titles
        yield self.list

    def on_mount(self) -> None:
        on_theme_change(self, self._recolour)

    def on_resize(self) -> None:
        self._fit_columns(self.size.width - 1)

    @property
    def current(self) -> T | None:
        return self.items[self.list.cursor] if self.list.cursor < len(self.items) else None

    @property
    def detail(self) -> str:
        """The full text of the cursor's item; empty without one."""
        return "" if self.current is None else self._detail(self.current)

    @property
    def wanted(self) -> str:
        """The text typed into the filter."""
        return self._filter.value

    @property
    def filtering(self) -> bool:
        return self._filter.has_focus

    @property
    def searching(self) -> bool:
        return bool(self._searches and self._split_filter()[1])

    @property
    def place(self) -> str:
        """Return the position among the lines, in words; empty if all are visible."""
        if self.searching:
            return self._place_of_match()
        count, total = len(self.items), self._total
        if self.wanted and count < total:
            return f"{count:,} of {total:,} match"
        seen = self.list.seen
        if len(seen) >= count:
            return ""
        return f"{seen.start + 1:,}-{seen.stop:,} of {count:,}"

    def _place_of_match(self) -> str:
        count, cursor = len(self._matches), self.list.cursor
        if not count:
            return "nothing found"
        at = f"{bisect_right(self._matches, cursor):,} of " if self._is_match(cursor) else ""
        return f"{at}{count:,} found"

    def show(self, items: Sequence[T], *, cursor: int | None = None, total: int = 0) -> None:
        """Show these items, out of `total` if there are more, and put the cursor on one of them."""
        before = self.current
        # Other changes are shown with the next call.
        self.items, self._total = tuple(items), total
        self._say_why()
        self.set_class(not items, "empty")
        self.list.show(len(items), cursor=cursor)
        self._fit_columns(self._width)
        self._notice_slip(before)

    def _notice_slip(self, before: T | None) -> None:
        now = self.current
        if now is before:
            return
        if now is None or before is None or self._key(now) != self._key(before):
            self.list.picked = False
            self._slipped_at = monotonic()
            # The cursor may be at the same place, but on another line.
            self.post_message(LineList.Moved(self.list, self.list.cursor))

    def slip(self, glance: float) -> str:
        """Return why the cursor's item ignores action keys: nobody can have read it yet.

        Empty if it does not: a person picked it, or it has been there for `glance` seconds.
        """
        if self.list.picked or monotonic() - self._slipped_at >= glance:
            return ""
        return "another line has just moved under the cursor: look at it first"

    def take(self, items: Sequence[T]) -> None:
        """Show the items that match the filter; the cursor stays on its item.

        If it follows the end, it stays there instead.
        """
        changed, self._taken_with = self.wanted != self._taken_with, self.wanted
        kinds, words = self._split_filter()
        before, self._every = self.current, items
        narrowed = kinds is not None or (words and not self._searches)
        found = (
            [each for each in items if self._passes_filter(each, kinds, words)]
            if narrowed
            else items
        )
        self._matches, self.list.words = (), words
        if self._searches and words:
            text = self._text
            self._matches = [n for n, each in enumerate(found) if holds(text(each), words)]
        cursor = None if before is None else self._place_of(before, found)
        if self._follows_end(changed=changed):
            cursor = len(found) - 1
        self.show(found, cursor=cursor, total=len(items))

    def _follows_end(self, *, changed: bool) -> bool:
        """Whether the cursor stays at the end, even if the filter has `changed`."""
        return self._follows and self.list.at_end and not changed

    def _place_of(self, item: T, shown: Sequence[T]) -> int | None:
        """Return an item's index; if it is hidden, that of the next line; `None` if it is gone."""
        key, at = self._key(item), self.list.cursor
        if at < len(shown) and self._key(shown[at]) == key:
            return at
        keys = [self._key(each) for each in shown]
        if key in keys:
            return keys.index(key)
        left = {*keys}
        every = [self._key(each) for each in self._every]
        if key not in every:
            return None
        return sum(each in left for each in every[: every.index(key)])

    def _passes_filter(
        self, item: T, kinds: Sequence[Callable[[T], bool]] | None, words: Sequence[str]
    ) -> bool:
        if kinds is not None and not any(kind(item) for kind in kinds):
            return False
        return self._searches or holds(self._text(item), words)

    def _split_filter(self) -> tuple[Sequence[Callable[[T], bool]] | None, Sequence[str]]:
        """Return the wanted kinds, `None` for any, and the words, in lower case."""
        every = self.wanted.lower().split()
        named = [word for word in every if self._kinds and word.startswith(KIND)]
        # A word being typed matches all kinds that begin with it.
        kinds = [
            kind
            for word in named
            for name, kind in self._kinds.items()
            if name.startswith(word.removeprefix(KIND))
        ]
        return kinds if named else None, [word for word in every if word not in named]

    def _text_of(self, item: T) -> str:
        drawn = (column.draw(item)[0] for column in self._columns)
        return " ".join((*drawn, self._detail(item))).lower()

    def refresh_board(self) -> None:
        self.take(self._every)

    def see(self, key: object) -> None:
        """Move the cursor to the item with this key, if it is shown."""
        for place, each in enumerate(self.items):
            if self._key(each) == key:
                self.list.go(place, around=True)
                return

    def go_to_match(self, matches: int) -> None:
        """Move the cursor some matches forward or back, cyclically.

        If only kinds of lines are searched, each remaining line is a match.
        """
        cursor, found = self.list.cursor, self._matches
        found = found if self.searching or not self.wanted else range(len(self.items))
        if found:
            after = bisect_right(found, cursor) - 1 if matches > 0 else bisect_left(found, cursor)
            self.list.go(found[(after + matches) % len(found)], around=True)

    def say(self, nothing: str) -> None:
        """Change the sentence of an empty table."""
        self._nothing_at_all = nothing
        self._say_why()

    def _say_why(self) -> None:
        if not self.items:
            left_out = bool(self.wanted and self._total)
            why = _left_out(self._kinds) if left_out else self._nothing_at_all
            self._nothing.update(self._progress or why)

    def wait_for(self, progress: str) -> None:
        """Show `progress` while the table is empty; an empty text ends that."""
        if progress != self._progress:
            self._progress = progress
            self._say_why()

    def open_filter(self) -> None:
        self._filter.add_class("open")
        # At once: the next typed letter must not act on the lines.
        self.screen.set_focus(self._filter)

    def filter_by(self, wanted: str) -> None:
        """Show only lines that contain these words; the keys stay with the lines."""
        self._filter.add_class("open")
        self._filter.value = wanted

    def close_filter(self) -> bool:
        """Clear the filter; return whether there was one. The cursor stays on its item."""
        was_open = self._filter.has_class("open")
        self._filter.remove_class("open")
        self._filter.value = ""
        if was_open:
            self._apply_filter()
            self.list.focus()
        return was_open

    @on(Input.Changed)
    def _filter_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._apply_filter()

    def _apply_filter(self) -> None:
        before, self._searched = self._searched, self.searching
        self.refresh_board()
        if self._matches and not self._is_match(self.list.cursor):
            self.go_to_match(1)
        if before is not self._searched:
            self.refresh_bindings()

    @on(Input.Submitted)
    def _filter_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.list.focus()

    def use(self, columns: Sequence[Column[T]]) -> None:
        self._columns = columns
        self._fit_columns(self._width)
        self.list.refresh()

    def _recolour(self) -> None:
        self.list.refresh()
        self._draw_titles()

    def _is_match(self, index: int) -> bool:
        place = bisect_left(self._matches, index)
        return place < len(self._matches) and self._matches[place] == index

    def _draw_cells(self, index: int, width: int) -> Sequence[Cell]:
        if width != self._width:
            self._fit_columns(width)
        return draw(self.items[index], self._layout)

    def _fit_columns(self, width: int) -> None:
        self._width, self._layout = width, fit_columns(self._columns, width, self.items)
        self.call_after_refresh(self._draw_titles)

    @on(LineList.Moved)
    @on(LineList.Scrolled)
    def _draw_titles(self) -> None:
        place, colours = self.place, palette_of(self)
        # Each line begins with a cell for the cursor's sign.
        titles = colours.assemble([(" ", "text"), *title_cells(self._layout)])
        if place:
            titles.truncate(max(0, self._width - cell_len(place) - 1), pad=True)
            titles.append(f"  {place}", colours.dim)
        self._titles.update(titles, layout=False)


def _words_of(kinds: Mapping[str, object]) -> str:
    return " ".join(f"{KIND}{name}" for name in kinds)


def _placeholder(hint: str, kinds: Mapping[str, object], *, searches: bool) -> str:
    """Return the text of an empty filter field."""
    only = f" · only: {_words_of(kinds)}" if kinds else ""
    return f"search: words, enter, then n or N{only}" if searches else f"filter: {hint}"


def _left_out(kinds: Mapping[str, object]) -> str:
    """Return the sentence for a table whose filter hides everything."""
    known = f" Kinds of lines: {_words_of(kinds)}." if kinds else ""
    return f"No line matches the filter; escape clears it.{known}"
