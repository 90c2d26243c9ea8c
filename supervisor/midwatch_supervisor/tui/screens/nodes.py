"""The nodes of the fleet as a table: what each does, and what it has in hand."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.signs import LOST_SIGN
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.node_list import standing
from midwatch_supervisor.tui.state.row import Need
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette
from midwatch_supervisor.tui.widgets.table import Column, Table, span

LATE = 30.0
"""Seconds without a beat that are shown as too many: it beats once a second."""
_SIGNS: Mapping[NodeState, str] = {
    NodeState.LOST: LOST_SIGN,
    NodeState.UP: "●",
    NodeState.DRAINING: "◐",
    NodeState.DOWN: "⊘",
}
"""In the order of the lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node with what it has in hand."""

    status: NodeStatus
    attempts: tuple[str, ...] = ()
    """What people call those that it has, or had when it was last heard, and that are not over."""

    @property
    def standing(self) -> str:
        """What it does, in a word."""
        return standing(self.status)

    @property
    def lives(self) -> bool:
        """Whether it is to be heard."""
        return self.status.state in (NodeState.UP, NodeState.DRAINING)

    @property
    def has(self) -> str:
        """What it has in hand, in words: the console may follow one run of several."""
        others = max(0, self.status.busy - len(self.attempts)) if self.lives else 0
        more = f"{others} more" if self.attempts else f"{others} of other runs"
        return one_line(", ".join((*self.attempts, *([more] if others else ())))) or "-"


def hosts(board: Board) -> list[Host]:
    """The nodes of a board: what is lost first, then what is up, by name."""
    at_hand: dict[str, list[str]] = defaultdict(list)
    for row in board.rows.values():
        if row.movable and row.need not in (Need.OVER, Need.ANSWER):
            at_hand[row.state.node].append(f"{row.name}#{row.number}")
    found = [
        Host(status=status, attempts=tuple(at_hand[name]))
        for name, status in board.node_list.nodes.items()
    ]
    return sorted(found, key=lambda host: [*_SIGNS].index(host.status.state))


def columns(now: Callable[[], datetime]) -> list[Column[Host]]:
    """The columns of the nodes."""

    def beat(host: Host, colours: Palette) -> Cell:
        seconds = (now() - host.status.beat_at).total_seconds()
        late = host.lives and seconds >= LATE
        return span(seconds), colours.warn if late else colours.dim

    return [
        Column("!", 1, 0, _sign),
        Column("node", 14, 0, _name, grow=1),
        Column("state", 8, 1, _state),
        Column("slots", 7, 2, _slots),
        Column("beat", 4, 3, beat),
        Column("labels", 10, 5, _labels, grow=1),
        Column("version", 8, 6, lambda host, c: (one_line(host.status.version), c.dim)),
        Column("attempts", 16, 4, _attempts, grow=4),
    ]


def _sign(host: Host, colours: Palette) -> Cell:
    if host.standing == "doubted":
        return "?", colours.warn
    style = {
        NodeState.UP: colours.good,
        NodeState.DRAINING: colours.warn,
        NodeState.DOWN: colours.dim,
        NodeState.LOST: colours.bad,
    }[host.status.state]
    return _SIGNS[host.status.state], style


def _name(host: Host, colours: Palette) -> Cell:
    return one_line(host.status.name), colours.strong if host.lives else colours.dim


def _state(host: Host, colours: Palette) -> Cell:
    return host.standing, colours.bad if host.status.state is NodeState.LOST else colours.text


def _slots(host: Host, colours: Palette) -> Cell:
    used = str(host.status.busy) if host.lives else "-"
    return f"{used:>3}/{host.status.slots}", colours.text if host.lives else colours.dim


def _labels(host: Host, colours: Palette) -> Cell:
    return one_line(" ".join(host.status.labels)) or "-", colours.dim


def _attempts(host: Host, colours: Palette) -> Cell:
    return host.has, colours.warn if host.attempts and not host.lives else colours.text


def _text(host: Host) -> str:
    status = host.status
    parts: Sequence[str] = (status.name, host.standing, status.version, *status.labels)
    return " ".join((*parts, *host.attempts))


class NodesPane(Table[Host]):
    """The nodes as a table; a line opens the attempts that are, or were, at work there."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        super().__init__(
            columns(now),
            name="nodes",
            hint="node, state, label, version or attempt",
            nothing="No node has been here yet, or none that the filter lets through.",
            text=_text,
            key=lambda host: host.status.name,
        )
        self._board = board

    @property
    def chosen(self) -> None:
        """No line is an attempt."""
        return

    @property
    def node(self) -> str | None:
        """The name of the node of the cursor."""
        return None if self.current is None else self.current.status.name

    def refresh_board(self) -> None:
        """Show the nodes as they are now."""
        self.take(hosts(self._board))
