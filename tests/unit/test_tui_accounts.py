"""What workers give account of, as lines of the timeline and as a whole."""

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Analysis,
    AttemptTransition,
    BudgetRequest,
    Cause,
    Claim,
    ClaimState,
    Completion,
    Decision,
    Diagnosis,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Terms,
)
from midwatch_supervisor.present.record_text import detail, line
from midwatch_supervisor.present.text_line import Told, Tone

ANALYSIS = Analysis(
    what="import failed", cause=Cause.PERMANENT, root="no ES6", remedy="require()", about=7
)
CHECK = PlanCheck(
    plan_step=3,
    assumption="a module",
    reality="none",
    impact="4 waits",
    options=("write it", "drop it"),
    choice="drop it",
    proposed=("say so",),
    ruling=Ruling.PENDING,
)
REFUSED = Completion(
    plan_step=2,
    goal="it rounds",
    claims=(Claim(what="a.py", state=ClaimState.UNPROVEN, reason="no such file"),),
    confidence=40,
    accepted=False,
    doubts=("no a.py",),
)
FLAGGED = Completion(plan_step=2, goal="it rounds", confidence=75, accepted=True, flag="no test")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two\nfiles")
GRANT = Intervention(
    action=Action.GRANT_BUDGET, by=Actor.POLICY, terms=Terms(grant=Grant(requests=5)), petition=1
)


def of(sign: str, what: str, text: str, tone: Tone) -> Told:
    return Told(sign=sign, what=what, text=text, tone=tone)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (
            ANALYSIS,
            of("∵", "analysis", "(permanent, step 7): no ES6 → require()", Tone.ACCENT),
        ),
        (
            CHECK,
            of(
                "≟",
                "plan check",
                "plan step 3, pending: a module → none; choice: drop it; proposes: say so",
                Tone.WARN,
            ),
        ),
        (
            REFUSED,
            of(
                "✗",
                "completion",
                "refused, plan step 2 at 40 %: it rounds; doubts: no a.py",
                Tone.BAD,
            ),
        ),
        (
            FLAGGED,
            of(
                "⚑",
                "completion",
                "accepted with a flag, plan step 2 at 75 %: it rounds; flag: no test",
                Tone.WARN,
            ),
        ),
        (BUDGET, of("+", "asks budget", "20 requests (pending): two files", Tone.WARN)),
        (
            Spending(role="planner", model="m", requests=1),
            of("$", "spent", "planner (m): 1 request", Tone.DIM),
        ),
        (
            AttemptTransition(lifecycle=Lifecycle.FAILED, reason="in two", ending=Ending.SPLIT),
            of("÷", "status", "split: in two", Tone.DIM),
        ),
    ],
    ids=lambda value: value.what if isinstance(value, Told) else "",
)
def test_an_account_as_a_line(record: Record, told: Told) -> None:
    assert line(record) == told


def test_an_answered_petition_is_told_with_its_answer_and_is_no_warning() -> None:
    told = line(BUDGET, GRANT)
    assert told == of("+", "asks budget", "20 requests (granted 5 requests): two files", Tone.DIM)


def test_a_decision_names_its_terms_and_the_steps_that_it_rests_on() -> None:
    made = Decision(
        escalation=4,
        action=Action.SWITCH_MODEL,
        diagnosis=Diagnosis.PROVIDER,
        message="",
        rationale="It times out.",
        terms=Terms(model="big"),
        steps=(3, 5),
        by=Actor.SUPERVISOR,
        author="s",
    )
    told = line(made)
    assert told.text == "switch_model (model big) by s: provider (steps 3, 5): It times out."


def test_a_refused_decision_is_told_with_the_reason() -> None:
    made = Decision(
        escalation=4,
        action=Action.STOP,
        diagnosis=Diagnosis.UNKNOWN,
        message="",
        rationale="",
        by=Actor.SUPERVISOR,
        refused="the attempt is over",
    )
    assert line(made) == of(
        "✗", "decision", "REFUSED: stop by supervisor: the attempt is over", Tone.WARN
    )


def test_all_of_a_plan_check_has_its_options_and_its_ruling() -> None:
    assert detail(CHECK, GRANT) == (
        "plan check before plan step 3:\na module\n\nreality:\nnone\n\nimpact:\n4 waits\n\n"
        "options:\n1. write it\n2. drop it\n\nchoice:\ndrop it\n\n"
        "plan steps that should remain:\n1. say so\n\nruling:\ngranted 5 requests"
    )


def test_all_of_a_completion_has_every_claim_with_its_state() -> None:
    assert "claims:\n? unproven a.py: no such file\n\ndoubts:\nno a.py" in detail(REFUSED)


def test_all_of_an_analysis_has_its_four_parts() -> None:
    assert detail(ANALYSIS).endswith(
        "what happened:\nimport failed\n\nroot cause:\nno ES6\n\nwhat changes:\nrequire()"
    )


@pytest.mark.parametrize("record", [ANALYSIS, CHECK, REFUSED, FLAGGED, BUDGET])
def test_every_account_has_a_detail(record: Record) -> None:
    assert detail(record)


def test_what_workers_wrote_has_no_power() -> None:
    evil = Analysis(what="", cause=Cause.UNKNOWN, root="\x1b[31mred", remedy="\u202egnp")
    assert not {"\x1b", "\u202e"} & set(line(evil).text + detail(evil))
