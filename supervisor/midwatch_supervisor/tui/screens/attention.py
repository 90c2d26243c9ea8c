"""The queue of what waits for a person, as a table."""

from collections.abc import Callable
from datetime import datetime

from midwatch_supervisor.tui.state.attention import Queue, QueueItem
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette, tone_style
from midwatch_supervisor.tui.widgets.table import Column, Table, span


class AttentionPane(Table[QueueItem]):
    """The queue, the most urgent first."""

    def __init__(self, queue: Queue, now: Callable[[], datetime]) -> None:
        def age(item: QueueItem, colours: Palette) -> Cell:
            if item.since is None:
                return "-", colours.dim
            return span((now() - item.since).total_seconds()), colours.text

        super().__init__(
            [
                Column("!", 1, 0, lambda item, c: (item.sign, tone_style(item.tone, c))),
                Column("age", 4, 0, age),
                Column("needs", 8, 2, lambda item, c: (item.kind, c.text)),
                Column("task", 14, 0, lambda item, c: (item.name, c.strong), grow=1),
                Column("what", 36, 1, lambda item, c: (item.what or "-", c.text), grow=6),
                Column("alerts", 16, 3, lambda item, c: (item.rules or "-", c.dim), grow=1),
            ],
            name="attention",
            hint="task, worker, what it needs, or rule",
            nothing="Nothing waits for a person, or nothing that the filter lets through.",
            text=lambda item: item.text,
            key=lambda item: item.key,
        )
        self._queue = queue

    @property
    def chosen(self) -> Row | None:
        """The attempt of the cursor."""
        return None if self.current is None else self.current.row

    def refresh_board(self) -> None:
        """Show the queue as it is now."""
        self.take((*self._queue.calling, *self._queue.proposals))
