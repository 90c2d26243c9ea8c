"""Tabs selected by keys, with the detail of the selected line below."""

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
    """The keys' actions on tabs and a detail. Textual takes styles only from the first base class:
    use this as the second. The subclass creates the parts and the detail.
    """

    _tabs: TabbedContent
    _parts: Mapping[str, Widget]
    """The parts by tab name, in order."""
    _detail: Detail

    def _compose_tabs(self) -> ComposeResult:
        with self._tabs:
            for name, widget in self._parts.items():
                with TabPane(name.capitalize(), id=f"{name}-tab"):
                    yield widget

    @property
    def tab(self) -> str:
        """The name of the shown tab."""
        return self._tabs.active.removesuffix("-tab")

    @property
    def table(self) -> Table[Any] | None:
        """The shown table; not every part has one."""
        part = self._parts.get(self.tab)
        return cast("Table[Any]", part) if isinstance(part, Table) else None

    def focus_lines(self) -> None:
        """Focus the shown part."""
        raise NotImplementedError

    def _show_detail(self) -> None:
        """Show the detail of the cursor's line, if the detail is open."""
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
        """Close the detail, else clear the filter; return whether there was either.

        A filter being typed is cleared first.
        """
        table = self.table
        if self._detail.open and not (table and table.filtering):
            self.action_detail()
            return True
        return table is not None and table.close_filter()

    @on(LineList.Moved)
    def _follow_cursor(self) -> None:
        self._show_detail()
