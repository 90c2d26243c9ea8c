"""Which tasks of a run can go on, folded from the journal. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from midwatch_monitor.records import (
    Action,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
    Record,
    Task,
    TaskTransition,
)
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.next_attempt import circular
from midwatch_tools.inbox import WAITS, ends_waiting

KINDS: tuple[type[Record], ...] = (TaskTransition, AttemptTransition, Intervention, Delivery)
"""The records that a docket is folded from."""

_BEFORE_OTHERS = frozenset({Action.RESTART, Action.SPLIT})


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """What an attempt waits for, and what has been said to it and did not arrive yet."""

    lifecycle: Lifecycle = Lifecycle.SUBMITTED
    held: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    open: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    delivered: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    parked_by: int = 0

    @property
    def waits(self) -> bool:
        """Whether it waits for a person who has not spoken yet."""
        return self.lifecycle is Lifecycle.INPUT_REQUIRED and not any(
            each.action.at_once or (id > self.parked_by and ends_waiting(each))
            for id, each in self.open.items()
        )

    def issue(self, id: int, issued: Intervention) -> None:
        (self.held if issued.needs_approval else self.open)[id] = issued

    def stamp(self, delivery: Delivery) -> Intervention | None:
        """Take in what became of an intervention; the intervention if it has arrived now."""
        id, held = delivery.intervention, self.held.pop(delivery.intervention, None)
        if delivery.state is DeliveryState.APPROVED:
            if held is not None:
                self.open[id] = held
            return None
        gone = self.open.pop(id, None)
        if gone is not None and gone.action in WAITS:
            self.parked_by = max(self.parked_by, id)
        return gone if delivery.state is DeliveryState.DELIVERED else None


@dataclass(slots=True, kw_only=True)
class _Item:
    """One task, and what it waits for."""

    task: Task
    assignment: Assignment
    over: bool = False
    after: set[str] = field(default_factory=set[str])
    """The tasks that a restart put before it."""
    attempts: dict[int, _Attempt] = field(default_factory=dict[int, _Attempt])

    @property
    def awaits(self) -> frozenset[str]:
        return frozenset((*self.after, *self.assignment.task.depends_on))


class ReadyTasks:
    """The tasks of one run. Takes its tasks, then its entries in order."""

    def __init__(self) -> None:
        self._items: dict[int, _Item] = {}
        self._strange: set[int] = set()

    def meet(self, tasks: Iterable[Task]) -> None:
        """Take in tasks of the run. What was not made by `submit` is never handed out."""
        for task in tasks:
            if task.spec == "{}":
                self._strange.add(task.id)
            elif task.id not in self._items:
                try:
                    assignment = Assignment.model_validate_json(task.spec)
                except ValidationError:
                    self._strange.add(task.id)  # a newer Midwatch wrote it
                else:
                    self._items[task.id] = _Item(task=task, assignment=assignment)

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's task has not been met yet."""
        return entry.task not in self._items and entry.task not in self._strange

    def take(self, entry: Entry) -> None:
        """Take in the next entry."""
        item = self._items.get(entry.task)
        if item is None:
            return
        record = entry.record
        if isinstance(record, TaskTransition):
            item.over = record.lifecycle.over
        elif entry.attempt is not None:
            attempt = item.attempts.setdefault(entry.attempt, _Attempt())
            if isinstance(record, AttemptTransition):
                attempt.lifecycle = record.lifecycle
            elif isinstance(record, Intervention):
                attempt.issue(entry.id, record)
            elif isinstance(record, Delivery):
                self._arrived(item, attempt.stamp(record))

    def _arrived(self, item: _Item, issued: Intervention | None) -> None:
        if issued is not None and issued.action in _BEFORE_OTHERS and issued.terms.after:
            item.after.add(issued.terms.after)

    def knows(self, task: int) -> bool:
        """Whether the task is one that may be handed out."""
        return task in self._items

    def name(self, task: int) -> str:
        """What people call a task."""
        return self._items[task].task.name

    def over(self, task: int) -> bool:
        """Whether a task is over."""
        return self._items[task].over

    @property
    def waiting(self) -> dict[str, frozenset[str]]:
        """Who waits for whom, by name, of the tasks that are not over."""
        return {
            item.assignment.task.id: item.awaits for item in self._items.values() if not item.over
        }

    def live(self, task: int) -> int | None:
        """The attempt that is under way at a task or one of its parts, if there is one."""
        attempts = [
            id
            for item in self._with_parts(task)
            for id, attempt in item.attempts.items()
            if not attempt.lifecycle.over
        ]
        return max(attempts, default=None)

    def concerns(self, task: int) -> set[int]:
        """The tasks that its turn has to know: itself, its parts, and what it builds upon."""
        mine = self._with_parts(task)
        names = {name for item in mine for name in item.awaits}
        below = [each for each in self._items.values() if each.assignment.task.id in names]
        return {item.task.id for item in mine} | {each.task.id for each in below if each.over}

    def labels(self, task: int) -> tuple[str, ...]:
        """What a node must offer to be given the task."""
        return tuple(sorted(set(self._items[task].assignment.task.labels)))

    def ready(self) -> list[int]:
        """The tasks that can go on now, if nobody is at work on them, in their order."""
        waiting = self.waiting
        return [
            item.task.id
            for item in self._items.values()
            # What came of a split is done where the split is.
            if not (item.over or item.assignment.parent)
            and not any(self._holds_up(item, name, waiting) for name in item.awaits)
            and not any(
                attempt.waits
                for each in self._with_parts(item.task.id)
                for attempt in each.attempts.values()
            )
        ]

    def _holds_up(self, item: _Item, name: str, waiting: dict[str, frozenset[str]]) -> bool:
        if name not in waiting:
            return False
        task = item.assignment.task
        # A restart may put a task behind one that waits for it; what an owner wrote is no circle.
        return name in task.depends_on or not circular(waiting, task.id, name)

    def _with_parts(self, task: int) -> list[_Item]:
        whole = self._items.get(task)
        if whole is None:
            return []
        name = whole.assignment.task.id
        return [whole, *(each for each in self._items.values() if each.assignment.parent == name)]
