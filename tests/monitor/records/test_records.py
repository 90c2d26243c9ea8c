"""Records become JSON and come back the same."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from traceback import format_exception
from typing import get_args

import pytest
from sqlalchemy.dialects.sqlite import dialect

from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core.encoding import kind_of, read, record_json
from midwatch_monitor.journal.core.tables import Packed
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    Budget,
    BudgetRequest,
    Cause,
    Certainty,
    Change,
    Checkpoint,
    CheckpointDecision,
    Chore,
    Claim,
    ClaimState,
    Completion,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Edit,
    Ending,
    Escalation,
    EscalationState,
    Fact,
    FactAct,
    FactMark,
    FactReview,
    Fault,
    Feedback,
    Grant,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Intervention,
    Lesson,
    LessonAct,
    LessonMark,
    Lifecycle,
    Meter,
    Method,
    Notified,
    Origin,
    Outcome,
    OutcomeReport,
    Part,
    PermissionRequest,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Recall,
    Recalled,
    Record,
    Reflection,
    ReviewState,
    Ruling,
    Severity,
    Snapshot,
    Spending,
    Step,
    StepKind,
    Study,
    StudyState,
    Summary,
    TaskTransition,
    Terms,
    Trial,
    TrialScore,
    VerdictBasis,
)

AT = datetime(2026, 11, 21, 20, 0, 0, 123456, tzinfo=UTC)
KEY = AlertKey(rule="repeated_edits", subject="src/a.py")
ALERT = Alert(
    key=KEY,
    severity=Severity.WARNING,
    state=AlertState.FIRING,
    value=8.5,
    summary="edited 8 times",
    evidence=(3, 5, 8),
    since_step=5,
    step=8,
    at=AT,
)
STEP = Step(
    number=3,
    kind=StepKind.CHECKPOINT,
    at=AT,
    args='{"command": "caf\u00e9 \\u0000"}',
    edits=(Edit(path="a.py", digest="1f"), Edit(path="b.py", deleted=True)),
    ok=False,
    exit_code=1,
    output="line\n\x00\u2028end",
    checkpoint=Checkpoint(
        progress_percent=40,
        confidence=70,
        decision=CheckpointDecision.PIVOT,
        blockers=("no network",),
    ),
)
RECORDS: list[Record] = [
    TaskTransition(lifecycle=Lifecycle.COMPLETED, passed=2, total=2),
    AttemptTransition(lifecycle=Lifecycle.FAILED, reason="stopped", ending=Ending.STUCK),
    STEP,
    Change(
        lifecycle=Lifecycle.INPUT_REQUIRED,
        plan_step_requests=12,
        model="b",
        budget=Budget(requests=Meter(used=12, limit=60), minutes=Meter(used=0.25)),
    ),
    Plan(
        steps=(
            PlanStep(title="a", state=PlanStepState.DONE, flag="no tests"),
            PlanStep(title="b", files=("b.py",), acceptance=("true",), confidence=40, requests=9),
        ),
        revision=1,
    ),
    PlanCheck(
        plan_step=2,
        assumption="there is an auth module",
        reality="there is none",
        impact="b needs one",
        options=("write one", "do without"),
        choice="do without: fewer new files",
        proposed=("b without auth",),
        ruling=Ruling.PENDING,
    ),
    Completion(
        plan_step=1,
        goal="a",
        claims=(Claim(what="a.py", state=ClaimState.UNPROVEN, reason="it was not run"),),
        confidence=75,
        accepted=True,
        flag="no tests",
        doubts=("it was not run",),
    ),
    Analysis(
        what="503", cause=Cause.TRANSIENT, root="overload", remedy="wait", by=AnalysisAuthor.WATCH
    ),
    BudgetRequest(wanted=Grant(requests=20, minutes=1.5), reason="the tests are slow"),
    PermissionRequest(tool="execute", what="run `rm -rf build`", step=3),
    Spending(role="planner", model="m", requests=2, tokens=1200, cost_usd=0.01),
    Acceptance(check="pytest", passed=False, detail="1 failed"),
    ALERT,
    Escalation(id=1, attempt=2, state=EscalationState.OPEN, alerts=(KEY,), reason="stuck"),
    Decision(
        escalation=1,
        action=Action.REPLAN,
        diagnosis=Diagnosis.WRONG_APPROACH,
        message="try b",
        rationale="a failed",
        plan=("b", "c"),
        terms=Terms(grant=Grant(tokens=5), parts=(Part(title="c", goal="do c"),)),
        steps=(3, 5),
        by=Actor.SUPERVISOR,
    ),
    Intervention(action=Action.NUDGE, by=Actor.POLICY, escalation=1, answers=(KEY,)),
    Delivery(intervention=9, state=DeliveryState.DELIVERED, step=12),
    OutcomeReport(intervention=9, outcome=Outcome.NO_EFFECT, step=20, reason="same failure"),
    Feedback(
        accepted=False, comment="the wrong file", author="ada", sign=VerdictBasis.EDITED, diff="-a"
    ),
    Recall(lessons=(Recalled(lesson=3, method=Method.TASK, score=0.5),), facts=(4,), tokens=90),
    Summary(text="It was done.", topics=("a", "b", "c"), turns=7),
    Study(about=5, chore=Chore.LESSON, state=StudyState.FAILED, reason="no answer"),
    Lesson(
        text="Run the tests first.",
        tags=("python",),
        files=("a.py",),
        steps=(3,),
        verdict=5,
        origin=Origin.EXPLICIT,
        sources=(2,),
    ),
    LessonMark(lesson=3, act=LessonAct.RATED, rating=4, author="ada"),
    Fact(text="Tests need X.", certainty=Certainty.CONFIRMED, value='{"x":1}', sources=(2,)),
    FactMark(fact=4, act=FactAct.REPLACED, instead=6, reason="newer"),
    FactReview(state=ReviewState.FALLBACK, facts=(4,), error="no answer"),
    Guidelines(version=2, text="# How we work", base=7, sources=(2,)),
    GuidelinesMark(guidelines=8, act=GuidelinesAct.ROLLED_BACK, by=Actor.POLICY),
    Reflection(watermark=9, attempts=(2,), insights=1, proposed=True),
    Trial(guidelines=8, scores=(TrialScore(task="a", before=0.5, after=1.0),), adopted=True),
    Snapshot(commit="a" * 40, base="b" * 40, messages=4, step=3, size=900),
    Fault(part="cycle", error="KeyError: 'x'"),
    Notified(target="phone", keys=("alert 7",)),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: type(each).__name__)
def test_a_record_comes_back_the_same(record: Record) -> None:
    assert read(kind_of(type(record)), record_json(record)) == record


def test_every_kind_of_record_has_a_name_of_its_own() -> None:
    assert [type(record) for record in RECORDS] == list(get_args(Record))
    assert len({kind_of(word) for word in get_args(Record)}) == len(RECORDS)


def test_a_record_says_its_defaults_too() -> None:
    record = TaskTransition(lifecycle=Lifecycle.WORKING)
    assert record_json(record) == '{"lifecycle":"working","reason":"","passed":0,"total":0}'


def test_an_infinite_value_comes_back_infinite() -> None:
    record = replace(ALERT, value=math.inf)
    assert read("alert", record_json(record)) == record


def test_half_a_surrogate_pair_in_an_output_does_not_stop_the_record() -> None:
    broken = Step(number=1, kind=StepKind.TOOL, at=AT, output="bytes \udc80 here", ok=True)
    mended = Step(number=1, kind=StepKind.TOOL, at=AT, output="bytes ? here", ok=True)
    assert read("step", record_json(broken)) == mended


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    assert read("fault", '{"part":"a","error":"b","colour":"red"}') == Fault(part="a", error="b")


def test_a_kind_of_a_newer_version_is_named() -> None:
    with pytest.raises(JournalTooNewError, match="'tide'"):
        read("tide", "{}")


@pytest.mark.parametrize("body", ["", "{", "[]", '{"part":"a"}'])
def test_a_broken_body_is_named(body: str) -> None:
    with pytest.raises(JournalCorruptError, match="broken 'fault'"):
        read("fault", body)


def test_the_error_of_a_broken_body_says_what_is_wrong_and_not_what_stands_there() -> None:
    body = '{"text": 7, "certainty": "my secret", "files": ["my secret", 8]}'
    with pytest.raises(JournalCorruptError) as caught:
        read("fact", body)
    assert str(caught.value) == (
        "the journal holds a broken 'fact': text: Input should be a valid string; "
        "certainty: Input should be 'confirmed' or 'inferred'; "
        "files.1: Input should be a valid string"
    )
    assert "my secret" not in "".join(format_exception(caught.value))


def test_a_damaged_history_is_told_as_such() -> None:
    packed, sqlite = Packed(), dialect()
    stored = packed.process_bind_param(b"{}", sqlite)
    assert packed.process_result_value(stored, sqlite) == b"{}"
    with pytest.raises(JournalCorruptError, match="damaged"):
        packed.process_result_value(b"{}", sqlite)
