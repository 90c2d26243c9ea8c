"""A table with a filter above it, and a sentence in its place while it is empty."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.table import RuledTable

T = TypeVar("T")


def holds(text: str, wanted: str) -> bool:
    """Whether a text holds every word of a filter, in any case and order."""
    lower = text.lower()
    return all(word in lower for word in wanted.lower().split())


class Filtered(Vertical, Generic[T]):
    """A pane of lines. Whoever inherits says what the lines are, in `refresh_board`."""

    DEFAULT_CSS = """
    Filtered Input { display: none; height: 3; }
    Filtered Input.open { display: block; }
    Filtered > .nothing { display: none; padding: 1 2; }
    Filtered.empty > .nothing { display: block; }
    Filtered.empty RuledTable { height: 0; }
    """

    def __init__(
        self,
        columns: Sequence[Column[T]],
        *,
        name: str,
        hint: str,
        nothing: str,
        follow: bool = False,
    ) -> None:
        """A pane whose list is called `name`, and the pane itself `name`-pane."""
        super().__init__(id=f"{name}-pane")
        self.lines: list[T] = []
        """What is shown, in its order."""
        self._filter = Input(placeholder=f"filter: {hint}", id=f"{name}-filter")
        self._table = RuledTable(columns, self._line, id=name, follow=follow)
        self._nothing = nothing

    def compose(self) -> ComposeResult:
        """The filter, the table, and what stands there while there is nothing."""
        yield self._filter
        yield Static(self._nothing, classes="nothing", markup=False)
        yield self._table

    def _line(self, index: int) -> T:
        return self.lines[index]

    @property
    def roll(self) -> LineList:
        """The list itself."""
        return self._table.roll

    @property
    def wanted(self) -> str:
        """The words of the filter."""
        return self._filter.value

    @property
    def current(self) -> T | None:
        """What the cursor is on."""
        return self.lines[self.roll.cursor] if self.roll.cursor < len(self.lines) else None

    def show(self, cursor: int | None = None) -> None:
        """Draw the lines as they are now."""
        self.set_class(not self.lines, "empty")
        self.roll.show(len(self.lines), cursor=cursor)

    def refresh_board(self) -> None:
        """Show the board as it is now."""
        raise NotImplementedError

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
            self.roll.focus()
        return was_open

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        message.stop()
        self.refresh_board()
        # The cursor may be where it was, and on another line.
        self.post_message(LineList.Moved(self.roll, self.roll.cursor))

    @on(Input.Submitted)
    def _filtered(self, message: Input.Submitted) -> None:
        message.stop()
        self.roll.focus()
