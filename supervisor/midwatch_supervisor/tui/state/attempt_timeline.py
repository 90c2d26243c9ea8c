"""Everything about one attempt, folded from the journal in order. Pure; nothing is drawn here."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    Attempt,
    AttemptTransition,
    Change,
    Checkpoint,
    Delivery,
    Entry,
    Fault,
    Feedback,
    Intervention,
    OutcomeReport,
    Plan,
    Recall,
    Record,
    Snapshot,
    Step,
    Study,
    StudyState,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AlertStatus
from midwatch_monitor.state.intervention import Interventions, InterventionState
from midwatch_supervisor.present.intervention_text import settled_text
from midwatch_supervisor.present.learning_text import NOTHING, GivenLearning
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import TextLine

KEPT = 5_000
"""Minimum number of items kept in the timeline; the journal has all of them."""
_SEARCHED = 4_000
"""Characters of an item that a search covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    id: int
    """Id of its entry in the journal."""
    at: datetime
    step: int
    """The attempt's last step when it happened; for a step, its own number."""
    record: Record
    about: Intervention | None = None
    """The intervention of a delivery or an outcome, or that answers a request."""
    given: GivenLearning = NOTHING
    """What a recall selected, once looked up."""
    plan_steps: int = 0
    """The number of steps in the attempt's plan at that time."""

    told: TextLine = field(init=False, repr=False, compare=False)
    """The item as a line. Cached, like its words: no key should wait for thousands of them."""
    words: str = field(init=False, repr=False, compare=False)
    """What a search covers, in lower case: the line, and the beginning of its detail."""

    def __post_init__(self) -> None:
        told = line(self.record, self.about, self.given, plan_steps=self.plan_steps)
        words = " ".join((told.what, told.text, *(text for _, text in told.parts)))
        object.__setattr__(self, "told", told)
        object.__setattr__(self, "words", words[:_SEARCHED].lower())

    @property
    def detail(self) -> str:
        return self.told.detail


_CAN_FAIL = (Acceptance, AttemptTransition, Fault)


def _is_failure(item: TimelineItem) -> bool:
    if isinstance(item.record, Step):
        return item.record.ok is False  # also if it was refused
    return isinstance(item.record, _CAN_FAIL) and item.told.sign == "✗"


def _of_step(test: Callable[[Step], object]) -> Callable[[TimelineItem], bool]:
    return lambda item: isinstance(item.record, Step) and bool(test(item.record))


KINDS: Mapping[str, Callable[[TimelineItem], bool]] = {
    "failed": _is_failure,
    "edit": _of_step(lambda step: step.edits),
    "checkpoint": _of_step(lambda step: step.checkpoint),
    "alert": lambda item: isinstance(item.record, Alert),
}
"""Kinds of items that an operator can filter by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the worker reported at one step, in percent."""

    step: int
    progress: int
    confidence: int


def intervention_detail(state: InterventionState) -> str:
    """Return an intervention in full, with its results."""
    parts = [line(state.intervention).detail]
    if state.stamp is not None:
        parts.append(f"delivery:\n{state.action} {settled_text(state)}")
    if state.outcome is not None:
        reason = f": {state.reason}" if state.reason else ""
        parts.append(f"outcome:\n{state.outcome.value}{reason}")
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTabLine:
    """One alert in its current state or, below it, one of its changes."""

    alert: Alert
    at: datetime
    """The time of the change; for an alert, since when it has been in its current state."""
    status: AlertStatus
    change: bool = False

    @property
    def detail(self) -> str:
        return line(self.alert).detail


