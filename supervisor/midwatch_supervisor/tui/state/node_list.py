"""The nodes of a fleet as the journal last told of them. Pure; nothing is drawn here."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import NodeState, NodeStatus

_KEPT = timedelta(days=1)
"""How long a node that left is shown, counted from its last beat."""
_AT_WORK = frozenset({NodeState.UP, NodeState.DRAINING})


def standing(status: NodeStatus) -> str:
    """What a node is doing, in a word; `doubted` while only the broker says that it is gone."""
    doubted = status.doubted_at is not None and status.doubted_at >= status.beat_at
    return "doubted" if doubted and status.state in _AT_WORK else status.state.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNode:
    """A node that is lost, as a person is told of it."""

    status: NodeStatus
    old: bool = False
    """Whether it was lost before the console looked: nobody is called for that."""

    @property
    def key(self) -> tuple[str, str]:
        """Which start of which node."""
        return self.status.name, self.status.boot


class NodeList:
    """Of each node its newest start; those that left long ago are left out."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeStatus] = {}
        """By name, in the order of the names."""
        self.losses: tuple[LostNode, ...] = ()
        self.read = False
        """Whether it is known at all how the nodes stand."""
        self.monitors: tuple[MonitorStatus, ...] | None = None
        """Those that hold something, or held it last; `None` while nobody has told."""

    def take(self, statuses: Iterable[NodeStatus]) -> bool:
        """Learn how all nodes stand now; answers whether one came, left or changed its state."""
        before = {name: (each.boot, each.state) for name, each in self.nodes.items()}
        self.nodes = _newest(statuses)
        self._lose()
        self.read = True
        return before != {name: (each.boot, each.state) for name, each in self.nodes.items()}

    def _lose(self) -> None:
        known = {loss.key: loss for loss in self.losses}
        lost = [each for each in self.nodes.values() if each.state is NodeState.LOST]
        fresh = [LostNode(status=each, old=not self.read) for each in lost]
        self.losses = tuple(
            replace(known[loss.key], status=loss.status) if loss.key in known else loss
            for loss in fresh
        )

    def gone(self, name: str) -> bool:
        """Whether what was at work on a node is at work no more, as far as is known."""
        status = self.nodes.get(name)
        return status is not None and status.state not in _AT_WORK

    @property
    def at_work(self) -> tuple[NodeStatus, ...]:
        """The nodes that are there."""
        return tuple(each for each in self.nodes.values() if each.state in _AT_WORK)


def _newest(statuses: Iterable[NodeStatus]) -> dict[str, NodeStatus]:
    newest: dict[str, NodeStatus] = {}
    for status in sorted(statuses, key=lambda each: (each.name, each.started_at)):
        newest[status.name] = status
    # The clock of the journal's database, as far as it is seen here.
    now = max((each.beat_at for each in newest.values()), default=None)
    return {
        name: each
        for name, each in newest.items()
        if each.state in _AT_WORK or (now is not None and now - each.beat_at < _KEPT)
    }
