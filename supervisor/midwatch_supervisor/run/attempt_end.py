"""How an attempt ends: through its work, an intervention or its budget."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.budget import raise_limits
from midwatch_monitor.errors import (
    JournalFullError,
    MidwatchError,
    ProviderRefusedError,
    StaleIncarnationError,
)
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
from midwatch_supervisor.present.text_line import one_line
from midwatch_tools.inbox import stamp
from midwatch_tools.instructions import exhausted_limits

log = logging.getLogger(__name__)

_LIFECYCLES = {
    Ending.DONE: Lifecycle.COMPLETED,
    Ending.UNCHECKED: Lifecycle.COMPLETED,
    Ending.CANCELED: Lifecycle.CANCELED,
}
"""All other endings mean that the attempt failed."""

_ENDINGS = {
    Action.STOP: Ending.STUCK,
    Action.SPLIT: Ending.SPLIT,
    Action.RESTART: Ending.RESTARTED,
}


_DONE = {Action.STOP: "stopped", Action.SPLIT: "split", Action.RESTART: "restarted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended."""

    ending: Ending
    reason: str
    checks: tuple[Acceptance, ...] = ()
    stamps: tuple[Delivery, ...] = ()
    """Deliveries of the interventions that ended it."""
    findings: tuple[Record, ...] = ()
    """Other records of the end, such as the completion and the reviewer's feedback."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Lifecycle of an attempt with this ending."""
        return _LIFECYCLES.get(self.ending, Lifecycle.FAILED)

    @property
    def records(self) -> tuple[Record, ...]:
        """Records to be stored together with the end."""
        return (*self.checks, *self.findings, *self.stamps)

    @property
    def passed(self) -> int:
        """Number of acceptance checks that passed."""
        return sum(check.passed for check in self.checks)

    @property
    def task_state(self) -> TaskTransition:
        """Final transition of the task, if this was its last attempt."""
        return TaskTransition(
            lifecycle=self.lifecycle,
            reason=self.reason,
            passed=self.passed,
            total=len(self.checks),
        )


def recorded_end(state: AttemptTransition, checks: Sequence[Acceptance]) -> Ended | None:
    """Return how an attempt ended according to the journal, or `None` if it has not ended."""
    if state.ending is None:
        return None
    return Ended(ending=state.ending, reason=state.reason, checks=tuple(checks))


def result(work: "asyncio.Task[Ended]") -> Ended:
    """Return the result of the work; an error becomes an ending with a reason.

    Raises StaleIncarnationError if another process has taken over the attempt and will store its
    end. Raises ProviderRefusedError if the work could not even begin, and JournalFullError if there
    is no space left for its records; these end the run but not the attempt.
    """
    if work.cancelled():
        return Ended(ending=Ending.ERROR, reason="the worker's task was canceled from within")
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, StaleIncarnationError | ProviderRefusedError | JournalFullError):
        raise error
    reason = f"{type(error).__name__}: {error}"
    if _is_explained(error):
        log.error("an attempt failed: %s", one_line(reason))
    else:
        log.error("an attempt failed", exc_info=error)
    return Ended(ending=Ending.ERROR, reason=reason)


def _is_explained(error: BaseException) -> bool:
    """Whether the text of an error says everything, so that a traceback would only bury it."""
    from pydantic_ai.workspaces import WorkspaceError

    return isinstance(error, MidwatchError | WorkspaceError)


def end_asked_for(
    due: Sequence[tuple[int, Intervention]], step: int, *, divisible: bool
) -> Ended | None:
    """Return the end that the due interventions ask for, or `None` if they ask for none.

    A stop wins; otherwise the last one does. All of them are marked as delivered. An impossible
    split is ignored; see `reject_impossible_splits`.
    """
    refused = {
        stamp.intervention for stamp in reject_impossible_splits(due, step, divisible=divisible)
    }
    orders = [(id, each) for id, each in due if each.action.at_once and id not in refused]
    if not orders:
        return None
    stop = next((each for _, each in orders if each.action is Action.STOP), None)
    chosen = stop or orders[-1][1]
    stamps = tuple(stamp(id, step) for id, _ in orders)
    if chosen.terms.withdraws:
        return Ended(ending=Ending.CANCELED, reason=chosen.message, stamps=stamps)
    said = chosen.message and f": {chosen.message}"
    person = chosen.by is Actor.OPERATOR
    by = chosen.author or chosen.by.value if person else f"the {chosen.by}"
    reason = f"{_DONE[chosen.action]} by {by}{said}"
    stopped = person and chosen.action is Action.STOP
    ending = Ending.CANCELED if stopped else _ENDINGS[chosen.action]
    return Ended(ending=ending, reason=reason, stamps=stamps)


def reject_impossible_splits(
    due: Sequence[tuple[int, Intervention]], step: int, *, divisible: bool
) -> tuple[Delivery, ...]:
    """Return rejections of impossible splits: with fewer than two parts, or of a part."""
    few, part = "it names fewer than two parts", "a part of a split cannot be split again"
    why = few if divisible else part
    return tuple(
        Delivery(intervention=id, state=DeliveryState.REJECTED, step=step, comment=why)
        for id, each in due
        if each.action is Action.SPLIT and not (divisible and len(each.terms.parts) > 1)
    )


def end_out_of_minutes(
    budget: Budget | None, due: Sequence[tuple[int, Intervention]]
) -> Ended | None:
    """Return the end of a hanging attempt that has used up its minutes, grants included."""
    if budget is None:
        return None
    grants = [each.terms.grant for _, each in due if each.action is Action.GRANT_BUDGET]
    granted = raise_limits(budget, grants)
    if not granted.minutes.spent:
        return None
    gone = exhausted_limits(Budget(minutes=granted.minutes))
    return Ended(ending=Ending.OUT_OF_BUDGET, reason=f"out of budget: {gone}")
