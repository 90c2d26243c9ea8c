"""The terms of the glossary as types: frozen values without I/O.

Each name is imported "as" itself, which re-exports it.
"""
# ruff: noqa: I001 (it would want a statement for each of these names)

from midwatch_monitor.records.alert import (
    Alert as Alert,
    AlertKey as AlertKey,
    AlertState as AlertState,
    Fault as Fault,
    Finding as Finding,
    Health as Health,
    Judgement as Judgement,
    Movement as Movement,
    Notified as Notified,
    Resolution as Resolution,
    Severity as Severity,
)
from midwatch_monitor.records.analysis import (
    Analysis as Analysis,
    AnalysisAuthor as AnalysisAuthor,
    Cause as Cause,
)
from midwatch_monitor.records.entry import (
    Commit as Commit,
    Draft as Draft,
    Entry as Entry,
    Hint as Hint,
    Message as Message,
    Record as Record,
    Result as Result,
)
from midwatch_monitor.records.fact import (
    Certainty as Certainty,
    Fact as Fact,
    FactAct as FactAct,
    FactMaker as FactMaker,
    FactMark as FactMark,
    FactReview as FactReview,
    FactState as FactState,
    ReviewState as ReviewState,
)
from midwatch_monitor.records.feedback import (
    Feedback as Feedback,
    Origin as Origin,
    VerdictBasis as VerdictBasis,
)
from midwatch_monitor.records.fleet import (
    LOST_AFTER_SECONDS as LOST_AFTER_SECONDS,
    Lease as Lease,
    NodeState as NodeState,
    NodeStatus as NodeStatus,
    Snapshot as Snapshot,
    SupervisedBy as SupervisedBy,
    holder_of as holder_of,
    name_of as name_of,
)
from midwatch_monitor.records.guidelines import (
    Guidelines as Guidelines,
    GuidelinesAct as GuidelinesAct,
    GuidelinesMark as GuidelinesMark,
    GuidelinesState as GuidelinesState,
    Reflection as Reflection,
    Trial as Trial,
    TrialScore as TrialScore,
)
from midwatch_monitor.records.intervention import (
    BY_TIMEOUT as BY_TIMEOUT,
    Action as Action,
    Actor as Actor,
    Decision as Decision,
    Delivery as Delivery,
    DeliveryState as DeliveryState,
    Diagnosis as Diagnosis,
    Escalation as Escalation,
    EscalationState as EscalationState,
    Intervention as Intervention,
    Outcome as Outcome,
    OutcomeReport as OutcomeReport,
    Part as Part,
    Terms as Terms,
)
from midwatch_monitor.records.known import (
    Candidate as Candidate,
    Erasure as Erasure,
    KnownFact as KnownFact,
    KnownGuidelines as KnownGuidelines,
    KnownLesson as KnownLesson,
    KnownSummary as KnownSummary,
    LearnedQuery as LearnedQuery,
    OpenChore as OpenChore,
)
from midwatch_monitor.records.lesson import (
    Chore as Chore,
    Group as Group,
    Lesson as Lesson,
    LessonAct as LessonAct,
    LessonMark as LessonMark,
    LessonOrigin as LessonOrigin,
    Method as Method,
    Recall as Recall,
    Recalled as Recalled,
    Study as Study,
    StudyState as StudyState,
    Summary as Summary,
)
from midwatch_monitor.records.plan import (
    Claim as Claim,
    ClaimState as ClaimState,
    Completion as Completion,
    Plan as Plan,
    PlanCheck as PlanCheck,
    PlanStep as PlanStep,
    PlanStepState as PlanStepState,
    Ruling as Ruling,
)
from midwatch_monitor.records.step import (
    Change as Change,
    Checkpoint as Checkpoint,
    CheckpointDecision as CheckpointDecision,
    Edit as Edit,
    Event as Event,
    Step as Step,
    StepKind as StepKind,
    Writer as Writer,
)
from midwatch_monitor.records.work import (
    Acceptance as Acceptance,
    Activity as Activity,
    Attempt as Attempt,
    AttemptTransition as AttemptTransition,
    Budget as Budget,
    BudgetRequest as BudgetRequest,
    Ending as Ending,
    Grant as Grant,
    Lifecycle as Lifecycle,
    Meter as Meter,
    Outage as Outage,
    PermissionRequest as PermissionRequest,
    Run as Run,
    Spending as Spending,
    Task as Task,
    TaskTransition as TaskTransition,
)
