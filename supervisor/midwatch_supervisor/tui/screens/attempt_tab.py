"""One list of the attempt view: lines of a table, and all that a line has to say."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import Palette
from midwatch_supervisor.tui.widgets.table import RuledTable

T = TypeVar("T")


class Facet(Vertical, Generic[T]):
    """A table of one side of an attempt. Where there is nothing it says so."""

    DEFAULT_CSS = """
    Facet { height: 1fr; }
    Facet > .empty { display: none; padding: 1 2; }
    Facet.bare > .empty { display: block; }
    Facet.bare > RuledTable > .titles { visibility: hidden; }
    """

    def __init__(
        self,
        columns: Sequence[Column[T]],
        *,
        id: str,
        detail: Callable[[T], str],
        empty: str,
        follow: bool = False,
    ) -> None:
        """Show items in `columns`; `detail` answers all of one, `empty` is said without any."""
        super().__init__(id=f"{id}-facet", classes="bare")
        self.items: Sequence[T] = ()
        self._detail = detail
        self._empty = Static(empty, classes="empty", markup=False)
        self._table = RuledTable(columns, self._item, id=id, follow=follow)

    def compose(self) -> ComposeResult:
        """The words for nothing, and the table."""
        yield self._empty
        yield self._table

    def _item(self, index: int) -> T:
        return self.items[index]

    @property
    def roll(self) -> LineList:
        """The list itself."""
        return self._table.roll

    @property
    def under_cursor(self) -> T | None:
        """The item of the cursor."""
        return self.items[self.roll.cursor] if self.roll.cursor < len(self.items) else None

    @property
    def detail(self) -> str:
        """All that the item of the cursor has to say; empty without one."""
        item = self.under_cursor
        return "" if item is None else self._detail(item)

    def show(self, items: Sequence[T], *, cursor: int | None = None) -> None:
        """These are the items now."""
        # What grows or is cut beside it is shown with the next call.
        self.items = tuple(items)
        self.set_class(not items, "bare")
        self.roll.show(len(items), cursor=cursor)

    def say(self, empty: str) -> None:
        """Say this where there is nothing."""
        self._empty.update(empty)


def tone_style(tone: Tone, colours: Palette) -> Style:
    """The style of a tone."""
    return {
        Tone.PLAIN: colours.text,
        Tone.DIM: colours.dim,
        Tone.ACCENT: colours.accent,
        Tone.GOOD: colours.good,
        Tone.WARN: colours.warn,
        Tone.BAD: colours.bad,
    }[tone]
