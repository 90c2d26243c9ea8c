"""One attempt as a line of the fleet, and the lines in their order. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from midwatch_monitor.records import Attempt, Health, Lifecycle
from midwatch_monitor.state.attempt import AttemptState


class Need(IntEnum):
    """How much a line needs a person, the most first."""

    ANSWER = 0
    """It waits for an answer."""
    APPROVAL = 1
    """A decision waits for approval."""
    STUCK = 2
    SUSPECT = 3
    WORKING = 4
    QUEUED = 5
    OVER = 6


_NEEDS = {
    Health.STUCK: Need.STUCK,
    Health.SUSPECT: Need.SUSPECT,
    Health.UNKNOWN: Need.SUSPECT,
}
_NOBODY = Attempt(
    id=0,
    task=0,
    number=0,
    worker="",
    model="",
    node="",
    workspace="",
    started_at=datetime(1970, 1, 1, tzinfo=UTC),
)
"""Stands for the attempt of a task that has none yet."""


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """What the fleet table shows of one attempt, or of a task that has none yet.

    A row is only equal to itself: it changes, and it stands in sets.
    """

    run: int
    task: int
    name: str
    title: str = ""
    state: AttemptState
    movable: bool = False
    """Whether another node continues it when its own is gone."""
    adrift: bool = False
    """Whether its node is gone and no other continues it yet."""

    @classmethod
    def queued(cls, run: int, task: int, name: str, title: str = "") -> "Row":
        """The row of a task without an attempt."""
        state = AttemptState(attempt=_NOBODY, detailed=False)
        return cls(run=run, task=task, name=name, title=title, state=state)

    @property
    def attempt(self) -> int | None:
        """The attempt's journal id; `None` before there is one."""
        return self.state.id or None

    @property
    def number(self) -> int:
        """Which attempt of its task it is, from 1; 0 before there is one."""
        return self.state.attempt.number

    @property
    def label(self) -> str:
        """What people call the attempt: `fix#2`."""
        return f"{self.name}#{self.number}" if self.number else self.name

    @property
    def lifecycle(self) -> Lifecycle:
        """Of the attempt, or of the task that has none yet."""
        return self.state.lifecycle

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state.over

    @property
    def rejected(self) -> bool:
        """Whether it completed, and its result was not accepted."""
        verdict = self.state.verdict
        done = self.lifecycle is Lifecycle.COMPLETED
        return done and verdict is not None and not verdict.accepted

    @property
    def status(self) -> str:
        """Where it stands, in a word."""
        if self.attempt is None and self.lifecycle is Lifecycle.SUBMITTED:
            return "queued"
        return "not accepted" if self.rejected else self.state.status.value

    @property
    def rules(self) -> str:
        """The rules that fire, or fired when it ended."""
        return ", ".join(dict.fromkeys(alert.key.rule for alert in self.state.unresolved))

    @property
    def health(self) -> Health:
        """How it fares; nobody knows where its node is gone."""
        return Health.UNKNOWN if self.adrift else self.state.health

    @property
    def need(self) -> Need:
        """How much it needs a person."""
        state = self.state
        if state.over:
            return Need.OVER
        held = state.interventions.held
        # Who was asked nothing is parked for what waits for approval.
        if state.parked and not state.goes_on and (state.waits or not held):
            return Need.ANSWER
        if held:
            return Need.APPROVAL
        if state.lifecycle is Lifecycle.SUBMITTED:
            return Need.QUEUED
        return _NEEDS.get(self.health, Need.WORKING)

    @property
    def called(self) -> bool:
        """Whether a person is called for it: not for alerts that were acknowledged."""
        if self.need is not Need.STUCK:
            return self.need < Need.STUCK
        return not {alert.key for alert in self.state.firing} <= self.state.acknowledged

    @property
    def used(self) -> float | None:
        """The largest share of a limited resource that is used; `None` without limits."""
        budget = self.state.budget
        meters = (budget.requests, budget.tokens, budget.cost_usd, budget.minutes)
        return max((each.used / each.limit for each in meters if each.limit), default=None)


Group = Callable[[Row], str]
"""The name of the group that a row stands in."""


def by_task(row: Row) -> str:
    """The group of a row by its task."""
    return row.name


def by_node(row: Row) -> str:
    """The group of a row by its node."""
    return row.state.node


_Key = tuple[str, int, str, int, int]

_FEW = 16
"""Above this many and one in 20, sorting lines is cheaper than moving them one by one."""


class Order:
    """Rows by group, then by need of a person, then by name, the newest attempt first.

    The order within one need does not depend on time, so that lines do not jump. It is kept from
    change to change: a row that moves costs a search and a shift, and the others are not looked at.
    """

    def __init__(self) -> None:
        self._group: Group | None = None
        self._words: tuple[str, ...] = ()
        self._all: list[Row] = []
        self._keys: list[_Key] = []
        """Those of `_all`, in the same places."""
        self._key_of: dict[Row, _Key] = {}
        self._texts: dict[Row, str] = {}
        """What the filter looks at; made before, so that no key has to wait for it."""
        self.rows: list[Row] = []
        """What is shown: the rows that hold every word of the filter."""

    def group(self, group: Group | None) -> None:
        """Group the rows by something else, or by nothing."""
        self._group = group
        self._key_of = {row: self._key(row) for row in self._all}
        self._sort()
        self._sift()

    def filter(self, wanted: str) -> None:
        """Show the rows that hold every word, in any case and order."""
        words = tuple(wanted.lower().split())
        if words != self._words:
            self._words = words
            self._sift()

    def move(self, changed: Collection[Row], *, gone: Collection[Row] = ()) -> None:
        """Take in rows that are new or need a person more or less, and drop those that are gone."""
        moved = {row: key for row in changed if (key := self._key(row)) != self._key_of.get(row)}
        left = [row for row in gone if row in self._key_of]
        self._texts.update((row, _text(row)) for row in changed)
        for row in left:
            del self._texts[row]
        if len(moved) + len(left) > max(_FEW, len(self._all) // 20):
            for row in left:
                del self._key_of[row]
            self._key_of.update(moved)
            self._sort()
        else:
            for row in (*moved, *left):
                self._take(row)
            for row, key in moved.items():
                self._put(row, key)
        self._sift()

    def _take(self, row: Row) -> None:
        key = self._key_of.pop(row, None)
        if key is not None:
            place = bisect_left(self._keys, key)
            del self._keys[place], self._all[place]

    def _put(self, row: Row, key: _Key) -> None:
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._all.insert(place, row)
        self._key_of[row] = key

    def _sort(self) -> None:
        self._all = sorted(self._key_of, key=self._key_of.__getitem__)
        self._keys = [self._key_of[row] for row in self._all]

    def _sift(self) -> None:
        found = self._all
        for word in self._words:
            found = [row for row in found if word in self._texts[row]]
        self.rows = found

    def _key(self, row: Row) -> _Key:
        # Two runs may have the same names; the ids make every key one of a kind.
        group = "" if self._group is None else self._group(row)
        return group, row.need, row.name, -row.number, row.attempt or -row.task


def _text(row: Row) -> str:
    parts = (row.name, row.title, row.state.attempt.worker, row.state.model, row.state.node)
    return " ".join((*parts, row.status, row.health, row.rules)).lower()
