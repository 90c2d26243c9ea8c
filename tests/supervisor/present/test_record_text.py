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

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    AlertState,
    Analysis,
    AnalysisAuthor,
    BudgetRequest,
    Chore,
    Claim,
    ClaimState,
    Completion,
    DeliveryState,
    Diagnosis,
    Edit,
    Ending,
    EscalationState,
    FactAct,
    FactMark,
    FactReview,
    FactState,
    Fault,
    Grant,
    Group,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    Intervention,
    KnownGuidelines,
    LessonAct,
    LessonMark,
    Lifecycle,
    Method,
    Notified,
    Origin,
    Outcome,
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
    Resolution,
    ReviewState,
    Ruling,
    Severity,
    Snapshot,
    Spending,
    Step,
    StepKind,
    Study,
    StudyState,
    Terms,
    Trial,
    VerdictBasis,
)
from midwatch_monitor.rules.identity import END_UNKNOWN
from midwatch_stage import factories as make
from midwatch_supervisor.present.call_arguments import arguments_text
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.learning_text import NOTHING, GivenLearning
from midwatch_supervisor.present.record_text import line

TEXTS = Path(__file__).with_name("record_texts.txt")
LINES = TEXTS.with_name("record_lines.jsonl")
WITHOUT_JSON = {
    *(Acceptance, Analysis, BudgetRequest, Completion, FactMark, FactReview, Notified),
    *(Guidelines, GuidelinesMark, LessonMark, PermissionRequest, Plan, PlanCheck, Reflection),
    *(Snapshot, Spending, Trial),
}
"""The kinds of which `--json` says nothing."""
NUDGE = make.intervention(by=Actor.OPERATOR, author="eve", message="Read it.")
PAUSE = make.intervention(Action.PAUSE, by=Actor.OPERATOR)
GRANT = make.intervention(Action.GRANT_BUDGET, terms=Terms(grant=Grant(requests=5)), petition=1)
REFUSAL = make.intervention(message="Simplify.", petition=1)
PROPOSAL = PlanCheck(
    plan_step=3,
    assumption="a module",
    reality="there is none",
    impact="step 4 waits",
    options=("write it", "drop it"),
    choice="drop it",
    proposed=("say so",),
    ruling=Ruling.PENDING,
)
REQUEST = BudgetRequest(wanted=Grant(requests=20, tokens=1_500_000), reason="two\nfiles")
PERMISSION = PermissionRequest(tool="execute", what="run `make\n`", step=3)
LESSON = make.lesson(
    "Too early.\nLater.",
    failure_class="loop",
    insights=("Wait.",),
    steps=(3,),
    kind="coder",
    origin=Origin.EXPLICIT,
)
GIVEN = GivenLearning(
    lessons=(make.known_lesson(7),),
    facts=(make.known_fact(8),),
    guidelines=KnownGuidelines(
        id=4,
        at=make.AT,
        project="p",
        guidelines=make.guidelines(2),
        state=GuidelinesState.LIVE,
    ),
)
RECALL = Recall(
    lessons=(Recalled(lesson=7, method=Method.TASK, score=0.5),),
    facts=(8, 9),
    guidelines=4,
    group=Group.TREATMENT,
    tokens=1_004_300,
    seconds=0.25,
)


def held_back(reason: str) -> Step:
    return make.step(9, "run", ok=False, output=f"[midwatch] refused: {reason}", args="make")


def samples() -> Iterator[tuple[Record, Intervention | None, GivenLearning]]:
    for record in (*works(), *accounts(), *judged(), *learned()):
        yield record, None, NOTHING
    yield make.transition(Lifecycle.INPUT_REQUIRED), PAUSE, NOTHING
    yield PROPOSAL, GRANT, NOTHING
    yield PROPOSAL, REFUSAL, NOTHING
    yield PROPOSAL, make.intervention(Action.REPLAN), NOTHING
    yield REQUEST, GRANT, NOTHING
    yield REQUEST, make.intervention(Action.GRANT_BUDGET, needs_approval=True), NOTHING
    yield PERMISSION, make.intervention(Action.RESUME, petition=1), NOTHING
    for state in DeliveryState:
        yield make.delivery(state=state, author="ann", comment="it fits"), NUDGE, NOTHING
    yield make.delivery(), None, NOTHING
    for outcome in Outcome:
        yield make.outcome(outcome=outcome), NUDGE, NOTHING
    yield RECALL, None, GIVEN
    yield RECALL, None, NOTHING
    yield Recall(group=Group.CONTROL), None, NOTHING


