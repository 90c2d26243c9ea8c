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

_ATTENTION = "attention-tab"
_NODES = "nodes-tab"

Pane = FleetPane | CheckpointsPane | AttentionPane | OverviewPane | LearnedPane | NodesPane


@runtime_checkable
class BatchReceiver(Protocol):
    """A screen in front of the panes that wants to know what is new in the journal."""

    def receive(self, batch: Batch) -> None:
        """Take in what is new; the board has it already."""
        ...


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
        self._tabs = TabbedContent(initial="fleet-tab", id="panes")
        self._waiting = -1
        self._several = False
        """Whether there are machines to be told apart."""
        self.fleet = FleetPane(board, now)
        self.learned = learned
        self._attention = AttentionPane(queue, now)
        self._hosts = NodesPane(board, now)
        self._panes: dict[str, Pane] = {
            "fleet-tab": self.fleet,
            "checkpoints-tab": CheckpointsPane(board, now),
            _ATTENTION: self._attention,
            "overview-tab": OverviewPane(board, now),
            "learned-tab": learned,
            _NODES: self._hosts,
        }

    def compose(self) -> ComposeResult:
        with self._tabs:
            for tab, pane in self._panes.items():
                with TabPane(_title(tab), id=tab):
                    yield pane

    @property
    def current(self) -> Pane:
        """The pane that is seen."""
        return self._panes.get(self._tabs.active, self.fleet)

    def show(self, pane: str) -> None:
        """See another pane, by its id; the keys go to it."""
        self._tabs.active = pane.replace("-pane", "-tab")
        self.focus_lines()

    def focus_lines(self) -> None:
        """Let the keys go to the lines of the pane that is seen."""
        pane = self.current
        if isinstance(pane, LearnedPane):
            pane.focus_lines()
        else:
            (pane if isinstance(pane, OverviewPane) else pane.list).focus()

    def show_version(self, id: int) -> None:
        """See a version of the guidelines, and what it changes."""
        # A focused line turns to its own tab: the part is turned to before.
        self._tabs.active = "learned-tab"
        self.learned.see_version(id)
        self.focus_lines()

    def on_mount(self) -> None:
        self._tabs.hide_tab(_NODES)

    @on(TabbedContent.TabActivated)
    def _seen(self) -> None:
        self.refresh_board()

    def refresh_board(self) -> None:
        """Show the board as it is now, in what is seen of it."""
        self.current.refresh_board()
        # A batch may come before the tabs are there, or while they are taken down.
        if not self._tabs.query(f"#{ContentTab.add_prefix(_ATTENTION)}"):
            return
        waiting = len(self._queue.calling) + len(self._queue.proposals)
        if waiting != self._waiting:
            self._waiting = waiting
            title = _title(_ATTENTION)
            self._tabs.get_tab(_ATTENTION).label = f"{title} ({waiting})" if waiting else title
        if self._board.node_list.nodes and not self._several:
            self._several = True
            self._tabs.show_tab(_NODES)

    def fold(self) -> bool:
        """Fold or unfold what the cursor is on; answers whether there is anything to fold."""
        pane = self.current
        return isinstance(pane, FleetPane | AttentionPane) and pane.fold()

    @on(LineList.Opened, "#nodes")
    def _opened_node(self, message: LineList.Opened) -> None:
        message.stop()
        if self._hosts.node is not None:
            self.show("fleet-tab")
            self.fleet.filter_by(self._hosts.node)

    @on(LineList.Opened, "#fleet, #checkpoints, #attention")
    def _opened(self, message: LineList.Opened) -> None:
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


def _title(tab: str) -> str:
    return tab.removesuffix("-tab").capitalize()
