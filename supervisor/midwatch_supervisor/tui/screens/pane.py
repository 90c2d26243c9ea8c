"""What the panes of the console have in common: they show a board, and can be filtered."""

from typing import Protocol, runtime_checkable

from midwatch_supervisor.tui.state.feed import Batch
from midwatch_supervisor.tui.state.row import Row


class Pane(Protocol):
    """One of the console's panes. It shows a board that somebody else folds."""

    def refresh_board(self) -> None:
        """Show the board as it is now."""
        ...

    def open_filter(self) -> None:
        """Let the operator type a filter."""
        ...

    def close_filter(self) -> bool:
        """Drop the filter; answers whether there was one."""
        ...

    @property
    def chosen(self) -> Row | None:
        """The row that the cursor is on, if the pane has one."""
        ...


@runtime_checkable
class Hearer(Protocol):
    """A screen in front of the panes that wants to hear what is new in the journal."""

    def hear(self, batch: Batch) -> None:
        """Take in what is new; the board has it already."""
        ...
