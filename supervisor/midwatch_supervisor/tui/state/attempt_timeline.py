"""Everything of one attempt, folded from the journal in order. Pure; nothing is drawn here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    Analysis,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Change,
    Checkpoint,
    Completion,
    Decision,
    Delivery,
    Entry,
    Escalation,
    Fact,
    FactMark,
    FactReview,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesMark,
    Intervention,
    Lesson,
    LessonMark,
    OutcomeReport,
    Plan,
    PlanCheck,
    Recall,
    Record,
    Reflection,
    Spending,
    Step,
    Study,
    StudyState,
    Summary,
    Task,
    Trial,
)
from midwatch_monitor.state.attempt import AlertStatus, AttemptState
from midwatch_monitor.state.intervention import Interventions, InterventionState
from midwatch_supervisor.present.learning_text import NOTHING, Given
from midwatch_supervisor.present.record_text import detail, line
from midwatch_supervisor.present.text_line import TextLine

KEPT = 5_000
"""Items that the timeline keeps at least; the journal has them all."""

_SHOWN = (
    Acceptance,
    Alert,
    Analysis,
    AttemptTransition,
    BudgetRequest,
    Completion,
    Decision,
    Delivery,
    Escalation,
    Fact,
    FactMark,
    FactReview,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesMark,
    Intervention,
    Lesson,
    LessonMark,
    OutcomeReport,
    Plan,
    PlanCheck,
    Recall,
    Reflection,
    Spending,
    Step,
    Study,
    Summary,
    Trial,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that happened to the attempt."""

    id: int
    """Of its entry in the journal."""
    at: datetime
    step: int
    """The attempt's last step when it happened; for a step its own number."""
    record: Record
    about: Intervention | None = None
    """The intervention that a delivery or an outcome is of, or that answers a petition."""
    given: Given = NOTHING
    """What a recall is of, once somebody has looked it up."""

    @property
    def told(self) -> TextLine:
        """The item as a line."""
        return line(self.record, self.about, self.given)

    @property
    def detail(self) -> str:
        """All that there is to say of it."""
        return detail(self.record, self.about, self.given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the worker said of itself at one step, in percent."""

    step: int
    progress: int
    confidence: int


def intervention_detail(state: InterventionState) -> str:
    """All that there is to say of an intervention and what came of it."""
    parts = [detail(state.intervention)]
    if state.stamp is not None:
        parts.append(f"then:\n{line(state.stamp, state.intervention).text}")
    if state.outcome is not None:
        reason = f": {state.reason}" if state.reason else ""
        parts.append(f"outcome:\n{state.outcome.value}{reason}")
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """One alert as it stands now, or, below it, one change of it."""

    alert: Alert
    at: datetime
    """Of the change; of an alert, since when it stands as it does."""
    status: AlertStatus
    change: bool = False

    @property
    def detail(self) -> str:
        """All that there is to say of it."""
        return detail(self.alert)


class AttemptTimeline:
    """One attempt from its first entry to its newest. Takes all entries of its task, in order.

    Of the other attempts only the interventions matter: a restart is issued on one attempt and
    judged on the next.
    """

    def __init__(self, task: Task, attempt: Attempt, *, judged: bool = True) -> None:
        self.task = task
        self.attempt = attempt
        self.items: list[Item] = []
        self.alerts: list[Item] = []
        """Every change of an alert, oldest first."""
        self.points: list[Point] = []
        self.verdicts: list[Feedback] = []
        """Of persons, of what became of the result, of the reviewer; oldest first."""
        self.recall: Recall | None = None
        """What it was given at its beginning."""
        self.last_id = 0
        self.last_at: datetime | None = None
        self.state = AttemptState(attempt=attempt, judged=judged)
        """Where the attempt stands."""
        self._others = Interventions()

    def fold(self, entry: Entry) -> None:
        """Take in the next entry; those of other tasks and those known already are passed over."""
        if entry.task != self.task.id or entry.id <= self.last_id:
            return
        self.last_id = entry.id
        lifecycle, node = self.state.lifecycle, self.state.node
        if entry.attempt != self.attempt.id:
            self._others.fold(entry)
            if isinstance(entry.record, Delivery | OutcomeReport):
                self.state.follow(entry)
            self._answer(entry)
            return
        if self.last_at is None:
            self._begin()
        self.last_at = entry.at
        self.state.fold(entry)
        self._answer(entry)
        match entry.record:
            case Change() as change:
                if change.lifecycle not in (None, lifecycle) or self.state.node != node:
                    self._add(entry)
            case Step() as step:
                self._observe(step)
                self._add(entry)
            case Study(state=StudyState.DONE):
                pass  # what came of it says so
            case record if isinstance(record, _SHOWN):
                self._add(entry)
            case _:
                pass

    def _answer(self, entry: Entry) -> None:
        """Keep with a worker's request what was said to it, as far as that stands now."""
        match entry.record:
            case Intervention():
                state = self.state.interventions.get(entry.id)
            case Delivery() | OutcomeReport() as news:
                state = self.state.interventions.get(news.intervention)
            case _:
                return
        request = None if state is None else state.intervention.petition
        if request is None:
            return
        for place in range(len(self.items) - 1, -1, -1):
            if self.items[place].id == request:
                answer = self.state.answer(request)
                self.items[place] = replace(self.items[place], about=answer)
                return

    def _begin(self) -> None:
        """Take over the restart that this attempt began with: its message is in the prompt."""
        for issued in reversed(self._others.by_id.values()):
            if issued.action is Action.RESTART:
                if issued.delivered:
                    self.state.interventions.by_id[issued.id] = issued
                return

    def _observe(self, step: Step) -> None:
        if isinstance(step.checkpoint, Checkpoint):
            self.points.append(
                Point(
                    step=step.number,
                    progress=step.checkpoint.progress_percent,
                    confidence=step.checkpoint.confidence,
                )
            )

    def remember(self, given: Given) -> None:
        """Keep what the newest recall was of: the timeline tells it from now on."""
        for place in range(len(self.items) - 1, -1, -1):
            if isinstance(self.items[place].record, Recall):
                self.items[place] = replace(self.items[place], given=given)
                return

    def _add(self, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, Feedback):
            self.verdicts.append(record)
        elif isinstance(record, Recall):
            self.recall = record
        about: Intervention | None = None
        if isinstance(record, Delivery | OutcomeReport):
            state = self.state.interventions.get(record.intervention)
            about = None if state is None else state.intervention
        item = Item(id=entry.id, at=entry.at, step=self._at(record), record=record, about=about)
        self.items.append(item)
        if isinstance(record, Alert):
            self.alerts.append(item)
        for kept in (self.items, self.alerts, self.points):
            if len(kept) > 2 * KEPT:
                del kept[:KEPT]

    def _at(self, record: Record) -> int:
        return record.step if isinstance(record, Alert) else self.state.last_step

    def index_of(self, step: int) -> int | None:
        """Where the timeline has a step; `None` if it does not have it any more, or not yet."""
        for index, item in enumerate(self.items):
            if isinstance(item.record, Step) and item.record.number == step:
                return index
        return None

    def checks(self) -> Sequence[Acceptance | Feedback]:
        """The newest result of each acceptance check, then every verdict on the result."""
        return (*self.state.details.checks.values(), *self.verdicts)

    def fired(self) -> Sequence[Item]:
        """Where alerts began to fire or became more severe."""
        return tuple(
            item for item in self.alerts if isinstance(item.record, Alert) and item.record.firing
        )

    def alert_lines(self) -> tuple[AlertLine, ...]:
        """Each alert as it stands now, those that fire first, with its changes below it."""
        changes: dict[AlertKey, list[AlertLine]] = {}
        for item in self.alerts:
            if isinstance(alert := item.record, Alert):
                status = AlertStatus(alert.state.value)
                changes.setdefault(alert.key, []).append(
                    AlertLine(alert=alert, at=item.at, status=status, change=True)
                )
        lines: list[tuple[AlertLine, ...]] = []
        for key, found in changes.items():
            status = self.state.alert_status(key)
            now = AlertLine(alert=found[-1].alert, at=_since(found), status=status)
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


def _since(changes: Sequence[AlertLine]) -> datetime:
    """When the newest of an alert's states began: it may have become more severe since."""
    since = changes[-1]
    for change in reversed(changes):
        if change.status is not since.status:
            break
        since = change
    return since.at
