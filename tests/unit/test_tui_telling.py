"""What records say to a person, as a line and as a whole."""

import pytest

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Checkpoint,
    Course,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Edit,
    Escalation,
    EscalationState,
    Fault,
    Feedback,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Resolution,
    Severity,
    Step,
    StepKind,
)
from midwatch_supervisor.present.record_text import detail, line, spelled
from midwatch_supervisor.present.text_line import Told, Tone

KEY = AlertKey(rule="repeated_edits", subject="a.py")
NUDGE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="eve", message="Read it.")
RUN = Step(
    number=7,
    kind=StepKind.TOOL,
    tool="run",
    args='{"command": "make"}',
    ok=False,
    exit_code=2,
    output="no rule",
    text="I build.",
    tokens=12,
)
REPORT = Checkpoint(
    progress_percent=40,
    confidence=30,
    decision=Course.PIVOT,
    blockers=("no key",),
    files_done=("a.py",),
    notes="another way",
    estimated_steps_left=3,
    plan_step=2,
)
FIRING = Alert(
    key=KEY,
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    value=5,
    summary="five edits",
    evidence=(1, 3),
    since_step=1,
    step=3,
)
RESOLVED = Alert(
    key=KEY,
    severity=Severity.WARNING,
    state=AlertState.RESOLVED,
    value=5,
    summary="",
    since_step=1,
    step=9,
    resolution=Resolution.CLEARED,
)
PLAN = Plan(
    steps=(PlanStep(title="find it", state=PlanStepState.DONE), PlanStep(title="fix it")),
    revision=1,
)


def of(sign: str, what: str, text: str, tone: Tone = Tone.PLAIN) -> Told:
    return Told(sign=sign, what=what, text=text, tone=tone)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (RUN, of("✗", "run", "FAILED (exit code 2): make", Tone.WARN)),
        (
            Step(number=1, kind=StepKind.TOOL, tool="write", edits=(Edit(path="a.py"),), ok=True),
            of("·", "write", "a.py"),
        ),
        (
            Step(number=1, kind=StepKind.MESSAGE, text="It\nis done."),
            of("“", "says", "It is done."),
        ),
        (
            Step(number=1, kind=StepKind.CHECKPOINT, checkpoint=REPORT),
            of(
                "◆",
                "reflects",
                "progress 40 % of plan step 2, confidence 30 %, pivot, blocked by no key: "
                "another way",
                Tone.ACCENT,
            ),
        ),
        (
            FIRING,
            of("■", "alert", "firing critical repeated_edits (a.py): five edits", Tone.BAD),
        ),
        (
            RESOLVED,
            of("○", "alert", "resolved (cleared) warning repeated_edits (a.py)", Tone.DIM),
        ),
        (
            AttemptTransition(lifecycle=Lifecycle.FAILED, reason="no money"),
            of("✗", "status", "failed: no money", Tone.BAD),
        ),
        (PLAN, of("≡", "plan", "revision 1, plan step 2 of 2: fix it", Tone.DIM)),
        (NUDGE, of("→", "message", "nudge issued, by eve (operator): Read it.", Tone.ACCENT)),
        (
            Acceptance(check="make test", passed=False),
            of("✗", "check", "FAILED make test", Tone.BAD),
        ),
        (
            Feedback(accepted=True, comment="good", author="eve"),
            of("✓", "verdict", "result accepted by eve: good", Tone.GOOD),
        ),
        (
            Fault(part="cycle", error="boom"),
            of("✗", "fault", "cycle of the watch failed: boom", Tone.BAD),
        ),
        (
            Escalation(id=4, attempt=1, state=EscalationState.OPEN, alerts=(KEY, KEY)),
            of("!", "escalation", "4 open: repeated_edits", Tone.WARN),
        ),
        (
            Decision(
                escalation=4,
                action=Action.NUDGE,
                diagnosis=Diagnosis.WRONG_APPROACH,
                message="Read it.",
                rationale="It repeats.",
                by=Actor.SUPERVISOR,
                author="m",
            ),
            of("§", "decision", "nudge by m: wrong_approach: It repeats.", Tone.ACCENT),
        ),
    ],
    ids=lambda value: value.what if isinstance(value, Told) else "",
)
def test_a_record_as_a_line(record: Record, told: Told) -> None:
    assert line(record) == told


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (
            Delivery(intervention=1, state=DeliveryState.REJECTED, author="eve", comment="no"),
            of("✗", "rejected", "nudge rejected by eve: no", Tone.WARN),
        ),
        (
            OutcomeReport(intervention=1, outcome=Outcome.NO_EFFECT, step=9, reason="it stands"),
            of("=", "outcome", "nudge: no effect: it stands", Tone.WARN),
        ),
    ],
)
def test_what_became_of_an_act_names_the_act(record: Record, told: Told) -> None:
    assert line(record, NUDGE) == told


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ('{"command": "make", "timeout": null}', "make"),
        ('{"path": "a.py", "limit": 5}', "path: a.py, limit: 5"),
        ("{}", "{}"),
        ("ls -l", "ls -l"),
        ("[1]", "[1]"),
    ],
)
def test_arguments_are_spelled_out_for_people(args: str, told: str) -> None:
    assert spelled(args) == told


def test_all_of_a_step_has_its_arguments_its_words_and_its_output() -> None:
    assert detail(RUN) == (
        "step 7:\nrun, failed, exit code 2, 12 tokens\n\n"
        'arguments:\n{"command": "make"}\n\nsaid:\nI build.\n\noutput:\nno rule'
    )


def test_all_of_a_checkpoint_has_every_field() -> None:
    step = Step(number=8, kind=StepKind.CHECKPOINT, checkpoint=REPORT)
    assert detail(step) == (
        "step 8:\ncheckpoint\n\nreport:\nplan step 2, progress 40 %, confidence 30 %, pivot\n"
        "blocked by: no key\ndone by its own word: a.py\nsteps left, as it thinks: 3\nanother way"
    )


def test_all_of_an_alert_has_its_evidence() -> None:
    assert detail(FIRING) == (
        "alert:\ncritical repeated_edits, firing at step 3\n\nabout:\na.py\n\n"
        "summary:\nfive edits\n\nvalue:\n5\n\nsince step:\n1\n\nevidence:\nsteps 1, 3"
    )


@pytest.mark.parametrize("said", ["\x1b[31mred\x1b[0m", "\u202egnp.exe", "a\x07b", "[b]x[/b]"])
def test_what_agents_wrote_has_no_power_in_a_line_or_a_detail(said: str) -> None:
    step = Step(number=1, kind=StepKind.TOOL, tool=said, args=said, output=said, text=said)
    shown = f"{line(step).what}{line(step).text}{detail(step)}"
    assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    assert ("[b]x[/b]" in shown) == (said == "[b]x[/b]")


def test_an_endless_text_is_cut_to_what_a_line_can_show() -> None:
    step = Step(number=1, kind=StepKind.MESSAGE, text="x" * 1_000_000)
    assert len(line(step).text) == 501
