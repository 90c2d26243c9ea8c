"""Records become JSON and come back the same."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from traceback import format_exception
from typing import get_args

import pytest
from sqlalchemy.dialects.sqlite import dialect

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core.encoding import kind_of, read, record_json
from midwatch_monitor.journal.core.tables import Packed

AT = datetime(2026, 11, 21, 20, 0, 0, 123456, tzinfo=UTC)
KEY = r.AlertKey(rule="repeated_edits", subject="src/a.py")
ALERT = r.Alert(
    key=KEY,
    severity=r.Severity.WARNING,
    state=r.AlertState.FIRING,
    value=8.5,
    summary="edited 8 times",
    evidence=(3, 5, 8),
    since_step=5,
    step=8,
    at=AT,
)
STEP = r.Step(
    number=3,
    kind=r.StepKind.CHECKPOINT,
    at=AT,
    args='{"command": "caf\u00e9 \\u0000"}',
    edits=(r.Edit(path="a.py", digest="1f"), r.Edit(path="b.py", deleted=True)),
    ok=False,
    exit_code=1,
    output="line\n\x00\u2028end",
    checkpoint=r.Checkpoint(
        progress_percent=40,
        confidence=70,
        decision=r.CheckpointDecision.PIVOT,
        blockers=("no network",),
    ),
)
RECORDS: list[r.Record] = [
    r.TaskTransition(lifecycle=r.Lifecycle.COMPLETED, passed=2, total=2),
    r.AttemptTransition(lifecycle=r.Lifecycle.FAILED, reason="stopped", ending=r.Ending.STUCK),
    STEP,
    r.Change(
        lifecycle=r.Lifecycle.INPUT_REQUIRED,
        plan_step_requests=12,
        model="b",
        budget=r.Budget(requests=r.Meter(used=12, limit=60), minutes=r.Meter(used=0.25)),
    ),
    r.Plan(
        steps=(
            r.PlanStep(title="a", state=r.PlanStepState.DONE, flag="no tests"),
            r.PlanStep(title="b", files=("b.py",), acceptance=("true",), confidence=40, requests=9),
        ),
        revision=1,
    ),
    r.PlanCheck(
        plan_step=2,
        assumption="there is an auth module",
        reality="there is none",
        impact="b needs one",
        options=("write one", "do without"),
        choice="do without: fewer new files",
        proposed=("b without auth",),
        ruling=r.Ruling.PENDING,
    ),
    r.Completion(
        plan_step=1,
        goal="a",
        claims=(r.Claim(what="a.py", state=r.ClaimState.UNPROVEN, reason="it was not run"),),
        confidence=75,
        accepted=True,
        flag="no tests",
        doubts=("it was not run",),
    ),
    r.Analysis(
        what="503",
        cause=r.Cause.TRANSIENT,
        root="overload",
        remedy="wait",
        by=r.AnalysisAuthor.WATCH,
    ),
    r.BudgetRequest(wanted=r.Grant(requests=20, minutes=1.5), reason="the tests are slow"),
    r.PermissionRequest(tool="execute", what="run `rm -rf build`", step=3),
    r.Spending(role="planner", model="m", requests=2, tokens=1200, cost_usd=0.01),
    r.Acceptance(check="pytest", passed=False, detail="1 failed"),
    ALERT,
    r.Escalation(id=1, attempt=2, state=r.EscalationState.OPEN, alerts=(KEY,), reason="stuck"),
    r.Decision(
        escalation=1,
        action=r.Action.REPLAN,
        diagnosis=r.Diagnosis.WRONG_APPROACH,
        message="try b",
        rationale="a failed",
        plan=("b", "c"),
        terms=r.Terms(grant=r.Grant(tokens=5), parts=(r.Part(title="c", goal="do c"),)),
        steps=(3, 5),
        by=r.Actor.SUPERVISOR,
    ),
    r.Intervention(action=r.Action.NUDGE, by=r.Actor.POLICY, escalation=1, answers=(KEY,)),
    r.Delivery(intervention=9, state=r.DeliveryState.DELIVERED, step=12),
    r.OutcomeReport(intervention=9, outcome=r.Outcome.NO_EFFECT, step=20, reason="same failure"),
    r.Feedback(
        accepted=False,
        comment="the wrong file",
        author="ada",
        sign=r.VerdictBasis.EDITED,
        diff="-a",
    ),
    r.Recall(
        lessons=(r.Recalled(lesson=3, method=r.Method.TASK, score=0.5),), facts=(4,), tokens=90
    ),
    r.Summary(text="It was done.", topics=("a", "b", "c"), turns=7),
    r.Study(about=5, chore=r.Chore.LESSON, state=r.StudyState.FAILED, reason="no answer"),
    r.Lesson(
        text="Run the tests first.",
        tags=("python",),
        files=("a.py",),
        steps=(3,),
        verdict=5,
        origin=r.Origin.EXPLICIT,
        sources=(2,),
    ),
    r.LessonMark(lesson=3, act=r.LessonAct.RATED, rating=4, author="ada"),
    r.Fact(text="Tests need X.", certainty=r.Certainty.CONFIRMED, value='{"x":1}', sources=(2,)),
    r.FactMark(fact=4, act=r.FactAct.REPLACED, instead=6, reason="newer"),
    r.FactReview(state=r.ReviewState.FALLBACK, facts=(4,), error="no answer"),
    r.Guidelines(version=2, text="# How we work", base=7, sources=(2,)),
    r.GuidelinesMark(guidelines=8, act=r.GuidelinesAct.ROLLED_BACK, by=r.Actor.POLICY),
    r.Reflection(watermark=9, attempts=(2,), insights=1, proposed=True),
    r.Trial(guidelines=8, scores=(r.TrialScore(task="a", before=0.5, after=1.0),), adopted=True),
    r.Snapshot(commit="a" * 40, base="b" * 40, messages=4, step=3, size=900),
    r.Fault(part="cycle", error="KeyError: 'x'"),
    r.Notified(target="phone", keys=("alert 7",)),
]
MORE = [replace(ALERT, value=math.inf)]


@pytest.mark.parametrize("record", [*RECORDS, *MORE], ids=lambda each: type(each).__name__)
def test_a_record_comes_back_the_same(record: r.Record) -> None:
    assert read(kind_of(type(record)), record_json(record)) == record


def test_every_kind_of_record_has_a_name_of_its_own() -> None:
    assert [type(record) for record in RECORDS] == list(get_args(r.Record))
    assert len({kind_of(word) for word in get_args(r.Record)}) == len(RECORDS)


def test_a_record_says_its_defaults_too() -> None:
    record = r.TaskTransition(lifecycle=r.Lifecycle.WORKING)
    assert record_json(record) == '{"lifecycle":"working","reason":"","passed":0,"total":0}'


def test_half_a_surrogate_pair_in_an_output_does_not_stop_the_record() -> None:
    broken = r.Step(number=1, kind=r.StepKind.TOOL, at=AT, output="bytes \udc80 here", ok=True)
    mended = r.Step(number=1, kind=r.StepKind.TOOL, at=AT, output="bytes ? here", ok=True)
    assert read("step", record_json(broken)) == mended


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    assert read("fault", '{"part":"a","error":"b","colour":"red"}') == r.Fault(part="a", error="b")


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
