"""The last checkpoints of an attempt, equal ones as one, and the trend of its confidence. Pure."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.records import Checkpoint

KEPT = 12
"""Groups of equal checkpoints that are kept of each attempt; the journal has them all."""
_LOOKS_BACK = 3
"""Checkpoints over which a trend is taken."""
_STEADY = 5
"""Percentage points within which a confidence stands still."""


class Trend(StrEnum):
    """Where a confidence is going; the value is its sign."""

    UNKNOWN = ""
    """There are too few reports."""
    UP = "↑"
    LEVEL = "="
    DOWN = "↓"


def trend(confidences: Sequence[int]) -> Trend:
    """The trend of the last stated confidences, in percent, oldest first."""
    if len(confidences) < 2:
        return Trend.UNKNOWN
    change = confidences[-1] - confidences[max(0, len(confidences) - 1 - _LOOKS_BACK)]
    if abs(change) >= _STEADY:
        return Trend.UP if change > 0 else Trend.DOWN
    return Trend.LEVEL if len(confidences) > _LOOKS_BACK else Trend.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCheckpoints:
    """Checkpoints one after the other that say the same."""

    checkpoint: Checkpoint
    first_at: datetime
    last_at: datetime
    step: int
    """Of the last one."""
    count: int = 1
    change: int | None = None
    """Of the confidence since what was said before, in percentage points."""

    @property
    def seconds(self) -> float:
        """How long the same was said."""
        return (self.last_at - self.first_at).total_seconds()


class CheckpointHistory:
    """The last checkpoints of one attempt."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: deque[EqualCheckpoints] = deque(maxlen=KEPT)

    def add(self, checkpoint: Checkpoint, at: datetime, step: int) -> None:
        """Take in the next one, said `at` a time in a step."""
        newest = self.newest
        if newest is not None and _says(newest.checkpoint) == _says(checkpoint):
            self._groups[-1] = replace(newest, last_at=at, step=step, count=newest.count + 1)
            return
        before = None if newest is None else newest.checkpoint.confidence
        change = None if before is None else checkpoint.confidence - before
        self._groups.append(
            EqualCheckpoints(
                checkpoint=checkpoint, first_at=at, last_at=at, step=step, change=change
            )
        )

    @property
    def newest(self) -> EqualCheckpoints | None:
        """The last ones; `None` before the first report."""
        return self._groups[-1] if self._groups else None

    @property
    def newest_first(self) -> Iterator[EqualCheckpoints]:
        """All that is kept."""
        return reversed(self._groups)


def _says(checkpoint: Checkpoint) -> tuple[object, ...]:
    """What a reader could tell it from another by."""
    return (
        checkpoint.plan_step,
        checkpoint.progress_percent,
        checkpoint.confidence,
        checkpoint.decision,
        checkpoint.blockers,
        checkpoint.notes,
    )
