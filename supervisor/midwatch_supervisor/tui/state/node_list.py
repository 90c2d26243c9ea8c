"""The nodes of a fleet as last reported, and the tasks that wait for one. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Lifecycle, NodeState, NodeStatus, Task
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.waiting import Wait, fleet_nodes, nobody_has, wait_of
from midwatch_supervisor.tui.state.row import Row

_KEPT = timedelta(days=1)
"""How long a node that left is shown after its last beat."""


def node_word(status: NodeStatus) -> str:
    """Return a node's state in a word; `doubted` while only the broker reports it gone."""
    return "doubted" if status.doubted else status.state.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNode:
    """A lost node, as reported to people."""

    status: NodeStatus
    old: bool = False
    """Whether it was lost before the console was opened: nobody is called for that."""

    @property
    def key(self) -> tuple[str, str]:
        """Identifies this start of the node."""
        return self.status.name, self.status.boot


class NodeList:
    """The newest start of each node, without those that left long ago."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeStatus] = {}
        """By name, in the order of names."""
        self.losses: tuple[LostNode, ...] = ()
        self.read = False
        """Whether the nodes' states are known at all."""
        self.monitors: tuple[MonitorStatus, ...] | None = None
        """Monitors that hold leases, or held them last; `None` while unknown."""

    def take(self, statuses: Iterable[NodeStatus]) -> bool:
        """Take in the current states; return whether a node came, left or changed its state."""
        before = {name: (each.boot, each.state) for name, each in self.nodes.items()}
        self.nodes = _newest_by_name(statuses)
        known = {loss.key: loss.old for loss in self.losses}
        lost = (each for each in self.nodes.values() if each.state is NodeState.LOST)
        losses = (LostNode(status=each, old=not self.read) for each in lost)
        self.losses = tuple(replace(each, old=known.get(each.key, each.old)) for each in losses)
        self.read = True
        return before != {name: (each.boot, each.state) for name, each in self.nodes.items()}

    @property
    def at_work(self) -> tuple[NodeStatus, ...]:
        return tuple(each for each in self.nodes.values() if not each.state.gone)


def _newest_by_name(statuses: Iterable[NodeStatus]) -> dict[str, NodeStatus]:
    ordered = sorted(statuses, key=lambda each: (each.name, each.started_at))
    newest = {each.name: each for each in ordered}
    # The database's clock, as far as it is known here.
    now = max((each.beat_at for each in newest.values()), default=None)
    return {
        name: each
        for name, each in newest.items()
        if not each.state.gone or (now is not None and now - each.beat_at < _KEPT)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Tasks that no node of their fleet will take now: none has their labels."""

    fleet: str
    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def since(self) -> datetime | None:
        """When the first of them was submitted."""
        times = (row.state.last_at for row in self.rows)
        return min((at for at in times if at is not None), default=None)


class WaitingTasks:
    """The requirements of tasks that have not begun; each is read once, when first needed.

    There may be ten thousand.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], int] = {}
        """Tasks by run and name."""
        self._wanted: dict[int, tuple[TaskSpec, bool] | None] = {}
        """By task, with whether it is part of a split task, and so waits for no node."""

    def meet(self, task: Task) -> None:
        self._ids[task.run, task.name] = task.id

    def begin(self, task: int) -> None:
        self._wanted.pop(task, None)

    def wait(
        self, task: Task, states: Mapping[int, Lifecycle], nodes: Iterable[NodeStatus] | None
    ) -> Wait | None:
        """Return what a task waits for; `None` for an agent that Midwatch did not start.

        `states` are those of all tasks, by id; `nodes` are as for `wait_of`.
        """
        wanted = self._read_spec(task)
        if wanted is None:
            return None
        spec, part = wanted
        before = {name: self._ids.get((task.run, name), 0) for name in spec.depends_on}
        known = {name: states[id] for name, id in before.items() if id in states}
        return wait_of(spec, known, None if part else nodes)

    def find_unplaced(
        self, waiting: Iterable[tuple[Row, Task, str]], nodes: Collection[NodeStatus]
    ) -> tuple[Unplaced, ...]:
        """Return those of the tasks waiting for a node of a fleet that none will take, by labels.

        `nodes` are those of all fleets.
        """
        by_labels: dict[tuple[str, tuple[str, ...]], list[Row]] = defaultdict(list)
        for row, task, fleet in waiting:
            wanted = self._read_spec(task)
            if wanted is not None and wanted[0].labels and not wanted[1]:
                by_labels[fleet, tuple(sorted({*wanted[0].labels}))].append(row)
        return tuple(
            Unplaced(fleet=fleet, labels=labels, rows=tuple(rows))
            for (fleet, labels), rows in sorted(by_labels.items())
            if nobody_has(labels, fleet_nodes(fleet, nodes))
        )

    def _read_spec(self, task: Task) -> tuple[TaskSpec, bool] | None:
        if task.id not in self._wanted:
            found = assignment_of(task)
            self._wanted[task.id] = found and (found.task, bool(found.parent))
        return self._wanted[task.id]
