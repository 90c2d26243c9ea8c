"""Tables: the attention queue, the stream of checkpoints, and the nodes."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_supervisor.present.numbers import plan_text
from midwatch_supervisor.present.text_line import LOST_SIGN, blocker_words, one_line
from midwatch_supervisor.tui.operator_keys import RowChooser
from midwatch_supervisor.tui.screens.preview import COURSES, LOW
from midwatch_supervisor.tui.state.attention import AttentionQueue, QueueItem, collapse
from midwatch_supervisor.tui.state.board import FleetBoard, Report
from midwatch_supervisor.tui.state.node_list import node_word
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.palette import Cell, tone_ink
from midwatch_supervisor.tui.widgets.table import Column, Table, span, time_column

LATE = 30.0
"""Seconds without a heartbeat that are highlighted: a node sends one every second."""
_SIGNS: Mapping[NodeState, Cell] = {
    NodeState.LOST: (LOST_SIGN, "bad"),
    NodeState.UP: ("●", "good"),
    NodeState.DRAINING: ("◐", "warn"),
    NodeState.DOWN: ("⊘", "dim"),
}
"""Signs with their styles, in the order of the lines."""


class AttentionPane(Table[QueueItem], RowChooser):
    """The queue, most urgent first."""

    def __init__(
        self, queue: AttentionQueue, now: Callable[[], datetime], board: FleetBoard
    ) -> None:
        def age(item: QueueItem) -> Cell:
            if item.since is None:
                return "-", "dim"
            return span((now() - item.since).total_seconds()), "text"

        def run(item: QueueItem) -> Cell:
            return "-" if item.row is None else str(item.row.run), "dim"

        super().__init__(
            [
                Column("!", 1, 0, lambda item: (item.sign, tone_ink(item.tone))),
                Column("age", 4, 0, age),
                Column("needs", 8, 2, lambda item: (item.kind, "text")),
                Column("run", 3, 0, run, differs=lambda: board.several_runs),
                Column("task", 14, 0, lambda item: (item.name, "strong"), grow=1, middle=True),
                Column("what", 36, 1, lambda item: (item.what or "-", "text"), grow=6),
                Column("alerts", 16, 3, lambda item: (item.rules or "-", "dim"), grow=1),
            ],
            name="attention",
            hint="task, worker, need or rule",
            nothing="Nothing needs you.",
            text=lambda item: item.text.lower(),
            key=lambda item: item.key,
        )
        self._queue = queue
        self._unfolded: set[Hashable] = set()
        """Needs whose attempts are listed one by one."""

    @property
    def chosen(self) -> Row | None:
        """The cursor's attempt; lost nodes, labels, guidelines and combined needs have none."""
        return None if self.current is None else self.current.row

    @property
    def unchosen(self) -> str:
        """Why no attempt is selected, if the line stands for several."""
        if self.current is not None and self.current.equal:
            return f"{len(self.current.equal)} attempts share this line: unfold it first (enter)"
        return ""

    def refresh_board(self) -> None:
        """Show the queue's current state; a filter also searches folded lines."""
        items = [*self._queue.calling, *self._queue.proposals]
        before = self.current
        self.take(items if self.wanted else collapse(items, self._unfolded))
        folded = before is not None and all(each.key != before.key for each in self.items)
        if before is not None and before.need is not None and folded:
            self.see(before.need)

    def fold(self) -> bool:
        """Fold or unfold attempts with the cursor's need; return whether it has several."""
        need = None if self.current is None else self.current.need
        if need is None or all(each.key != need for each in self.items):
            return False
        self._unfolded ^= {need}
        self.refresh_board()
        return True


def report_text(report: Report) -> str:
    """Return the text that a filter searches, in lower case."""
    said = report.checkpoint
    words = (report.row.name, report.row.state.attempt.worker, said.decision)
    return " ".join((*words, *said.blockers, said.notes)).lower()


class CheckpointsPane(Table[Report], RowChooser):
    """Workers' reports; the cursor follows the end until a person selects a line."""

    def __init__(self, board: FleetBoard, now: Callable[[], datetime]) -> None:
        super().__init__(
            [
                time_column("time", 1, lambda each: each.at, now),
                Column("run", 3, 0, _run_cell, differs=lambda: board.several_runs),
                Column("attempt", 14, 0, _label_cell, grow=1, middle=True),
                Column("plan", 5, 6, _plan_cell),
                Column("prog", 4, 2, _progress_cell),
                Column("conf", 4, 0, _confidence_cell),
                Column("±", 4, 3, _change_cell),
                Column("decision", 8, 2, _decision_cell),
                Column("blockers", 12, 4, _blockers_cell, grow=2),
                Column("notes", 12, 5, _notes_cell, grow=4),
            ],
            name="checkpoints",
            hint="task, worker, decision, blocker or note",
            nothing="No checkpoints yet.",
            text=report_text,
            follow=True,
        )
        self._board = board

    @property
    def chosen(self) -> Row | None:
        return self.current.row if self.current else None

    def slip(self, glance: float) -> str:
        """Return why the cursor's line ignores action keys; empty once a person has selected it."""
        del glance
        return "" if self.list.picked else "select a line first: the cursor follows the newest"

    def close_filter(self) -> bool:
        """Clear the filter, or else follow the end again; return whether there was a filter."""
        was_open = super().close_filter()
        if not was_open:
            self.list.picked = False
            self.refresh_board()
        return was_open

    def refresh_board(self) -> None:
        self.take(tuple(self._board.reports))

    def _follows_end(self, *, changed: bool) -> bool:
        del changed
        return not self.list.picked


