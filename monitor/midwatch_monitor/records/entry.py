"""Entries of the journal, commits, and hints that the journal has grown."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from midwatch_monitor.records.alert import Alert, Fault, Notified
from midwatch_monitor.records.analysis import Analysis
from midwatch_monitor.records.fact import Fact, FactMark, FactReview
from midwatch_monitor.records.feedback import Feedback
from midwatch_monitor.records.fleet import Snapshot
from midwatch_monitor.records.guidelines import Guidelines, GuidelinesMark, Reflection, Trial
from midwatch_monitor.records.intervention import (
    Decision,
    Delivery,
    Escalation,
    Intervention,
    OutcomeReport,
)
from midwatch_monitor.records.lesson import Lesson, LessonMark, Recall, Study, Summary
from midwatch_monitor.records.plan import Completion, Plan, PlanCheck
from midwatch_monitor.records.step import Change, Step
from midwatch_monitor.records.work import (
    Acceptance,
    AttemptTransition,
    BudgetRequest,
    PermissionRequest,
    Spending,
    TaskTransition,
)

Record = (
    TaskTransition
    | AttemptTransition
    | Step
    | Change
    | Plan
    | PlanCheck
    | Completion
    | Analysis
    | BudgetRequest
    | PermissionRequest
    | Spending
    | Acceptance
    | Alert
    | Escalation
    | Decision
    | Intervention
    | Delivery
    | OutcomeReport
    | Feedback
    | Recall
    | Summary
    | Study
    | Lesson
    | LessonMark
    | Fact
    | FactMark
    | FactReview
    | Guidelines
    | GuidelinesMark
    | Reflection
    | Trial
    | Snapshot
    | Fault
    | Notified
)
"""Every kind of record in the journal."""

KINDS: dict[type[Record], str] = {
    TaskTransition: "task_state",
    AttemptTransition: "attempt_state",
    Step: "step",
    Change: "change",
    Plan: "plan",
    PlanCheck: "plan_check",
    Completion: "completion",
    Analysis: "analysis",
    BudgetRequest: "budget_request",
    PermissionRequest: "permission_request",
    Spending: "spending",
    Acceptance: "acceptance",
    Alert: "alert",
    Escalation: "escalation",
    Decision: "decision",
    Intervention: "intervention",
    Delivery: "delivery",
    OutcomeReport: "outcome",
    Feedback: "feedback",
    Recall: "recall",
    Summary: "summary",
    Study: "study",
    Lesson: "lesson",
    LessonMark: "lesson_mark",
    Fact: "fact",
    FactMark: "fact_mark",
    FactReview: "fact_review",
    Guidelines: "guidelines",
    GuidelinesMark: "guidelines_mark",
    Reflection: "reflection",
    Trial: "trial",
    Snapshot: "snapshot",
    Fault: "fault",
    Notified: "notified",
}
"""Names of the kinds, as stored in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record to be committed."""

    record: Record
    at: datetime
    task: int
    attempt: int | None = None
    seq: int | None = None
    """Assigned by the recorder of the attempt's current incarnation; `None` for all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record in the journal. Ids increase in the order of commits, across all attempts."""

    id: int
    record: Record
    at: datetime
    task: int
    attempt: int | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of an attempt's history with its model, as JSON."""

    index: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool call returned, as JSON; after a crash, it is used instead of calling again."""

    call: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Things that are written together or not at all."""

    drafts: tuple[Draft, ...] = ()
    attempt: int | None = None
    """The attempt that `messages` and `results` belong to."""
    incarnation: int | None = None
    """If set, the commit is refused unless it is the attempt's current one."""
    guard: int | None = None
    """If set, the commit is refused unless it is the current incarnation of the monitor's lease on
    every attempt that the drafts are about."""
    messages: tuple[Message, ...] = ()
    results: tuple[Result, ...] = ()


class Hint(NamedTuple):
    """Says that the journal has grown. It may be lost, repeated or late: the journal is the truth.

    A named tuple, because each recipient makes one for every entry, and a dataclass takes three
    times as long.
    """

    entry: int
    kind: str
    task: int | None = None
    attempt: int | None = None
    step: int | None = None
    note: str = ""
    """What it is about, in a few words; only for display, never to act on."""