def works() -> Iterator[Record]:
    yield make.task_transition(Lifecycle.COMPLETED, passed=2, total=2)
    yield make.task_transition(Lifecycle.COMPLETED, reason="the session ended")
    yield make.task_transition(Lifecycle.FAILED, reason="no money", passed=0, total=1)
    yield make.transition()
    yield make.transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
    for ending in Ending:
        yield make.ended(ending, reason="so it is")
    yield make.change(node="north")
    yield make.change(lifecycle=Lifecycle.WORKING)
    yield make.change(model="big", plan_step=2, doing="pytest", sandbox="none")
    yield make.away()
    yield make.away(since=90, seconds=20, reason="HTTP 429: slow\ndown")
    yield make.away(since=7200, next_try=None, reason="Connection refused")
    yield make.away(since=7200, over=True)
    yield Snapshot(commit="0123456789abcdef", messages=4, step=7, size=12_345)
    yield Snapshot(commit="0123456789abcdef", messages=4, step=7, branch="midwatch/1")
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


def accounts() -> Iterator[Record]:
    known = PlanStep(title="write", files=("a.py",), confidence=40, requests=12)
    done = PlanStep(title="read", state=PlanStepState.DONE, flag="by eye only")
    skipped = PlanStep(title="skip", state=PlanStepState.SKIPPED)
    yield Plan(steps=(done, skipped, known), revision=1)
    yield Plan(steps=(done,))
    yield PROPOSAL
    yield PlanCheck(plan_step=2, assumption="a", reality="b", impact="c")
    yield PlanCheck(
        plan_step=2, assumption="a", reality="b", impact="c", ruling=Ruling.REFUSED, reason="late"
    )
    yield REQUEST
    yield PERMISSION
    yield Completion(plan_step=0, goal="all of it", confidence=90, accepted=True)
    yield Completion(
        plan_step=2, goal="it rounds", confidence=75, accepted=True, flag="no test", doubts=("a",)
    )
    claim = Claim(what="a.py", state=ClaimState.UNPROVEN, reason="no such file")
    yield Completion(
        plan_step=2, goal="it rounds", claims=(claim,), confidence=40, accepted=False, doubts=("b",)
    )
    yield make.analysis(7)
    yield make.analysis(0, by=AnalysisAuthor.WATCH)
    yield Spending(role="planner", model="m", requests=1, tokens=1_004_300, cost_usd=0.5)
    yield Spending(role="reviewer", model="")


def judged() -> Iterator[Record]:
    yield make.alert("cycle", Severity.CRITICAL, subject="a.py", evidence=(1, 3), step=3)
    yield make.alert("cycle", Severity.NOTICE, AlertState.PENDING, evidence=(1,))
    for resolution in Resolution:
        yield make.alert(state=AlertState.RESOLVED, resolution=resolution)
    yield make.escalation(4, "cycle", "silence", "cycle")
    yield make.escalation(4, state=EscalationState.CLOSED, reason="it is over")
    yield make.decision(steps=(3, 5), by=Actor.SUPERVISOR, author="m", plan=("read", "write"))
    yield make.decision(Action.STOP, refused="the attempt is over")
    yield NUDGE
    yield make.intervention(Action.RESTART, terms=Terms(model="big"), needs_approval=True)
    parts = (Part(title="read", goal=""), Part(title="write", goal=""))
    yield make.intervention(
        Action.SPLIT,
        terms=Terms(parts=parts),
        diagnosis=Diagnosis.NEEDS_SPLIT,
        plan=("one", "two"),
        answers=(make.alert().key,),
    )
    yield make.intervention(
        Action.RESTART, terms=Terms(worker="careful", keep=("a.py", "b/*"), after="db")
    )
    yield make.outcome()
    yield Fault(part="cycle", error="boom")
    yield Fault(part="learning: facts", error="no answer")
    yield Fault(part="node", error="north is gone")
    yield Notified(target="phone", keys=("alert:7", "waiting:1:answer:9"))


def learned() -> Iterator[Record]:
    yield make.feedback(author="ada", comment="good")
    yield make.feedback(
        accepted=False, origin=Origin.IMPLIED, sign=VerdictBasis.EDITED, diff="-a\n+b"
    )
    yield make.feedback(origin=Origin.AUTOMATIC, sign=VerdictBasis.REVIEWED, author="m")
    yield make.summary(turns=4, model="m")
    yield LESSON
    yield LessonMark(lesson=7, act=LessonAct.RATED, rating=4, author="ada", comment="true")
    yield LessonMark(lesson=7, act=LessonAct.ARCHIVED)
    for state in FactState:
        yield make.fact(state=state, files=("a.py",))
    yield FactMark(fact=8, act=FactAct.REPLACED, instead=9, reason="newer", author="m")
    yield FactReview(state=ReviewState.FALLBACK, facts=(1, 2), error="timeout")
    yield FactReview(state=ReviewState.OK, facts=(1, 2), removed=1, conflicts=1)
    yield FactReview(state=ReviewState.OK, facts=(1,))
    yield make.guidelines(2)
    for act in GuidelinesAct:
        yield GuidelinesMark(guidelines=4, act=act, author="ada", comment="yes")
    for state in StudyState:
        yield Study(about=1, chore=Chore.LESSON, state=state, reason="no model")
    yield Reflection(watermark=3, attempts=(1, 2), insights=1, proposed=True)
    yield Reflection(watermark=3, skipped="no attempt")
    yield Reflection(watermark=3, error="timeout")
    yield Trial(guidelines=4, reason="no gain")


