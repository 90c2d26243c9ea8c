"""The panes of the first screen: one is seen, and only that one is kept up to date."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

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
from midwatch_supervisor.tui.state.attention import Queue
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.feed import Batch
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.line_list import LineList

_TITLES = {
    "fleet-pane": "Fleet",
    "checkpoints-pane": "Checkpoints",
    "attention-pane": "Attention",
    "overview-pane": "Overview",
    "learned-pane": "Learned",
    "nodes-pane": "Nodes",
}


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
class BatchReceiver(Protocol):
    """A screen in front of the panes that wants to know what is new in the journal."""

    def receive(self, batch: Batch) -> None:
        """Take in what is new; the board has it already."""
        ...


def tab(pane: str) -> str:
    """The id of the tab that a pane is on."""
    return pane.replace("-pane", "-tab")


class Panes(Vertical):
    """The fleet, the checkpoints, the attention queue, the overview, the learned, on tabs.

    The nodes have one as soon as there are any.
    """

    DEFAULT_CSS = """
    Panes { height: 1fr; }
    Panes > TabbedContent, Panes ContentSwitcher, Panes TabPane { height: 1fr; padding: 0; }
    """

    @dataclass
    class Wanted(Message):
        """An attempt is to be shown."""

        row: Row

    def __init__(
        self, board: Board, queue: Queue, learned: LearnedPane, now: Callable[[], datetime]
    ) -> None:
        super().__init__()
        self._board = board
        self._queue = queue
        self._tabs = TabbedContent(initial=tab("fleet-pane"), id="panes")
        self._waiting = -1
        self._several = False
        """Whether there are machines to be told apart."""
        self.fleet = FleetPane(board, now)
        self.learned = learned
        self._attention = AttentionPane(queue, now)
        self._overview = OverviewPane(board, now)
        self._hosts = NodesPane(board, now)
        self._panes: dict[
            str,
            FleetPane | CheckpointsPane | AttentionPane | OverviewPane | LearnedPane | NodesPane,
        ] = {
            "fleet-pane": self.fleet,
            "checkpoints-pane": CheckpointsPane(board, now),
            "attention-pane": self._attention,
            "overview-pane": self._overview,
            "learned-pane": learned,
            "nodes-pane": self._hosts,
        }

    def compose(self) -> ComposeResult:
        with self._tabs:
            for name, title in _TITLES.items():
                with TabPane(title, id=tab(name)):
                    yield self._panes[name]

    @property
    def current(self) -> Pane:
        """The pane that is seen."""
        return next(
            (pane for name, pane in self._panes.items() if tab(name) == self._tabs.active),
            self.fleet,
        )

    @property
    def chosen(self) -> Row | None:
        """The attempt or task that the cursor is on."""
        return self.current.chosen

    def show(self, name: str) -> None:
        """See another pane; the keys go to it."""
        self._tabs.active = tab(name)
        self.focus_lines()

    def focus_lines(self) -> None:
        """Let the keys go to the lines of the pane that is seen."""
        lines = self.query_one(f"#{self._tabs.active}", TabPane).query(LineList)
        if self.current is self.learned:
            self.learned.focus_lines()
        elif lines:
            lines.first().focus()
        else:
            self._overview.focus()

    def show_version(self, id: int) -> None:
        """See a version of the guidelines, and what it changes."""
        # A focused line turns to its own tab: the part is turned to before.
        self._tabs.active = tab("learned-pane")
        self.learned.see_version(id)
        self.focus_lines()

    def on_mount(self) -> None:
        self._tabs.hide_tab(tab("nodes-pane"))

    @on(TabbedContent.TabActivated)
    def _seen(self) -> None:
        self.refresh_board()

    def refresh_board(self) -> None:
        """Show the board as it is now, in what is seen of it."""
        self.current.refresh_board()
        waiting = len(self._queue.calling) + len(self._queue.proposals)
        # A batch may come before the tabs are there, or while they are taken down.
        there = self._tabs.query(f"#{ContentTab.add_prefix(tab('attention-pane'))}")
        if waiting != self._waiting and there:
            self._waiting = waiting
            title = _TITLES["attention-pane"]
            label = f"{title} ({waiting})" if waiting else title
            self._tabs.get_tab(tab("attention-pane")).label = label
        if there and self._board.node_list.nodes and not self._several:
            self._several = True
            self._tabs.show_tab(tab("nodes-pane"))

    @on(LineList.Opened, "#nodes")
    def _opened_node(self, message: LineList.Opened) -> None:
        message.stop()
        if self._hosts.node is not None:
            self.show("fleet-pane")
            self.fleet.filter_by(self._hosts.node)

    @on(LineList.Opened, "#fleet, #checkpoints, #attention")
    def _opened(self, message: LineList.Opened) -> None:
        message.stop()
        item = self._attention.current if self.current is self._attention else None
        if self.chosen is not None:
            self.post_message(self.Wanted(self.chosen))
        elif item is not None and item.version is not None:
            self.show_version(item.version.id)
        elif item is not None:
            self.show("nodes-pane")