class AttemptTimeline:
    """One attempt from its first entry to its newest. Takes all entries of its task, in order.

    Of other attempts only interventions matter: a restart is issued on one attempt and judged on
    the next.
    """

    def __init__(self, task: Task, attempt: Attempt, *, judged: bool = True) -> None:
        self.task = task
        self.attempt = attempt
        self.items: list[TimelineItem] = []
        self.alerts: list[AlertTabLine] = []
        """All changes of alerts, oldest first."""
        self.points: list[Point] = []
        self.verdicts: list[Feedback] = []
        """Verdicts of people, implied ones, and the reviewer's, oldest first."""
        self.recall: Recall | None = None
        """What it was given when it began."""
        self.last_id = 0
        self.last_at: datetime | None = None
        self.state = AttemptState(attempt=attempt, judged=judged)
        """The attempt's current state."""
        self._others = Interventions()

    def fold(self, entry: Entry) -> None:
        """Take in the next entry; those of other tasks, and known ones, are skipped."""
        if entry.task != self.task.id or entry.id <= self.last_id:
            return
        self.last_id = entry.id
        before = self.state.lifecycle, self.state.node
        if entry.attempt != self.attempt.id:
            self._others.fold(entry)
            if isinstance(entry.record, Delivery | OutcomeReport):
                self.state.follow(entry)
            self._add_answer(entry)
            return
        if self.last_at is None:
            self._add_restart()
        self.state.fold(entry)
        self.last_at = self.state.last_at or entry.at
        self._add_answer(entry)
        match entry.record:
            case Change():
                if (self.state.lifecycle, self.state.node) != before:
                    self._add_item(entry)
            case Study(state=StudyState.DONE) | Snapshot() | TaskTransition() | Plan(bare=True):
                pass  # a study's results show that it is done
            case AttemptTransition(lifecycle=lifecycle):
                last = self.items[-1].record if self.items else None
                if isinstance(last, Change) and last.node is None and last.lifecycle is lifecycle:
                    del self.items[-1]  # it says the same without the reason
                self._add_item(entry)
            case _:
                self._add_item(entry)

    def _add_answer(self, entry: Entry) -> None:
        """Add its answer, if one is currently valid, to a worker's request."""
        state = self._entry_intervention(entry)
        request = None if state is None else state.intervention.petition
        if request is not None:
            answer = self.state.answer(request)
            self._update_item(lambda item: item.id == request, about=answer)

    def _entry_intervention(self, entry: Entry) -> InterventionState | None:
        """Return the intervention that an entry issues, or reports on."""
        match entry.record:
            case Delivery(intervention=id) | OutcomeReport(intervention=id):
                return self.state.interventions.get(id)
            case _:
                return self.state.interventions.get(entry.id)

    def _add_restart(self) -> None:
        """Add the restart that this attempt began with: its message is in the prompt."""
        restarts = [each for each in self._others if each.action is Action.RESTART]
        if restarts and restarts[-1].delivered:
            self.state.interventions.by_id[restarts[-1].id] = restarts[-1]

    def remember(self, given: GivenLearning) -> None:
        """Store what the newest recall selected, for the timeline."""
        self._update_item(lambda item: isinstance(item.record, Recall), given=given)

    def _update_item(self, wanted: Callable[[TimelineItem], bool], **news: Any) -> None:
        """Change the newest matching item."""
        for place in range(len(self.items) - 1, -1, -1):
            if wanted(self.items[place]):
                self.items[place] = replace(self.items[place], **news)
                return

    def _add_item(self, entry: Entry) -> None:
        record = entry.record
        step = record.step if isinstance(record, Alert) else self.state.last_step
        state = None if isinstance(record, Intervention) else self._entry_intervention(entry)
        about = state and state.intervention
        item = TimelineItem(
            id=entry.id,
            at=entry.at,
            step=step,
            record=record,
            about=about,
            plan_steps=self.state.plan_steps,
        )
        self.items.append(item)
        match record:
            case Step(checkpoint=Checkpoint(progress_percent=progress, confidence=confidence)):
                point = Point(step=record.number, progress=progress, confidence=confidence)
                self.points.append(point)
            case Alert():
                status = AlertStatus(record.state.value)
                change = AlertTabLine(alert=record, at=entry.at, status=status, change=True)
                self.alerts.append(change)
            case Feedback():
                self.verdicts.append(record)
            case Recall():
                self.recall = record
            case _:
                pass
        for kept in (self.items, self.alerts, self.points):
            if len(kept) > 2 * KEPT:
                del kept[:KEPT]

    def index_of(self, step: int) -> int | None:
        """Return a step's index in the timeline; `None` if it is no longer, or not yet, there."""
        for index, item in enumerate(self.items):
            if isinstance(item.record, Step) and item.record.number == step:
                return index
        return None

    def checks(self) -> Sequence[Acceptance | Feedback]:
        """Return the newest result of each acceptance check, then all verdicts on the result."""
        return (*self.state.details.checks.values(), *self.verdicts)

    def alert_lines(self) -> tuple[AlertTabLine, ...]:
        """Return each alert in its current state, firing ones first, with its changes below."""
        changes: dict[AlertKey, list[AlertTabLine]] = defaultdict(list)
        for change in self.alerts:
            changes[change.alert.key].append(change)
        lines: list[tuple[AlertTabLine, ...]] = []
        for key, found in changes.items():
            # It may have become more severe since it began to fire.
            *_, latest = (list(each) for _, each in groupby(found, key=lambda each: each.status))
            status = self.state.alert_status(key)
            now = AlertTabLine(alert=found[-1].alert, at=latest[0].at, status=status)
            lines.append((now, *(found if len(found) > 1 else ())))
        lines.sort(key=lambda each: _ALERT_ORDER.index(each[0].status))
        return tuple(line for each in lines for line in each)


_ALERT_ORDER = (
    AlertStatus.FIRING,
    AlertStatus.ACKNOWLEDGED,
    AlertStatus.SILENCED,
    AlertStatus.PENDING,
    AlertStatus.RESOLVED,
    AlertStatus.ENDED,
)
