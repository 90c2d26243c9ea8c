"""The nodes of the fleet as a table: what each does, and what it has in hand."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.node_list import standing
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.filtered import Filtered, holds
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import LOST_SIGN, Palette

LATE = 30.0
"""Seconds without a beat that are shown as too many: it beats once a second."""
_SIGNS: Mapping[NodeState, str] = {
    NodeState.UP: "●",
    NodeState.DRAINING: "◐",
    NodeState.DOWN: "⊘",
    NodeState.LOST: LOST_SIGN,
}
_ORDER = (NodeState.LOST, NodeState.UP, NodeState.DRAINING, NodeState.DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node with what it has in hand."""

    status: NodeStatus
    attempts: tuple[str, ...] = ()
    """What people call those that it has, or had when it was last heard, and that are not over."""

    @property
    def name(self) -> str:
        """The node's name."""
        return one_line(self.status.name)

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
        if row.moves and row.need not in (Need.OVER, Need.ANSWER):
            at_hand[row.node].append(f"{row.name}#{row.number}")
    found = [
        Host(status=status, attempts=tuple(at_hand[name]))
        for name, status in board.muster.nodes.items()
    ]
    return sorted(found, key=lambda host: _ORDER.index(host.status.state))


def columns(now: Callable[[], datetime]) -> list[Column[Host]]:
    """The columns of the nodes."""
    return [
        Column(title="!", width=1, rank=0, draw=_sign),
        Column(title="node", width=14, rank=0, grow=1, draw=_name),
        Column(title="state", width=8, rank=1, draw=_state),
        Column(title="slots", width=7, rank=2, draw=_slots),
        Column(title="beat", width=4, rank=3, draw=_beat(now)),
        Column(title="labels", width=10, rank=5, grow=1, draw=_labels),
        Column(title="version", width=8, rank=6, draw=_version),
        Column(title="attempts", width=16, rank=4, grow=4, draw=_attempts),
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
    return host.name, colours.strong if host.lives else colours.dim


def _state(host: Host, colours: Palette) -> Cell:
    return host.standing, colours.bad if host.status.state is NodeState.LOST else colours.text


def _slots(host: Host, colours: Palette) -> Cell:
    used = str(host.status.busy) if host.lives else "-"
    return f"{used:>3}/{host.status.slots}", colours.text if host.lives else colours.dim


def _beat(now: Callable[[], datetime]) -> Callable[[Host, Palette], Cell]:
    def beat(host: Host, colours: Palette) -> Cell:
        seconds = (now() - host.status.beat_at).total_seconds()
        late = host.lives and seconds >= LATE
        return span(seconds), colours.warn if late else colours.dim

    return beat


def _labels(host: Host, colours: Palette) -> Cell:
    return one_line(" ".join(host.status.labels)) or "-", colours.dim


def _version(host: Host, colours: Palette) -> Cell:
    return one_line(host.status.version), colours.dim


def _attempts(host: Host, colours: Palette) -> Cell:
    return host.has, colours.warn if host.attempts and not host.lives else colours.text


def text(host: Host) -> str:
    """What a filter looks at."""
    status = host.status
    parts: Sequence[str] = (status.name, host.standing, status.version, *status.labels)
    return " ".join((*parts, *host.attempts))


class NodesPane(Filtered[Host]):
    """The nodes as a table; a line opens the attempts that are, or were, at work there."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        super().__init__(
            columns(now),
            name="nodes",
            hint="node, state, label, version or attempt",
            nothing="No node has been here yet, or none that the filter lets through.",
        )
        self._board = board

    @property
    def chosen(self) -> Row | None:
        """No line is an attempt."""
        return None

    @property
    def node(self) -> str | None:
        """The name of the node of the cursor."""
        return None if self.current is None else self.current.status.name

    def refresh_board(self) -> None:
        """Show the nodes as they are now; the cursor stays on its node."""
        before = self.node
        self.lines = [host for host in hosts(self._board) if holds(text(host), self.wanted)]
        cursor = (n for n, host in enumerate(self.lines) if host.status.name == before)
        self.show(next(cursor, None))
