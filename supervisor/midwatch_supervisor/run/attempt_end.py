"""How an attempt ends: by its work, by what was ordered, by its budget."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.budget import raise_limits
from midwatch_monitor.errors import JournalFullError, ProviderRefusedError, StaleIncarnationError
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    AttemptTransition,
    Budget,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Record,
    TaskTransition,
)
from midwatch_tools.inbox import stamp
from midwatch_tools.instructions import exhausted_limits

log = logging.getLogger(__name__)

_LIFECYCLES = {
    Ending.DONE: Lifecycle.COMPLETED,
    Ending.UNCHECKED: Lifecycle.COMPLETED,
    Ending.CANCELED: Lifecycle.CANCELED,
}
"""All other endings are failures of the attempt."""

_ENDINGS = {
    Action.STOP: Ending.STUCK,
    Action.SPLIT: Ending.SPLIT,
    Action.RESTART: Ending.RESTARTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended."""

    ending: Ending
    reason: str
    checks: tuple[Acceptance, ...] = ()
    stamps: tuple[Delivery, ...] = ()
    """Of the interventions that ended it."""
    findings: tuple[Record, ...] = ()
    """What else was found at the end: of its completion, by its reviewer."""

    @property
    def lifecycle(self) -> Lifecycle:
        """The attempt's lifecycle with this ending."""
        return _LIFECYCLES.get(self.ending, Lifecycle.FAILED)

    @property
    def records(self) -> tuple[Record, ...]:
        """What belongs into the journal with it."""
        return (*self.checks, *self.findings, *self.stamps)

    @property
    def passed(self) -> int:
        """How many acceptance checks passed."""
        return sum(check.passed for check in self.checks)

    @property
    def task_state(self) -> TaskTransition:
        """The end of the task, where this is how its last attempt ended."""
        return TaskTransition(
            lifecycle=self.lifecycle,
            reason=self.reason,
            passed=self.passed,
            total=len(self.checks),
        )


def known_end(state: AttemptTransition, checks: Sequence[Acceptance]) -> Ended | None:
    """The end of an attempt as the journal knows it; `None` if it has not ended."""
    if state.ending is None:
        return None
    return Ended(ending=state.ending, reason=state.reason, checks=tuple(checks))


def result(work: "asyncio.Task[Ended]") -> Ended:
    """What the work came to; an error that nobody expected is a reason too.

    Raises StaleIncarnationError where the work was refused: then the end is another's to store;
    ProviderRefusedError where it could not even begin, and JournalFullError where there is no space
    for what it did: then the run ends, and not the attempt.
    """
    if work.cancelled():
        return Ended(ending=Ending.ERROR, reason="the worker's task was canceled from within")
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, StaleIncarnationError | ProviderRefusedError | JournalFullError):
        raise error
    log.error("an attempt failed", exc_info=error)
    return Ended(ending=Ending.ERROR, reason=f"{type(error).__name__}: {error}")


def end_asked_for(
    due: Sequence[tuple[int, Intervention]], step: int, *, divisible: bool
) -> Ended | None:
    """The end that an intervention asks for; the strongest wins, and all are stamped.

    A split that cannot be asks for no end; see `undoable`.
    """
    refused = {stamp.intervention for stamp in undoable(due, step, divisible=divisible)}
    orders = [(id, each) for id, each in due if each.action.at_once and id not in refused]
    if not orders:
        return None
    stop = next((each for _, each in orders if each.action is Action.STOP), None)
    chosen = stop or orders[-1][1]
    stamps = tuple(stamp(id, step) for id, _ in orders)
    if chosen.terms.withdraws:
        return Ended(ending=Ending.CANCELED, reason=chosen.message, stamps=stamps)
    said = chosen.message and f": {chosen.message}"
    if chosen.action is Action.STOP and chosen.by is Actor.OPERATOR:
        by = chosen.author or chosen.by.value
        return Ended(ending=Ending.CANCELED, reason=f"stopped by {by}{said}", stamps=stamps)
    return Ended(
        ending=_ENDINGS[chosen.action],
        reason=f"{chosen.action} by {chosen.by}{said}",
        stamps=stamps,
    )


def undoable(
    due: Sequence[tuple[int, Intervention]], step: int, *, divisible: bool
) -> tuple[Delivery, ...]:
    """The stamps of those splits that cannot be: without parts, or of what came of a split."""
    few, part = "it names fewer than two parts", "what came of a split is not split again"
    why = few if divisible else part
    return tuple(
        Delivery(intervention=id, state=DeliveryState.REJECTED, step=step, comment=why)
        for id, each in due
        if each.action is Action.SPLIT and not (divisible and len(each.terms.parts) > 1)
    )


def overtime(budget: Budget | None, due: Sequence[tuple[int, Intervention]]) -> Ended | None:
    """The end of an attempt that hangs beyond its minutes, with those that it was granted."""
    if budget is None:
        return None
    grants = [each.terms.grant for _, each in due if each.action is Action.GRANT_BUDGET]
    granted = raise_limits(budget, grants)
    if not granted.minutes.spent:
        return None
    gone = exhausted_limits(Budget(minutes=granted.minutes))
    return Ended(ending=Ending.OUT_OF_BUDGET, reason=f"out of budget: {gone}")