def _label_cell(report: Report) -> Cell:
    return one_line(report.row.label), "strong"


def _run_cell(report: Report) -> Cell:
    return str(report.row.run), "dim"


def _plan_cell(report: Report) -> Cell:
    return plan_text(report.planned), "text" if report.planned else "dim"


def _progress_cell(report: Report) -> Cell:
    return f"{report.checkpoint.progress_percent:>3}%", "text"


def _confidence_cell(report: Report) -> Cell:
    stated = report.checkpoint.confidence
    return f"{stated:>3}%", "warn" if stated < LOW else "text"


def _change_cell(report: Report) -> Cell:
    change = report.change
    if not change:
        return "   -" if change is None else "   =", "dim"
    return f"{change:>+4}", "warn" if change < 0 else "good"


def _decision_cell(report: Report) -> Cell:
    decision = report.checkpoint.decision
    return decision.value, COURSES.get(decision, "dim")


def _blockers_cell(report: Report) -> Cell:
    said = blocker_words(report.checkpoint.blockers)
    return (said, "warn") if said else ("-", "dim")


def _notes_cell(report: Report) -> Cell:
    return one_line(report.checkpoint.notes) or "-", "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node with the attempts it works on."""

    status: NodeStatus
    attempts: tuple[str, ...] = ()
    """Names of the unfinished attempts that it has, or had when last heard from."""

    @property
    def lives(self) -> bool:
        """Whether the node should be alive."""
        return not self.status.state.gone

    @property
    def has(self) -> str:
        """What it is working on, in words; of runs that are not shown, only the number."""
        others = max(0, self.status.busy - len(self.attempts)) if self.lives else 0
        more = f"{others} more" if self.attempts else f"{others} of other runs"
        return one_line(", ".join((*self.attempts, *([more] if others else ())))) or "-"

    @property
    def text(self) -> str:
        """The text that a filter searches."""
        words = (self.status.name, node_word(self.status), self.status.version)
        return " ".join((*words, *self.status.labels, *self.attempts))


def hosts(board: FleetBoard) -> list[Host]:
    """Return a board's nodes: lost ones first, then running ones, by name."""
    at_hand: dict[str, list[str]] = defaultdict(list)
    for row in board.rows.values():
        if row.movable and row.need not in (Need.OVER, Need.ANSWER):
            at_hand[row.state.node].append(row.label)
    found = [
        Host(status=status, attempts=tuple(at_hand[name]))
        for name, status in board.node_list.nodes.items()
    ]
    return sorted(found, key=lambda host: [*_SIGNS].index(host.status.state))


class NodesPane(Table[Host], RowChooser):
    """The nodes; opening a line shows the attempts that work, or worked, there."""

    def __init__(self, board: FleetBoard, now: Callable[[], datetime]) -> None:
        def beat(host: Host) -> Cell:
            seconds = (now() - host.status.beat_at).total_seconds()
            return span(seconds), "warn" if host.lives and seconds >= LATE else "dim"

        super().__init__(
            [
                Column("!", 1, 0, _sign_cell),
                Column("node", 14, 0, _name_cell, grow=1),
                Column("state", 8, 1, _state_cell),
                Column("slots", 7, 2, _slots_cell),
                Column("beat", 4, 3, beat),
                Column("labels", 10, 5, _labels_cell, grow=1),
                Column("version", 8, 6, lambda host: (one_line(host.status.version), "dim")),
                Column("attempts", 16, 4, _attempts_cell, grow=4),
            ],
            name="nodes",
            hint="node, state, label, version or attempt",
            nothing="No node has joined yet.",
            text=lambda host: host.text.lower(),
            key=lambda host: host.status.name,
        )
        self._board = board

    @property
    def node(self) -> str | None:
        return None if self.current is None else self.current.status.name

    def refresh_board(self) -> None:
        self.take(hosts(self._board))


def _sign_cell(host: Host) -> Cell:
    if node_word(host.status) == "doubted":
        return "?", "warn"
    return _SIGNS[host.status.state]


def _name_cell(host: Host) -> Cell:
    return one_line(host.status.name), "strong" if host.lives else "dim"


def _state_cell(host: Host) -> Cell:
    lost = host.status.state is NodeState.LOST
    return node_word(host.status), "bad" if lost else "text"


def _slots_cell(host: Host) -> Cell:
    used = str(host.status.busy) if host.lives else "-"
    return f"{used:>3}/{host.status.slots}", "text" if host.lives else "dim"


def _labels_cell(host: Host) -> Cell:
    return one_line(" ".join(host.status.labels)) or "-", "dim"


def _attempts_cell(host: Host) -> Cell:
    return host.has, "warn" if host.attempts and not host.lives else "text"
