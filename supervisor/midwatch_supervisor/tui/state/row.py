"""One attempt as a line of the fleet, with its last checkpoints. Pure."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum, StrEnum

from midwatch_monitor.budget import meters
from midwatch_monitor.records import (
    Attempt,
    Checkpoint,
    Entry,
    Health,
    Lifecycle,
    Step,
    Task,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.need import calls_person

KEPT = 12
"""Number of groups of equal checkpoints kept for each attempt; the journal has all of them."""
_LOOKS_BACK = 3
"""Number of checkpoints that a trend covers."""
_STEADY = 5
"""Percentage points within which a confidence counts as unchanged."""


class Trend(StrEnum):
    """The direction of a confidence; the value is its sign."""

    UNKNOWN = ""
    """Too few reports."""
    UP = "↑"
    LEVEL = "="
    DOWN = "↓"


def trend(confidences: Sequence[int]) -> Trend:
    """Return the trend of the last stated confidences, in percent, oldest first."""
    if len(confidences) < 2:
        return Trend.UNKNOWN
    change = confidences[-1] - confidences[max(0, len(confidences) - 1 - _LOOKS_BACK)]
    if abs(change) >= _STEADY:
        return Trend.UP if change > 0 else Trend.DOWN
    return Trend.LEVEL if len(confidences) > _LOOKS_BACK else Trend.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCheckpoints:
    """Consecutive equal checkpoints."""

    checkpoint: Checkpoint
    first_at: datetime
    last_at: datetime
    count: int = 1
    change: int | None = None
    """Change of confidence since the previous group, in percentage points."""

    @property
    def seconds(self) -> float:
        return (self.last_at - self.first_at).total_seconds()


class CheckpointHistory:
    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: deque[EqualCheckpoints] = deque(maxlen=KEPT)

    def add(self, checkpoint: Checkpoint, at: datetime) -> None:
        newest = self.newest
        if newest is not None and _shown_values(newest.checkpoint) == _shown_values(checkpoint):
            self._groups[-1] = replace(newest, last_at=at, count=newest.count + 1)
            return
        before = None if newest is None else newest.checkpoint.confidence
        change = None if before is None else checkpoint.confidence - before
        self._groups.append(
            EqualCheckpoints(checkpoint=checkpoint, first_at=at, last_at=at, change=change)
        )

    @property
    def newest(self) -> EqualCheckpoints | None:
        """The last group; `None` before the first report."""
        return self._groups[-1] if self._groups else None

    @property
    def newest_first(self) -> Iterator[EqualCheckpoints]:
        return reversed(self._groups)


def _shown_values(checkpoint: Checkpoint) -> tuple[object, ...]:
    """Return everything that distinguishes a checkpoint for a reader."""
    return (
        checkpoint.plan_step,
        checkpoint.progress_percent,
        checkpoint.confidence,
        checkpoint.decision,
        checkpoint.blockers,
        checkpoint.notes,
    )


class Need(IntEnum):
    """How urgently a line needs a person, most urgent first."""

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
"""Placeholder for the attempt of a task that has none yet."""


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """One attempt in the fleet's table, or a task without one.

    A row is only equal to itself: it is mutable, and used in sets.
    """

    run: int
    task: int
    name: str
    title: str = ""
    project: str = ""
    state: AttemptState
    movable: bool = False
    """Whether another node can continue it if its own is gone."""
    adrift: bool = False
    """Whether its node is gone and no other continues it yet."""
    checkpoints: CheckpointHistory = field(default_factory=CheckpointHistory)

    @classmethod
    def of(cls, task: Task, state: AttemptState | None = None, *, movable: bool = False) -> "Row":
        """Return the row of an attempt at a task, or of a task without one."""
        return cls(
            run=task.run,
            task=task.id,
            name=task.name,
            title=task.title,
            project=task.project,
            state=state or AttemptState(attempt=_NOBODY, detailed=False),
            movable=movable,
        )

    def fold(self, entry: Entry) -> None:
        self.state.fold(entry)
        if isinstance(entry.record, Step) and entry.record.checkpoint is not None:
            self.checkpoints.add(entry.record.checkpoint, entry.at)

    @property
    def attempt(self) -> int | None:
        """The attempt's journal id; `None` before there is one."""
        return self.state.id or None

    @property
    def number(self) -> int:
        """The attempt's number in its task, from 1; 0 before there is one."""
        return self.state.attempt.number

    @property
    def label(self) -> str:
        """The attempt's name: `fix#2`."""
        return f"{self.name}#{self.number}" if self.number else self.name

    @property
    def lifecycle(self) -> Lifecycle:
        """The lifecycle of the attempt, or of a task that has none yet."""
        return self.state.lifecycle

    @property
    def over(self) -> bool:
        return self.state.over

    @property
    def rejected(self) -> bool:
        """Whether it completed and its result was not accepted."""
        return self.lifecycle is Lifecycle.COMPLETED and self.state.rejected

    @property
    def status(self) -> str:
        """Its status in a word."""
        if self.attempt is None and self.lifecycle is Lifecycle.SUBMITTED:
            return "queued"
        return "not accepted" if self.rejected else self.state.status.value

    @property
    def rules(self) -> str:
        """Rules that fire, or fired at its end."""
        return ", ".join(dict.fromkeys(alert.key.rule for alert in self.state.unresolved))

    @property
    def health(self) -> Health:
        """Its health; unknown if its node is gone."""
        return Health.UNKNOWN if self.adrift else self.state.health

    @property
    def need(self) -> Need:
        state = self.state
        if state.over:
            return Need.OVER
        if state.ignored_stop is not None:
            return Need.STUCK
        if state.needed_since is not None:
            # Without a question, it is parked because of what waits for approval.
            held = state.interventions.held
            asked = state.parked and not state.goes_on and (state.waits or not held)
            return Need.ANSWER if asked or not held else Need.APPROVAL
        if state.lifecycle is Lifecycle.SUBMITTED or state.idle:
            return Need.QUEUED
        return _NEEDS.get(self.health, Need.WORKING)

    @property
    def called(self) -> bool:
        """Whether a person is called for it; not for what others may also answer."""
        return calls_person(self.state, adrift=self.adrift)

    @property
    def used(self) -> float | None:
        """The largest used share of a limited resource; `None` without limits."""
        found = (each for _, each in meters(self.state.budget))
        return max((each.used / each.limit for each in found if each.limit), default=None)
