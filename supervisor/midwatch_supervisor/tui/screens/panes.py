"""The panes of the main screen: one is shown, and only that one is updated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TabbedContent, TabPane
from textual.widgets.tabbed_content import ContentTab

from midwatch_supervisor.tui.learned.pane import LearnedPane
from midwatch_supervisor.tui.screens.fleet import FleetPane
from midwatch_supervisor.tui.screens.lists import AttentionPane, CheckpointsPane, NodesPane
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.screens.preview import PreviewView
from midwatch_supervisor.tui.state.attention import AttentionQueue
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.feed import FeedBatch
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.table import Table

_ATTENTION = "attention-tab"
_NODES = "nodes-tab"

Pane = FleetPane | CheckpointsPane | AttentionPane | OverviewPane | LearnedPane | NodesPane


@runtime_checkable
class BatchReceiver(Protocol):
    """A screen in front of the panes that receives new journal entries."""

    def receive(self, batch: FeedBatch) -> None:
        """Take in new entries; the board has them already."""
        ...


_BESIDE = 140
"""Minimum columns for a preview beside the list."""
_BELOW = 28
"""Minimum lines for one below the list."""


class Panes(Vertical):
    """The fleet, the checkpoints, the attention queue, the overview and the Learned tab.

    Nodes get a tab if there are any. A list of attempts has a preview of the selected one.
    """

    DEFAULT_CSS = """
    Panes { height: 1fr; }
    Panes > TabbedContent, Panes ContentSwitcher, Panes TabPane { height: 1fr; padding: 0; }
    Panes > PreviewView { display: none; height: 1fr; }
    Panes.below > PreviewView { display: block; max-height: 24; }
    Panes.beside { layout: horizontal; }
    Panes.beside > TabbedContent { width: 3fr; }
    Panes.beside > PreviewView {
        display: block; width: 2fr; height: 1fr; border-left: solid $primary;
    }
    Panes > PreviewView:focus { border-left: heavy $accent; }
    """

    @dataclass
    class Wanted(Message):
        row: Row

    def __init__(
        self,
        board: FleetBoard,
        queue: AttentionQueue,
        learned: LearnedPane,
        now: Callable[[], datetime],
        *,
        keys: Mapping[str, str],
        about: Sequence[str] = (),
        nothing: str = "",
    ) -> None:
        """Show a board; `keys` has the key of each action, `about` lines about what is watched.

        `nothing` is as for `FleetPane`.
        """
        super().__init__()
        self._board = board
        self._queue = queue
        self._tabs = TabbedContent(initial="fleet-tab", id="panes")
        self._waiting = -1
        self._several = False
        """Whether there are nodes, which then have a tab."""
        self.fleet = FleetPane(board, now, nothing)
        self.learned = learned
        self.preview = PreviewView(board, now, keys)
        self._previewed = True
        """Whether to show a preview if there is room for one."""
        self._attention = AttentionPane(queue, now, board)
        self._hosts = NodesPane(board, now)
        self._panes: dict[str, Pane] = {
            "fleet-tab": self.fleet,
            "checkpoints-tab": CheckpointsPane(board, now),
            _ATTENTION: self._attention,
            "overview-tab": OverviewPane(board, now, about),
            "learned-tab": learned,
            _NODES: self._hosts,
        }

    def compose(self) -> ComposeResult:
        with self._tabs:
            for tab, pane in self._panes.items():
                with TabPane(_tab_title(tab), id=tab):
                    yield pane
        yield self.preview

    @property
    def current(self) -> Pane:
        return self._panes.get(self._tabs.active, self.fleet)

    @property
    def table(self) -> Table[Any] | None:
        """The shown table, which can be filtered; not every pane has one."""
        pane = self.current.table if isinstance(self.current, LearnedPane) else self.current
        return pane if isinstance(pane, Table) else None

    def show(self, pane: str) -> None:
        """Show a pane by its id, and focus it."""
        self._tabs.active = pane.replace("-pane", "-tab")
        self.focus_lines()

    def focus_lines(self) -> None:
        pane = self.current
        if isinstance(pane, LearnedPane):
            pane.focus_lines()
        else:
            (pane if isinstance(pane, OverviewPane) else pane.list).focus()

    def show_version(self, id: int) -> None:
        """Show a version of the guidelines, with its changes."""
        # Select the part first, because focusing a line selects its tab.
        self._tabs.active = "learned-tab"
        self.learned.see_version(id)
        self.focus_lines()

    def on_mount(self) -> None:
        self._tabs.hide_tab(_NODES)
        self._show_progress()

    def _show_progress(self) -> None:
        """Say in empty panes that the journal is being read; the Learned tab does so itself."""
        for pane in self._panes.values():
            if isinstance(pane, Table):
                pane.wait_for(self._board.progress)

    def on_resize(self) -> None:
        self._arrange_preview()

    def _arrange_preview(self) -> None:
        place = self._preview_place if self._previewed and self._of_attempts else ""
        self.set_class(place == "beside", "beside")
        self.set_class(place == "below", "below")

    @property
    def _of_attempts(self) -> bool:
        return isinstance(self.current, FleetPane | CheckpointsPane | AttentionPane)

    @property
    def _preview_place(self) -> str:
        """Return where there is room for a preview; empty for nowhere."""
        size = self.screen.size
        if size.width >= _BESIDE:
            return "beside"
        return "below" if size.height >= _BELOW else ""

    def toggle_preview(self) -> str:
        """Show or hide the preview; return why there is none if there can be none."""
        if not self._of_attempts:
            return "only a list of attempts has a preview"
        if not self._preview_place:
            return f"no room: a preview needs {_BELOW} lines or {_BESIDE} columns; enter shows more"
        self._previewed = not self._previewed
        self._arrange_preview()
        self._show_preview()
        return ""

    def _show_preview(self) -> None:
        self.preview.show_row(self.current.chosen)

    @on(LineList.Moved)
    def _after_move(self) -> None:
        self._show_preview()

    @on(TabbedContent.TabActivated)
    def _after_look(self) -> None:
        self._arrange_preview()
        self.refresh_board()
        self.refresh_bindings()

    def refresh_board(self) -> None:
        """Show the board's current state in the shown pane."""
        self._show_progress()
        self.current.refresh_board()
        self._show_preview()
        waiting, several = self._queue.count, bool(self._board.node_list.nodes)
        if (waiting, several) != (self._waiting, self._several) and self._has_tabs:
            self._waiting, title = waiting, _tab_title(_ATTENTION)
            self._tabs.get_tab(_ATTENTION).label = f"{title} ({waiting})" if waiting else title
            if several and not self._several:
                self._several = True
                self._tabs.show_tab(_NODES)

    @property
    def _has_tabs(self) -> bool:
        """Whether the tabs exist: a batch may come before, or while they are removed."""
        return bool(self._tabs.query(f"#{ContentTab.add_prefix(_ATTENTION)}"))

    def fold(self) -> bool:
        """Fold or unfold at the cursor; return whether there is anything to fold."""
        pane = self.current
        return isinstance(pane, FleetPane | AttentionPane) and pane.fold()

    @on(LineList.Opened, "#nodes")
    def _opened_node(self, message: LineList.Opened) -> None:
        message.stop()
        if self._hosts.node is not None:
            self.show("fleet-tab")
            self.fleet.filter_by(self._hosts.node)

    @on(LineList.Opened, "#fleet, #checkpoints, #attention")
    def _open_line(self, message: LineList.Opened) -> None:
        message.stop()
        chosen = self.current.chosen
        item = self._attention.current if self.current is self._attention else None
        if chosen is not None:
            self.post_message(self.Wanted(chosen))
        elif self.fold():
            return
        elif item is not None and item.version is not None:
            self.show_version(item.version.id)
        elif item is not None:
            self.show(_NODES)


def _tab_title(tab: str) -> str:
    return "Needs you" if tab == _ATTENTION else tab.removesuffix("-tab").capitalize()