def rendered() -> str:
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


@pytest.mark.parametrize(("file", "told"), [(TEXTS, rendered), (LINES, json_lines)])
def test_each_record_is_told_as_the_golden_file_says(file: Path, told: Callable[[], str]) -> None:
    if os.environ.get("MIDWATCH_UPDATE"):
        file.write_text(told(), encoding="utf-8")
    assert told() == file.read_text(encoding="utf-8")


def test_every_kind_of_record_has_a_line_and_a_detail() -> None:
    told = {type(record) for record, _, _ in samples()}
    assert told == set(get_args(Record))
    for record, about, given in samples():
        assert line(record, about, given).text
        assert line(record, about, given).detail


def test_every_kind_of_record_has_a_json_form_or_is_named_as_without() -> None:
    transcript = Transcript([make.task()], [make.attempt()])
    transcript.line(make.entry(1, NUDGE))
    entries = (make.entry(id, record) for id, (record, _, _) in enumerate(samples(), start=2))
    shown = {type(each.record) for each in entries if transcript.line(each, NOTHING)}
    assert shown | WITHOUT_JSON == set(get_args(Record))
    assert not shown & WITHOUT_JSON


def test_an_intervention_is_named_with_the_id_that_commands_take() -> None:
    assert line(NUDGE, id=12).text == "nudge 12 issued, by eve (operator): Read it."


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ('{"command": "make", "timeout": null}', "make"),
        ('{"command": "make", "description": "Build it"}', "make"),
        ('{"path": "a.py", "limit": 5}', "path: a.py, limit: 5"),
        ("{}", ""),
        ("ls -l", "ls -l"),
        ("[1]", "[1]"),
    ],
)
def test_arguments_are_written_for_people(args: str, text: str) -> None:
    assert arguments_text(args) == text


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "\u202egnp.exe", "a\x07b", "[b]x[/b]"])
def test_what_agents_wrote_has_no_power_over_a_terminal(text: str) -> None:
    for record in (
        make.step(1, text, args=text, output=text, text=text),
        make.analysis(root=text, remedy=text),
        make.lesson(text, failure_class=text),
        make.feedback(comment=text, author=text),
        make.intervention(message=text, author=text, terms=Terms(model=text)),
        make.plan(text),
    ):
        shown = f"{line(record).what}{line(record).text}{line(record).detail}"
        assert not {"\x1b", "\u202e", "\x07"} & set(shown)
        assert ("[b]x[/b]" in shown) == (text == "[b]x[/b]")


def test_an_endless_text_is_cut_to_what_a_line_can_show() -> None:
    step = Step(number=1, kind=StepKind.MESSAGE, text="x" * 1_000_000)
    assert len(line(step).text) == 500


def test_a_failed_call_is_told_by_what_it_asked_and_what_it_answered() -> None:
    beside = make.step(3, "write_file", path="out.txt", ok=False, output="disk full\n")
    beside = replace(beside, edits=(Edit(path="other.log"),))
    assert line(beside).text == "FAILED: out.txt: disk full"


def test_an_interrupted_call_is_not_told_as_done() -> None:
    cut = make.step(3, "execute", args='{"command": "make"}', output=END_UNKNOWN)
    assert line(replace(cut, ok=None)).text == "INTERRUPTED: make"


@pytest.mark.parametrize(
    ("plan_steps", "of"), [(0, ""), (1, ""), (3, " of plan step 2"), (2, " of plan step 2")]
)
def test_progress_is_that_of_a_plan_step_if_there_is_a_plan(plan_steps: int, of: str) -> None:
    said = line(make.reflecting(plan_step=2), plan_steps=plan_steps)
    assert said.text == f"progress 40 %{of}, confidence 70 %, continue"
    assert f"progress 40 %{of}, confidence" in said.detail


def test_an_escalation_whose_reason_is_its_rules_says_them_once() -> None:
    assert line(make.escalation(4, "cycle", reason="cycle")).text == "4 open: cycle"
    assert (
        line(make.escalation(4, "cycle", reason="it circles")).text == "4 open: cycle: it circles"
    )


def test_a_doubt_that_the_flag_tells_is_told_once() -> None:
    flag = "unproven: it rounds: no test"
    known = Completion(
        plan_step=1,
        goal="g",
        confidence=75,
        accepted=True,
        flag=flag,
        doubts=("it rounds: no test",),
    )
    assert line(known).text.count("it rounds") == line(known).detail.count("it rounds") == 1
