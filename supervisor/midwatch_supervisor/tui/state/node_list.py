"""The nodes of a fleet as the journal last told of them, and the tasks that wait for one. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Lifecycle, NodeState, NodeStatus, Task
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.waiting import Wait, nobody_has, wait_of
from midwatch_supervisor.tui.state.row import Row

_KEPT = timedelta(days=1)
"""How long a node that left is shown, counted from its last beat."""


def node_word(status: NodeStatus) -> str:
    """What a node is doing, in a word; `doubted` while only the broker says that it is gone."""
    return "doubted" if status.doubted else status.state.value


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
        known = {loss.key: loss.old for loss in self.losses}
        lost = (each for each in self.nodes.values() if each.state is NodeState.LOST)
        losses = (LostNode(status=each, old=not self.read) for each in lost)
        self.losses = tuple(replace(each, old=known.get(each.key, each.old)) for each in losses)
        self.read = True
        return before != {name: (each.boot, each.state) for name, each in self.nodes.items()}

    @property
    def at_work(self) -> tuple[NodeStatus, ...]:
        return tuple(each for each in self.nodes.values() if not each.state.gone)


def _newest(statuses: Iterable[NodeStatus]) -> dict[str, NodeStatus]:
    ordered = sorted(statuses, key=lambda each: (each.name, each.started_at))
    newest = {each.name: each for each in ordered}
    # The clock of the journal's database, as far as it is seen here.
    now = max((each.beat_at for each in newest.values()), default=None)
    return {
        name: each
        for name, each in newest.items()
        if not each.state.gone or (now is not None and now - each.beat_at < _KEPT)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Tasks that no node will take as the nodes stand: none has their labels."""

    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def since(self) -> datetime | None:
        """When the first of them was handed over."""
        times = (row.state.last_at for row in self.rows)
        return min((at for at in times if at is not None), default=None)


class WaitingTasks:
    """What tasks that have not begun ask for; each is read once, when it is first wanted.

    There may be ten thousand.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], int] = {}
        """Tasks by run and name."""
        self._wanted: dict[int, tuple[TaskSpec, bool] | None] = {}
        """By task; with whether it is a part of a split one, which waits for no node."""

    def meet(self, task: Task) -> None:
        self._ids[task.run, task.name] = task.id

    def begin(self, task: int) -> None:
        self._wanted.pop(task, None)

    def wait(
        self, task: Task, states: Mapping[int, Lifecycle], nodes: Iterable[NodeStatus] | None
    ) -> Wait | None:
        """What a task waits for; `None` of an agent that came by itself.

        `states` are those of all tasks, by id; `nodes` as `wait_of` takes them.
        """
        wanted = self._read(task)
        if wanted is None:
            return None
        spec, part = wanted
        before = {name: self._ids.get((task.run, name), 0) for name in spec.depends_on}
        known = {name: states[id] for name, id in before.items() if id in states}
        return wait_of(spec, known, None if part else nodes)

    def find_unplaced(
        self, waiting: Iterable[tuple[Row, Task]], nodes: Collection[NodeStatus]
    ) -> tuple[Unplaced, ...]:
        """Of the tasks that wait for a node, those that none will take, by their labels."""
        by_labels: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row, task in waiting:
            wanted = self._read(task)
            if wanted is not None and wanted[0].labels and not wanted[1]:
                by_labels[tuple(sorted({*wanted[0].labels}))].append(row)
        return tuple(
            Unplaced(labels=labels, rows=tuple(rows))
            for labels, rows in sorted(by_labels.items())
            if nobody_has(labels, nodes)
        )

    def _read(self, task: Task) -> tuple[TaskSpec, bool] | None:
        if task.id not in self._wanted:
            found = assignment_of(task)
            self._wanted[task.id] = found and (found.task, bool(found.parent))
        return self._wanted[task.id]
