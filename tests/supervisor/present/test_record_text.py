"""What each kind of record says: one line, one detail, one JSON form.

The wordings stand in `record_texts.txt` beside this file, the JSON forms in `record_lines.jsonl`;
`MIDWATCH_UPDATE=1` writes both anew.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.rules.identity import END_UNKNOWN
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.learning_text import NOTHING, GivenLearning
from midwatch_supervisor.present.record_text import line
from midwatch_tests import factories as make

TEXTS = Path(__file__).with_name("record_texts.txt")
LINES = TEXTS.with_name("record_lines.jsonl")
WITHOUT_JSON = {
    *(r.Acceptance, r.Analysis, r.BudgetRequest, r.Completion, r.FactMark, r.FactReview),
    *(r.Guidelines, r.GuidelinesMark, r.LessonMark, r.Notified, r.PermissionRequest, r.Plan),
    *(r.PlanCheck, r.Reflection, r.Snapshot, r.Spending, r.Trial),
}
"""The kinds of which `--json` says nothing."""
NUDGE = make.intervention(by=r.Actor.OPERATOR, author="eve", message="Read it.")
PAUSE = make.intervention(r.Action.PAUSE, by=r.Actor.OPERATOR)
GRANT = make.intervention(
    r.Action.GRANT_BUDGET, terms=r.Terms(grant=r.Grant(requests=5)), petition=1
)
REFUSAL = make.intervention(message="Simplify.", petition=1)
PROPOSAL = r.PlanCheck(
    plan_step=3,
    assumption="a module",
    reality="there is none",
    impact="step 4 waits",
    options=("write it", "drop it"),
    choice="drop it",
    proposed=("say so",),
    ruling=r.Ruling.PENDING,
)
REQUEST = r.BudgetRequest(wanted=r.Grant(requests=20, tokens=1_500_000), reason="two\nfiles")
PERMISSION = r.PermissionRequest(tool="execute", what="run `make\n`", step=3)
LESSON = make.lesson(
    "Too early.\nLater.",
    failure_class="loop",
    insights=("Wait.",),
    steps=(3,),
    kind="coder",
    origin=r.Origin.EXPLICIT,
)
GIVEN = GivenLearning(
    lessons=(make.known_lesson(7),),
    facts=(make.known_fact(8),),
    guidelines=r.KnownGuidelines(
        id=4,
        at=make.AT,
        project="p",
        guidelines=make.guidelines(2),
        state=r.GuidelinesState.LIVE,
    ),
)
RECALL = r.Recall(
    lessons=(r.Recalled(lesson=7, method=r.Method.TASK, score=0.5),),
    facts=(8, 9),
    guidelines=4,
    group=r.Group.TREATMENT,
    tokens=1_004_300,
    seconds=0.25,
)


def held_back(reason: str) -> r.Step:
    return make.step(9, "run", ok=False, output=f"[midwatch] refused: {reason}", args="make")


def samples() -> Iterator[tuple[r.Record, r.Intervention | None, GivenLearning]]:
    for record in (*works(), *accounts(), *judgement_records(), *learning_records()):
        yield record, None, NOTHING
    yield make.transition(r.Lifecycle.INPUT_REQUIRED), PAUSE, NOTHING
    yield PROPOSAL, GRANT, NOTHING
    yield PROPOSAL, REFUSAL, NOTHING
    yield PROPOSAL, make.intervention(r.Action.REPLAN), NOTHING
    yield REQUEST, GRANT, NOTHING
    yield REQUEST, make.intervention(r.Action.GRANT_BUDGET, needs_approval=True), NOTHING
    yield PERMISSION, make.intervention(r.Action.RESUME, petition=1), NOTHING
    for state in r.DeliveryState:
        yield make.delivery(state=state, author="ann", comment="it fits"), NUDGE, NOTHING
    yield make.delivery(), None, NOTHING
    for outcome in r.Outcome:
        yield make.outcome(outcome=outcome), NUDGE, NOTHING
    yield RECALL, None, GIVEN
    yield RECALL, None, NOTHING
    yield r.Recall(group=r.Group.CONTROL), None, NOTHING


def works() -> Iterator[r.Record]:
    yield make.task_transition(r.Lifecycle.COMPLETED, passed=2, total=2)
    yield make.task_transition(r.Lifecycle.COMPLETED, reason="the session ended")
    yield make.task_transition(r.Lifecycle.FAILED, reason="no money", passed=0, total=1)
    yield make.transition()
    yield make.transition(r.Lifecycle.INPUT_REQUIRED, reason="Which port?")
    for ending in r.Ending:
        yield make.ended(ending, reason="so it is")
    yield make.change(node="north")
    yield make.change(lifecycle=r.Lifecycle.WORKING)
    yield make.change(model="big", plan_step=2, doing="pytest", sandbox="none")
    yield make.away()
    yield make.away(since=90, seconds=20, reason="HTTP 429: slow\ndown")
    yield make.away(since=7200, next_try=None, reason="Connection refused")
    yield make.away(since=7200, over=True)
    yield r.Snapshot(commit="0123456789abcdef", messages=4, step=7, size=12_345)
    yield r.Snapshot(commit="0123456789abcdef", messages=4, step=7, branch="midwatch/1")
    yield make.acceptance()
    yield make.acceptance(passed=False, detail="1 failed")
    yield make.step(1, "write", edits=(make.edit("a.py"), make.edit("b.py")))
    yield make.step(2, "bash", args='{"command": "make", "timeout": null}')
    yield make.step(
        3,
        "run",
        args="make",
        ok=False,
        exit_code=2,
        output="no rule",
        text="I build.",
        tokens=12_345,
        cost_usd=0.123,
        edits=(make.edit("a.py"),),
    )
    yield make.step(4, exit_code=1)
    yield make.message(6, text="", ok=False, output="Connection error.")
    yield make.step(1, tool="report_error", output="permanent: The path is wrong")
    yield held_back("this is attempt 2. Before any work, call `report_error`: why it failed.")
    yield held_back("plan step 2 begins. Call `check_plan` first: what the plan takes for granted.")
    yield held_back("`make` failed; by your analysis the cause is permanent. Change the approach.")
    yield make.message(5, "It\nis done.")
    yield make.reflecting(
        6, blockers=("no key",), files_done=("a.py",), notes="another way", estimated_steps_left=3
    )

    failed = make.step(3, "write_file", path="out.txt", ok=False, output="disk full\n")
    yield replace(failed, edits=(make.edit("other.log"),))
    yield make.step(3, "execute", args='{"command": "make"}', output=END_UNKNOWN, ok=None)
    yield make.step(3, "execute", args='{"command": "make", "description": "Build it"}')
    for args in ('{"path": "a.py", "limit": 5}', "{}", "ls -l", "[1]"):
        yield make.step(3, "look", args=args)


def accounts() -> Iterator[r.Record]:
    known = r.PlanStep(title="write", files=("a.py",), confidence=40, requests=12)
    done = r.PlanStep(title="read", state=r.PlanStepState.DONE, flag="by eye only")
    skipped = r.PlanStep(title="skip", state=r.PlanStepState.SKIPPED)
    yield r.Plan(steps=(done, skipped, known), revision=1)
    yield r.Plan(steps=(done,))
    yield PROPOSAL
    yield r.PlanCheck(plan_step=2, assumption="a", reality="b", impact="c")
    yield r.PlanCheck(
        plan_step=2, assumption="a", reality="b", impact="c", ruling=r.Ruling.REFUSED, reason="late"
    )
    yield REQUEST
    yield PERMISSION
    yield r.Completion(plan_step=0, goal="all of it", confidence=90, accepted=True)
    yield r.Completion(
        plan_step=2, goal="it rounds", confidence=75, accepted=True, flag="no test", doubts=("a",)
    )
    flag, doubts = "unproven: it rounds: no test", ("it rounds: no test",)  # told once
    yield r.Completion(
        plan_step=1, goal="g", confidence=75, accepted=True, flag=flag, doubts=doubts
    )
    claim = r.Claim(what="a.py", state=r.ClaimState.UNPROVEN, reason="no such file")
    yield r.Completion(
        plan_step=2, goal="it rounds", claims=(claim,), confidence=40, accepted=False, doubts=("b",)
    )
    yield make.analysis(7)
    yield make.analysis(0, by=r.AnalysisAuthor.WATCH)
    yield r.Spending(role="planner", model="m", requests=1, tokens=1_004_300, cost_usd=0.5)
    yield r.Spending(role="reviewer", model="")


def judgement_records() -> Iterator[r.Record]:
    yield make.alert("cycle", r.Severity.CRITICAL, subject="a.py", evidence=(1, 3), step=3)
    yield make.alert("cycle", r.Severity.NOTICE, r.AlertState.PENDING, evidence=(1,))
    for resolution in r.Resolution:
        yield make.alert(state=r.AlertState.RESOLVED, resolution=resolution)
    yield make.escalation(4, "cycle", "silence", "cycle")
    yield make.escalation(4, "cycle", reason="cycle")  # told once
    yield make.escalation(4, "cycle", reason="it circles")
    yield make.escalation(4, state=r.EscalationState.CLOSED, reason="it is over")
    yield make.decision(steps=(3, 5), by=r.Actor.SUPERVISOR, author="m", plan=("read", "write"))
    yield make.decision(r.Action.STOP, refused="the attempt is over")
    yield NUDGE
    yield make.intervention(r.Action.RESTART, terms=r.Terms(model="big"), needs_approval=True)
    parts = (r.Part(title="read", goal=""), r.Part(title="write", goal=""))
    yield make.intervention(
        r.Action.SPLIT,
        terms=r.Terms(parts=parts),
        diagnosis=r.Diagnosis.NEEDS_SPLIT,
        plan=("one", "two"),
        answers=(make.alert().key,),
    )
    yield make.intervention(
        r.Action.RESTART, terms=r.Terms(worker="careful", keep=("a.py", "b/*"), after="db")
    )
    yield make.outcome()
    yield r.Fault(part="cycle", error="boom")
    yield r.Fault(part="learning: facts", error="no answer")
    yield r.Fault(part="node", error="north is gone")
    yield r.Notified(target="phone", keys=("alert:7", "waiting:1:answer:9"))


def learning_records() -> Iterator[r.Record]:
    yield make.feedback(author="ada", comment="good")
    yield make.feedback(
        accepted=False, origin=r.Origin.IMPLIED, sign=r.VerdictBasis.EDITED, diff="-a\n+b"
    )
    yield make.feedback(origin=r.Origin.AUTOMATIC, sign=r.VerdictBasis.REVIEWED, author="m")
    yield make.summary(turns=4, model="m")
    yield LESSON
    yield r.LessonMark(lesson=7, act=r.LessonAct.RATED, rating=4, author="ada", comment="true")
    yield r.LessonMark(lesson=7, act=r.LessonAct.ARCHIVED)
    for state in r.FactState:
        yield make.fact(state=state, files=("a.py",))
    yield r.FactMark(fact=8, act=r.FactAct.REPLACED, instead=9, reason="newer", author="m")
    yield r.FactReview(state=r.ReviewState.FALLBACK, facts=(1, 2), error="timeout")
    yield r.FactReview(state=r.ReviewState.OK, facts=(1, 2), removed=1, conflicts=1)
    yield r.FactReview(state=r.ReviewState.OK, facts=(1,))
    yield make.guidelines(2)
    for act in r.GuidelinesAct:
        yield r.GuidelinesMark(guidelines=4, act=act, author="ada", comment="yes")
    for state in r.StudyState:
        yield r.Study(about=1, chore=r.Chore.LESSON, state=state, reason="no model")
    yield r.Reflection(watermark=3, attempts=(1, 2), insights=1, proposed=True)
    yield r.Reflection(watermark=3, skipped="no attempt")
    yield r.Reflection(watermark=3, error="timeout")
    yield r.Trial(guidelines=4, reason="no gain")


def samples_text() -> str:
    blocks: list[str] = []
    for record, about, given in samples():
        told = line(record, about, given)
        head = f"## {type(record).__name__}\n{told.sign} {told.what}: {told.text}"
        more = line(record, about, given).detail if told.parts else ""
        body = "".join(f"    {each}\n" if each else "\n" for each in more.splitlines())
        blocks.append(f"{head}  [{told.tone.name.lower()}]\n{body}")
    return "\n".join(blocks)


def json_lines() -> str:
    """A line for each sample that has one, after a nudge that stamps and outcomes are about."""
    transcript = Transcript([make.task(name="totals")], [make.attempt(model="m")])
    transcript.line(make.entry(1, NUDGE))
    entries = (make.entry(id, record) for id, (record, _, _) in enumerate(samples(), start=2))
    found = (transcript.line(each, NOTHING) for each in entries)
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in found if each)


@pytest.mark.parametrize(("file", "told"), [(TEXTS, samples_text), (LINES, json_lines)])
def test_each_record_is_told_as_the_golden_file_says(file: Path, told: Callable[[], str]) -> None:
    if os.environ.get("MIDWATCH_UPDATE"):
        file.write_text(told(), encoding="utf-8")
    assert told() == file.read_text(encoding="utf-8")


def test_every_kind_of_record_is_in_the_files_and_has_a_json_form_or_is_named_as_without() -> None:
    transcript = Transcript([make.task()], [make.attempt()])
    transcript.line(make.entry(1, NUDGE))
    entries = [make.entry(id, record) for id, (record, _, _) in enumerate(samples(), start=2)]
    assert {type(each.record) for each in entries} == set(get_args(r.Record))
    shown = {type(each.record) for each in entries if transcript.line(each, NOTHING)}
    assert shown | WITHOUT_JSON == set(get_args(r.Record))
    assert not shown & WITHOUT_JSON


def test_an_intervention_is_named_with_the_id_that_commands_take() -> None:
    assert line(NUDGE, id=12).text == "nudge 12 issued, by eve (operator): Read it."


def test_an_endless_text_is_cut_to_what_a_line_can_show() -> None:
    step = r.Step(number=1, kind=r.StepKind.MESSAGE, text="x" * 1_000_000)
    assert len(line(step).text) == 500


@pytest.mark.parametrize(
    ("plan_steps", "of"), [(0, ""), (1, ""), (3, " of plan step 2"), (2, " of plan step 2")]
)
def test_progress_is_that_of_a_plan_step_if_there_is_a_plan(plan_steps: int, of: str) -> None:
    said = line(make.reflecting(plan_step=2), plan_steps=plan_steps)
    assert said.text == f"progress 40 %{of}, confidence 70 %, continue"
    assert f"progress 40 %{of}, confidence" in said.detail
