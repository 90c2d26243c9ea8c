"""What people read while a run goes on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Course,
    Diagnosis,
    Ending,
    EscalationState,
    Lifecycle,
    Outcome,
    Resolution,
    Severity,
    StepKind,
)
from midwatch_monitor.state.intervention import InterventionStatus
from midwatch_supervisor.present.line import (
    AlertLine,
    AttemptLine,
    CheckpointLine,
    Checks,
    DecisionLine,
    DoneLine,
    EscalationLine,
    InterventionLine,
    Line,
    StepLine,
    TaskLine,
    TaskSum,
)
from midwatch_supervisor.present.progress import ended, short, text

AT = datetime(2026, 11, 21, 20, 0, 5, tzinfo=UTC)


def task() -> TaskLine:
    return TaskLine(
        at=AT,
        task="totals",
        attempt=None,
        number=None,
        status=Lifecycle.COMPLETED,
        title="",
        reason="",
        acceptance=Checks(passed=2, total=2),
    )


def step(**changes: object) -> StepLine:
    fields: dict[str, object] = {
        "kind": StepKind.TOOL,
        "tool": "run",
        "args": "pytest",
        "ok": None,
        "exit_code": None,
        "output": "",
        "text": "",
        "edits": (),
        "tokens": 0,
    }
    return StepLine(at=AT, task="totals", attempt=4, number=1, step=3, **(fields | changes))  # pyright: ignore[reportArgumentType]


def alert(state: AlertState, severity: Severity, resolution: Resolution | None = None) -> AlertLine:
    return AlertLine(
        at=AT,
        task="totals",
        attempt=4,
        number=1,
        rule="cycle",
        subject="a.py",
        state=state,
        severity=severity,
        step=8,
        value=5,
        summary="round and round",
        evidence=(),
        resolution=resolution,
    )


def intervention(state: InterventionStatus, outcome: Outcome | None = None) -> InterventionLine:
    return InterventionLine(
        at=AT,
        task="totals",
        attempt=4,
        number=1,
        id=12,
        action=Action.NUDGE,
        by=Actor.POLICY,
        author="",
        message="Look\nup.",
        state=state,
        outcome=outcome,
        reason="it moved" if outcome else "",
        answers=(),
    )


def escalation(state: EscalationState) -> EscalationLine:
    return EscalationLine(
        at=AT, task="totals", attempt=4, number=1, id=9, state=state, rules=("cycle",), reason=""
    )


ATTEMPT = AttemptLine(
    at=AT,
    task="totals",
    attempt=4,
    number=1,
    id=4,
    status=Lifecycle.FAILED,
    worker="coder",
    model="m",
    reason="too slow",
    ending=Ending.OUT_OF_BUDGET,
)
CHECKPOINT = CheckpointLine(
    at=AT,
    task="totals",
    attempt=4,
    number=1,
    step=3,
    progress_percent=40,
    confidence=70,
    decision=Course.CONTINUE,
    blockers=("no key",),
    files_done=(),
    notes="",
    estimated_steps_left=None,
    plan_step=2,
)
DECISION = DecisionLine(
    at=AT,
    task="totals",
    attempt=4,
    number=1,
    escalation=9,
    action=Action.NUDGE,
    diagnosis=Diagnosis.WRONG_APPROACH,
    by=Actor.SUPERVISOR,
    author="m",
    message="Look up.",
    rationale="It circles.",
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (task(), "totals: completed (2 of 2 checks pass)"),
        (ATTEMPT, "totals#1: failed (coder with m): too slow"),
        (step(ok=True), "totals#1: step 3: run pytest ok"),
        (step(ok=False), "totals#1: step 3: run pytest FAILED"),
        (step(ok=True, exit_code=2), "totals#1: step 3: run pytest FAILED (exit code 2)"),
        (step(edits=("a.py", "b.py")), "totals#1: step 3: run a.py, b.py"),
        (step(kind=StepKind.MESSAGE, text="Now\nthis."), "totals#1: step 3: says Now this."),
        (
            CHECKPOINT,
            "totals#1: step 3: reflects: 40 % of plan step 2, confidence 70 %, continue, "
            "blocked by no key",
        ),
        (
            alert(AlertState.FIRING, Severity.CRITICAL),
            "totals#1: ALERT critical cycle (a.py) at step 8: round and round",
        ),
        (
            alert(AlertState.FIRING, Severity.NOTICE),
            "totals#1: NOTICE cycle (a.py) at step 8: round and round",
        ),
        (
            alert(AlertState.RESOLVED, Severity.WARNING, Resolution.CLEARED),
            "totals#1: resolved: cycle (a.py) at step 8",
        ),
        (escalation(EscalationState.OPEN), "totals#1: ESCALATION 9: cycle"),
        (
            DECISION,
            "totals#1: DECISION nudge by supervisor (m): wrong_approach; It circles.",
        ),
        (
            replace(DECISION, steps=(3, 5), terms="model big", refused="it is over"),
            "totals#1: DECISION nudge (model big) by supervisor (m): wrong_approach (steps 3, 5); "
            "It circles.; REFUSED: it is over",
        ),
        (
            replace(ATTEMPT, ending=Ending.SPLIT),
            "totals#1: split (coder with m): too slow",
        ),
        (
            replace(intervention(InterventionStatus.ISSUED), terms="20 requests"),
            "totals#1: INTERVENTION nudge (12) by policy (20 requests): Look up.",
        ),
        (
            intervention(InterventionStatus.HELD),
            "totals#1: INTERVENTION nudge (12) by policy waits for approval: Look up.",
        ),
        (
            intervention(InterventionStatus.DELIVERED),
            "totals#1: INTERVENTION nudge (12) by policy delivered",
        ),
        (
            intervention(InterventionStatus.DELIVERED, Outcome.NO_EFFECT),
            "totals#1: OUTCOME of nudge (12): no effect: it moved",
        ),
    ],
)
def test_a_line_says_when_who_and_what(line: Line, told: str) -> None:
    assert text(line, UTC) == f"20:00:05 {told}"


@pytest.mark.parametrize(
    "line",
    [
        alert(AlertState.PENDING, Severity.WARNING),
        alert(AlertState.RESOLVED, Severity.WARNING, Resolution.ENDED),
        escalation(EscalationState.ANSWERED),
        escalation(EscalationState.CLOSED),
    ],
)
def test_nothing_is_said_of_what_nobody_waits_for(line: Line) -> None:
    assert text(line, UTC) is None


def test_the_time_is_that_of_the_zone() -> None:
    told = text(task(), timezone(timedelta(hours=2)))
    assert told is not None
    assert told.startswith("22:00:05 ")


def test_a_long_text_is_one_short_line() -> None:
    assert short("one\n two three", 9) == "one two …"


def test_the_end_is_one_line_a_task() -> None:
    checks = Checks(passed=1, total=2)
    done = TaskSum(
        id="totals",
        status=Lifecycle.FAILED,
        attempts=2,
        alerts=1,
        interventions=0,
        recovered=0,
        acceptance=checks,
    )
    assert ended(DoneLine(at=AT, exit_code=1, tasks=(done,))) == (
        "totals: failed, 1 of 2 checks pass, 2 attempts, 1 alert, 0 interventions, 0 recovered",
    )
