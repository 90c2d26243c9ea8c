"""What tasks that have not begun ask for, and which of them no node will take. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.records import Lifecycle, NodeStatus, Task, TaskTransition
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.waiting import Wait, nobody_has, wait_of
from midwatch_supervisor.tui.state.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """Tasks that no node will take as the nodes stand: none has their labels."""

    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def since(self) -> datetime | None:
        """When the first of them was handed over."""
        return min(
            (row.state.last_at for row in self.rows if row.state.last_at is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    spec: TaskSpec
    part: bool
    """Whether it came of a split: it is done where the whole is, and waits for no node."""


class WaitingTasks:
    """Reads what a task asks for once, when it is first wanted: there may be ten thousand."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], int] = {}
        """Tasks by run and name."""
        self._wanted: dict[int, _Wanted | None] = {}

    def meet(self, task: Task) -> None:
        """Learn of a task."""
        self._ids[task.run, task.name] = task.id

    def begin(self, task: int) -> None:
        """It waits no more."""
        self._wanted.pop(task, None)

    def wait(
        self,
        task: Task,
        states: Mapping[int, TaskTransition],
        nodes: Iterable[NodeStatus] | None,
    ) -> Wait | None:
        """What a task waits for; `None` of an agent that came by itself.

        `states` are those of all tasks, by id; `nodes` as `wait_of` takes them.
        """
        wanted = self._read(task)
        if wanted is None:
            return None
        before = {name: self._ids.get((task.run, name), 0) for name in wanted.spec.depends_on}
        known: dict[str, Lifecycle] = {
            name: states[id].lifecycle for name, id in before.items() if id in states
        }
        return wait_of(wanted.spec, known, None if wanted.part else nodes)

    def unplaced(
        self, waiting: Iterable[tuple[Row, Task]], nodes: Collection[NodeStatus]
    ) -> tuple[Unplaced, ...]:
        """Of the tasks that wait for a node, those that none will take, by their labels."""
        by_labels: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row, task in waiting:
            wanted = self._read(task)
            if wanted is not None and wanted.spec.labels and not wanted.part:
                by_labels[tuple(sorted({*wanted.spec.labels}))].append(row)
        return tuple(
            Unplaced(labels=labels, rows=tuple(rows))
            for labels, rows in sorted(by_labels.items())
            if nobody_has(labels, nodes)
        )

    def _read(self, task: Task) -> _Wanted | None:
        if task.id not in self._wanted:
            made = assignment_of(task)
            self._wanted[task.id] = made and _Wanted(made.task, bool(made.parent))
        return self._wanted[task.id]
