"""Rows of the console's fleet and the lines of a whole one, as records make them."""

from typing import Any

from midwatch_monitor.records import Entry, Record
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.state.row_order import GroupHeading, Order
from midwatch_tests.factories import attempt, entry, task


def row(*records: Record, id: int = 1, name: str = "fix", **fields: Any) -> Row:
    """Attempt `id` of the task `fix` after records a second apart, with ids from 1.

    Other fields are those of the attempt.
    """
    state = AttemptState(attempt=attempt(id, task=id, **fields), detailed=False)
    made = Row(run=1, task=id, name=name, state=state)
    for number, record in enumerate(records, start=1):
        made.fold(entry(number, record, attempt=id, task=id))
    return made


class Fleet:
    """A board, and the lines that stand for its tasks and attempts."""

    def __init__(self, names: str = "", *, queued: str = "") -> None:
        """Begin with a task and an attempt for each letter of `names`, then with the `queued`."""
        self.board = FleetBoard()
        self.order = Order()
        self._entries = 0
        for name in names:
            self.add(name)
        for name in queued:
            self.queue(name)

    def queue(self, name: str, **fields: str) -> int:
        """A task that has no attempt yet; its id."""
        id = len(self.board.tasks) + 1
        self.board.meet_task(task(id, name, **{"spec": "", **fields}))
        return id

    def add(self, name: str, *records: Record, project: str = "", **fields: str) -> None:
        """An attempt of a task of its own, and what it says."""
        id = self.queue(name, project=project)
        self.board.meet_attempt(attempt(id, task=id, **fields))
        for record in records:
            self.say(name, record)

    def again(self, name: str) -> None:
        """Add a second attempt of a task."""
        of = self._id(name)
        self.board.meet_attempt(attempt(1_000 + of, task=of, number=2))

    def say(self, name: str, record: Record, **fields: Any) -> Entry:
        """Let the first attempt of a task, or what stands for it, say something."""
        self._entries += 1
        id = self._id(name)
        about = id if id in self.board.rows else None
        said = entry(self._entries, record, task=id, attempt=about, **fields)
        self.board.fold(said)
        return said

    def _id(self, name: str) -> int:
        return next(each.id for each in self.board.tasks.values() if each.name == name)

    @property
    def lines(self) -> list[str]:
        """What is shown now: headings, and the names of rows."""
        changed, gone = self.board.take_moved()
        self.order.move(changed, gone=gone)
        return [
            " ".join((line.title, *(text for _, text in line.details)))
            if isinstance(line, GroupHeading)
            else line.name
            for line in self.order.lines
        ]
