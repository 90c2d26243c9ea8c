"""Finds the tasks of a run that can continue, by folding the journal. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from midwatch_monitor.records import Action, Entry, Task
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.next_attempt import circular

_BEFORE_OTHERS = frozenset({Action.RESTART, Action.SPLIT})


@dataclass(slots=True, kw_only=True)
class _Item:
    state: TaskState
    assignment: Assignment

    @property
    def awaits(self) -> frozenset[str]:
        """Tasks that it depends on, and those that a restart or a split put before it."""
        after = {
            each.intervention.terms.after
            for attempt in self.state.attempts.values()
            for each in attempt.interventions.delivered
            if each.action in _BEFORE_OTHERS
        }
        return frozenset((*(after - {""}), *self.assignment.task.depends_on))


class ReadyTasks:
    """The tasks of one run. Takes its tasks first, then its entries in order."""

    def __init__(self) -> None:
        self._run = RunState()
        self._items: dict[int, _Item] = {}
        self._strange: set[int] = set()

    def meet(self, tasks: Iterable[Task]) -> None:
        """Add tasks of the run. Those that `submit` did not store are never handed out."""
        for task in tasks:
            if task.embedded:
                self._strange.add(task.id)
            elif task.id not in self._items:
                try:
                    assignment = Assignment.model_validate_json(task.spec)
                except ValidationError:
                    self._strange.add(task.id)  # a newer Midwatch wrote it
                else:
                    state = self._run.meet_task(task)
                    self._items[task.id] = _Item(state=state, assignment=assignment)

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's task has not been added yet."""
        return entry.task not in self._items and entry.task not in self._strange

    def take(self, entry: Entry) -> None:
        """Fold the next entry."""
        if entry.task in self._items:
            self._run.fold(entry)

    def knows(self, task: int) -> bool:
        """Whether the task may be handed out."""
        return task in self._items

    def name(self, task: int) -> str:
        return self._items[task].state.task.name

    def over(self, task: int) -> bool:
        return self._items[task].state.over

    @property
    def waiting(self) -> dict[str, frozenset[str]]:
        """Names of the tasks that each unfinished task waits for, by name."""
        return {
            item.assignment.task.id: item.awaits
            for item in self._items.values()
            if not item.state.over
        }

    def live(self, task: int) -> int | None:
        """Return the running attempt of a task or of one of its parts, or `None`."""
        attempts = [
            id
            for item in self._with_parts(task)
            for id, attempt in item.state.attempts.items()
            if not attempt.over
        ]
        return max(attempts, default=None)

    def concerns(self, task: int) -> set[int]:
        """Return the tasks that its turn needs: itself, its parts, and finished dependencies."""
        mine = self._with_parts(task)
        names = {name for item in mine for name in item.awaits}
        below = [each for each in self._items.values() if each.assignment.task.id in names]
        return {item.state.task.id for item in mine} | {
            each.state.task.id for each in below if each.state.over
        }

    def labels(self, task: int) -> tuple[str, ...]:
        """Return the labels that a node must have to get the task."""
        return tuple(sorted(set(self._items[task].assignment.task.labels)))

    def ready(self) -> list[int]:
        """Return the tasks that can continue if nobody works on them, in order."""
        waiting = self.waiting
        return [
            item.state.task.id
            for item in self._items.values()
            # Parts run in the turn of the task that was split.
            if not (item.state.over or item.assignment.parent)
            and not any(self._holds_up(item, name, waiting) for name in item.awaits)
            and not any(
                attempt.parked and not attempt.goes_on
                for each in self._with_parts(item.state.task.id)
                for attempt in each.state.attempts.values()
            )
        ]

    def _holds_up(self, item: _Item, name: str, waiting: dict[str, frozenset[str]]) -> bool:
        if name not in waiting:
            return False
        task = item.assignment.task
        # A restart may put a task behind one that waits for it; a task file has no such cycles.
        return name in task.depends_on or not circular(waiting, task.id, name)

    def _with_parts(self, task: int) -> list[_Item]:
        whole = self._items.get(task)
        if whole is None:
            return []
        name = whole.assignment.task.id
        return [whole, *(each for each in self._items.values() if each.assignment.parent == name)]
