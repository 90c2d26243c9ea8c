"""Everything of one attempt, folded from the journal in order. Pure; nothing is drawn here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    Analysis,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Change,
    Checkpoint,
    Completion,
    Decision,
    Delivery,
    DeliveryState,
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
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present import learning_text as taught
from midwatch_supervisor.present.learning_text import NOTHING, Given
from midwatch_supervisor.present.record_text import detail, line, spelled_out
from midwatch_supervisor.present.text_line import Told

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
    def told(self) -> Told:
        """The item as a line."""
        found = taught.line(self.record, self.given) if isinstance(self.record, Recall) else None
        return found or line(self.record, self.about)

    @property
    def detail(self) -> str:
        """All that there is to say of it."""
        if isinstance(self.record, Recall):
            return spelled_out(taught.parts(self.record, self.given))
        return detail(self.record, self.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the worker said of itself at one step, in percent."""

    step: int
    progress: int
    confidence: int


@dataclass(slots=True, kw_only=True)
class Telling:
    """One intervention: what was said to the attempt, by whom, and what came of it."""

    id: int
    at: datetime
    step: int
    """The attempt's last step when it was issued."""
    fate: InterventionState
    earlier: bool = False
    """Issued on another attempt: the restart that this one began with, and is judged for."""
    stamp: Delivery | None = None
    """The newest."""
    stamped_at: datetime | None = None
    judged_at: datetime | None = None

    @property
    def delivered_step(self) -> int | None:
        """This attempt's last step when it was delivered; `None` until then."""
        if self.stamp is None or self.stamp.state is not DeliveryState.DELIVERED:
            return None
        return 0 if self.earlier else self.stamp.step

    def fold(self, entry: Entry, news: Delivery | OutcomeReport) -> None:
        """Take in what became of it."""
        self.fate.fold(entry.at, news)
        if isinstance(news, Delivery):
            self.stamp, self.stamped_at = news, entry.at
        else:
            self.judged_at = entry.at

    @property
    def detail(self) -> str:
        """All that there is to say of it."""
        parts = [detail(self.fate.intervention)]
        if self.stamp is not None:
            parts.append(f"then:\n{line(self.stamp, self.fate.intervention).text}")
        if self.fate.outcome is not None:
            reason = f": {self.fate.reason}" if self.fate.reason else ""
            parts.append(f"outcome:\n{self.fate.outcome.value}{reason}")
        return "\n\n".join(parts)


class AttemptTimeline:
    """One attempt from its first entry to its newest. Takes all entries of its task, in order.

    Of the other attempts only the interventions matter: a restart is issued on one attempt and
    judged on the next.
    """

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self.task = task
        self.attempt = attempt
        self.items: list[Item] = []
        self.alerts: list[Item] = []
        """Every change of an alert, oldest first."""
        self.points: list[Point] = []
        self.tellings: dict[int, Telling] = {}
        """What was done to this attempt, by the intervention's journal id."""
        self.verdicts: list[Feedback] = []
        """Of persons, of what became of the result, of the reviewer; oldest first."""
        self.recall: Recall | None = None
        """What it was given at its beginning."""
        self.last_id = 0
        self.last_at: datetime | None = None
        self.edited = 0
        """The newest step that changed a file."""
        self._others: dict[int, Telling] = {}
        self._standing = TaskState(task=task)
        self._standing.meet(attempt)

    @property
    def account(self) -> AttemptState:
        """Where the attempt stands."""
        return self._standing.attempts[self.attempt.id]

    def fold(self, entry: Entry) -> None:
        """Take in the next entry; those of other tasks and those known already are passed over."""
        if entry.task != self.task.id or entry.id <= self.last_id:
            return
        self.last_id = entry.id
        lifecycle, node = self.account.lifecycle, self.account.node
        self._standing.fold(entry)
        self._follow(entry)
        if entry.attempt != self.attempt.id:
            return
        if self.last_at is None:
            self._begin()
        self.last_at = entry.at
        match entry.record:
            case Change() as change:
                turned = change.lifecycle not in (None, lifecycle)
                if turned or self.account.node != node:
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

    def _follow(self, entry: Entry) -> None:
        """Keep the interventions and what becomes of them, also those of the other attempts."""
        mine = entry.attempt == self.attempt.id
        match entry.record:
            case Intervention() as issued:
                telling = Telling(
                    id=entry.id,
                    at=entry.at,
                    step=self.account.last_step if mine else 0,
                    fate=InterventionState.begin(entry, issued),
                    earlier=not mine,
                )
                (self.tellings if mine else self._others)[entry.id] = telling
                self._answer(issued)
            case Delivery() | OutcomeReport() as news:
                known = self.tellings | self._others
                if news.intervention in known:
                    known[news.intervention].fold(entry, news)
                    self._answer(known[news.intervention].fate.intervention)
            case _:
                pass

    def _answer(self, issued: Intervention) -> None:
        """Keep with a petition what was said to it, as far as that stands now."""
        if issued.petition is None:
            return
        for place, item in zip(
            range(len(self.items) - 1, -1, -1), reversed(self.items), strict=True
        ):
            if item.id == issued.petition:
                answer = self.account.answer(item.id)
                self.items[place] = replace(item, about=answer)
                return

    def _begin(self) -> None:
        """Take over the restart that this attempt began with: its message is in the prompt."""
        for id, telling in reversed(self._others.items()):
            if telling.fate.intervention.action is Action.RESTART:
                if telling.fate.delivered:
                    self.tellings[id] = telling
                return

    def _observe(self, step: Step) -> None:
        if step.edits:
            self.edited = step.number
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
        if isinstance(record, Delivery | OutcomeReport) and record.intervention in self.tellings:
            about = self.tellings[record.intervention].fate.intervention
        item = Item(id=entry.id, at=entry.at, step=self._at(record), record=record, about=about)
        self.items.append(item)
        if isinstance(record, Alert):
            self.alerts.append(item)
        for kept in (self.items, self.alerts, self.points):
            if len(kept) > 2 * KEPT:
                del kept[:KEPT]

    def _at(self, record: Record) -> int:
        return record.step if isinstance(record, Alert) else self.account.last_step

    def index_of(self, step: int) -> int | None:
        """Where the timeline has a step; `None` if it does not have it any more, or not yet."""
        for index, item in enumerate(self.items):
            if isinstance(item.record, Step) and item.record.number == step:
                return index
        return None

    def checks(self) -> Sequence[Acceptance | Feedback]:
        """The newest result of each acceptance check, then every verdict on the result."""
        return (*self.account.details.checks.values(), *self.verdicts)

    def fired(self) -> Sequence[Item]:
        """Where alerts began to fire or became more severe."""
        return tuple(
            item for item in self.alerts if isinstance(item.record, Alert) and item.record.firing
        )
