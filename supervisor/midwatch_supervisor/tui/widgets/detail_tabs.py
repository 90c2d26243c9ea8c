"""Tabs that keys turn through, with all of the chosen line below them."""

from collections.abc import Mapping
from typing import Any, cast

from textual import on
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import TabbedContent, TabPane

from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.scrolling_text import Detail
from midwatch_supervisor.tui.widgets.table import Table


class DetailTabs(Widget):
    """What keys do to tabs and a detail. Textual takes styles from the first base only: this is
    the second, and whoever has it makes the parts and yields the detail.
    """

    _tabs: TabbedContent
    _parts: Mapping[str, Widget]
    """By the name of its tab, in their order."""
    _detail: Detail

    def _compose_tabs(self) -> ComposeResult:
        with self._tabs:
            for name, widget in self._parts.items():
                with TabPane(name.capitalize(), id=f"{name}-tab"):
                    yield widget

    @property
    def tab(self) -> str:
        """The name of the tab that is seen."""
        return self._tabs.active.removesuffix("-tab")

    @property
    def table(self) -> Table[Any] | None:
        """The lines that are seen; not every part has some."""
        part = self._parts.get(self.tab)
        return cast("Table[Any]", part) if isinstance(part, Table) else None

    def focus_lines(self) -> None:
        """Let the keys go to the part that is seen."""
        raise NotImplementedError

    def _show_detail(self) -> None:
        """Show all of the line of the cursor, if the detail is open."""
        raise NotImplementedError

    def action_tab(self, name: str) -> None:
        self._tabs.active = f"{name}-tab"

    def action_turn(self, tabs: int) -> None:
        names = [*self._parts]
        self.action_tab(names[(names.index(self.tab) + tabs) % len(names)])

    def action_detail(self) -> None:
        self._detail.open = not self._detail.open
        self._show_detail()
        if not self._detail.open:
            self.focus_lines()

    def close_filter(self) -> bool:
        """Close the detail, else drop the filter; answers whether there was one of them.

        A filter that is being typed is dropped first.
        """
        table = self.table
        if self._detail.open and not (table and table.filtering):
            self.action_detail()
            return True
        return table is not None and table.close_filter()

    @on(LineList.Moved)
    def _follow_cursor(self) -> None:
        self._show_detail()
