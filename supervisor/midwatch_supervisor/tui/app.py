"""The console as a Textual app: it hears the journal, and turns each batch into what is shown."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Footer, TabbedContent, TabPane

from midwatch_supervisor.desk import Desk
from midwatch_supervisor.tui.board import Board
from midwatch_supervisor.tui.feed import Batch, Feed
from midwatch_supervisor.tui.fleet import FleetPane
from midwatch_supervisor.tui.keys import EVERYWHERE
from midwatch_supervisor.tui.roll import Roll
from midwatch_supervisor.tui.row import Row

Work = Callable[[], Awaitable[int]]
"""A run that is conducted in this process; answers its exit code."""


class Console(App[int]):
    """What an operator sees and does; answers the exit code of the run, if it ran here."""

    TITLE = "Midwatch"
    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in EVERYWHERE]

    @dataclass
    class Grew(Message):
        """The journal has grown."""

        batch: Batch

    @dataclass
    class Finished(Message):
        """The run of this process is over."""

        code: int

    def __init__(
        self,
        feed: Feed,
        desk: Desk,
        *,
        work: Work | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__()
        self.board = Board()
        self.desk = desk
        self.code: int | None = None
        """The exit code of the run of this process, once it is over."""
        self._feed = feed
        self._work = work
        self._now = now

    def compose(self) -> ComposeResult:
        """The panes, and the keys below."""
        with TabbedContent(id="panes"), TabPane("Fleet", id="fleet-tab"):
            yield FleetPane(self.board, self._now, id="fleet-pane")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to listen, and to work if there is work."""
        self._listen()
        if self._work is not None:
            self._conduct(self._work)
        # What only time changes: idle times, ages.
        self.set_interval(1.0, self.refresh_panes)

    @work(exclusive=True, group="feed")
    async def _listen(self) -> None:
        async for batch in self._feed.batches():
            self.post_message(self.Grew(batch))

    @work(exclusive=True, group="run")
    async def _conduct(self, work: Work) -> None:
        self.post_message(self.Finished(await work()))

    @on(Grew)
    def _grew(self, message: Grew) -> None:
        for task in message.batch.tasks:
            self.board.meet_task(task)
        for attempt in message.batch.attempts:
            self.board.meet_attempt(attempt)
        for entry in message.batch.entries:
            self.board.fold(entry)
        self.refresh_panes()

    @on(Finished)
    def _finished(self, message: Finished) -> None:
        self.code = message.code
        self.notify(f"the run is over (exit code {message.code}); q leaves")

    def refresh_panes(self) -> None:
        """Show the board as it is now."""
        for pane in self.query(FleetPane):
            pane.refresh_board()

    @on(Roll.Opened, "#fleet")
    def _open_row(self, message: Roll.Opened) -> None:
        pane = self.query_one(FleetPane)
        self.open_attempt(pane.rows[message.index])

    def open_attempt(self, row: Row) -> None:
        """Show one attempt."""

    async def action_leave(self) -> None:
        """Leave; the exit code is the run's."""
        self.exit(self.code or 0)
