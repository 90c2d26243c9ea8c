"""What workers wrote down and what acts come with, in words."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Analysis,
    BudgetRequest,
    Cause,
    Completion,
    Grant,
    Intervention,
    Part,
    Plan,
    PlanCheck,
    PlanStep,
    PlanStepState,
    Ruling,
    Spending,
    Teller,
    Terms,
)
from midwatch_supervisor.present.spelling import (
    analysis_words,
    answer_words,
    completion_words,
    grant_in,
    grant_words,
    plan_check_words,
    plan_lines,
    request_words,
    spending_words,
    steps_words,
    terms_words,
)

CHECK = PlanCheck(
    plan_step=3, assumption="an auth module", reality="there is none", impact="4 waits", choice="b"
)
DONE = Completion(plan_step=2, goal="it rounds", confidence=75, accepted=True)
GRANTED = Intervention(
    action=Action.GRANT_BUDGET, by=Actor.OPERATOR, terms=Terms(grant=Grant(requests=20))
)
REFUSED = Intervention(action=Action.NUDGE, by=Actor.POLICY, message="Simplify.")


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        (Grant(), ""),
        (Grant(requests=1), "1 request"),
        (
            Grant(requests=20, tokens=5000, cost_usd=0.5, minutes=1.0),
            "20 requests, 5000 tokens, 0.5 US dollars, 1 minute",
        ),
    ],
)
def test_a_grant_is_told_by_its_resources(grant: Grant, words: str) -> None:
    assert grant_words(grant) == words


@pytest.mark.parametrize(
    ("words", "grant"),
    [
        ("20", Grant(requests=20)),
        ("1 request, 5 Minutes", Grant(requests=1, minutes=5)),
        ("$0.5", Grant(cost_usd=0.5)),
        ("$ 2, 3 usd, 1.5 dollars", Grant(cost_usd=6.5)),
        ("4000 tokens", Grant(tokens=4000)),
        ("", None),
        ("0", None),
        ("1.5 requests", None),
        ("-3 requests", None),
        ("20 apples", None),
        ("much more", None),
    ],
)
def test_a_grant_is_read_as_people_write_it(words: str, grant: Grant | None) -> None:
    assert grant_in(words) == grant


def test_a_grant_that_was_told_is_read_again() -> None:
    grant = Grant(requests=20, tokens=5000, cost_usd=0.25, minutes=7.5)
    assert grant_in(grant_words(grant)) == grant


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms(), ""),
        (Terms(model="m"), "model m"),
        (
            Terms(worker="careful", keep=("a.py", "b/*"), after="db"),
            "worker careful; keeps a.py, b/*; after db",
        ),
        (
            Terms(parts=(Part(title="read", goal=""), Part(title="write", goal=""))),
            "parts: read, write",
        ),
    ],
)
def test_terms_say_what_the_action_does_not(terms: Terms, words: str) -> None:
    assert terms_words(terms) == words


@pytest.mark.parametrize(
    ("about", "by", "words"),
    [
        (0, Teller.WORKER, "(permanent): ES6 was believed → require() instead"),
        (7, Teller.WORKER, "(permanent, step 7): ES6 was believed → require() instead"),
        (0, Teller.WATCH, "(permanent, by the watch): ES6 was believed → require() instead"),
    ],
)
def test_an_analysis_is_its_cause_its_root_and_its_remedy(
    about: int, by: Teller, words: str
) -> None:
    analysis = Analysis(
        what="it broke",
        cause=Cause.PERMANENT,
        root="ES6 was believed",
        remedy="require() instead",
        about=about,
        by=by,
    )
    assert analysis_words(analysis) == words


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        (CHECK, None, "plan step 3, granted: an auth module → there is none; choice: b"),
        (
            replace(CHECK, ruling=Ruling.REFUSED, reason="too often"),
            None,
            "plan step 3, refused (too often): an auth module → there is none; choice: b",
        ),
        (
            replace(CHECK, ruling=Ruling.PENDING, proposed=("x", "y"), choice=""),
            None,
            "plan step 3, pending: an auth module → there is none; proposes: x; y",
        ),
        (
            replace(CHECK, ruling=Ruling.PENDING, choice=""),
            REFUSED,
            "plan step 3, refused: Simplify.: an auth module → there is none",
        ),
    ],
)
def test_a_plan_check_comes_with_its_ruling(
    check: PlanCheck, answer: Intervention | None, words: str
) -> None:
    assert plan_check_words(check, answer) == words


@pytest.mark.parametrize(
    ("completion", "words"),
    [
        (DONE, "accepted, plan step 2 at 75 %: it rounds"),
        (replace(DONE, plan_step=0), "accepted, the task at 75 %: it rounds"),
        (
            replace(DONE, flag="no test of it", doubts=("a", "b")),
            "accepted with a flag, plan step 2 at 75 %: it rounds; flag: no test of it; "
            "doubts: a; b",
        ),
        (
            replace(DONE, accepted=False, doubts=("no a.py",)),
            "refused, plan step 2 at 75 %: it rounds; doubts: no a.py",
        ),
    ],
)
def test_a_completion_says_whether_it_was_believed(completion: Completion, words: str) -> None:
    assert completion_words(completion) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "pending"),
        (GRANTED, "granted 20 requests"),
        (replace(GRANTED, needs_approval=True), "grant_budget waits for approval"),
        (REFUSED, "refused: Simplify."),
        (replace(REFUSED, action=Action.REPLAN), "approved"),
    ],
)
def test_a_budget_request_comes_with_its_answer(answer: Intervention | None, words: str) -> None:
    asked = BudgetRequest(wanted=Grant(requests=30), reason="two files left")
    assert answer_words(answer) == words
    assert request_words(asked, answer) == f"30 requests ({words}): two files left"


def test_spending_names_the_role_and_the_model() -> None:
    spent = Spending(role="reviewer", model="m", requests=2, tokens=900)
    assert spending_words(spent) == "reviewer (m): 2 requests, 900 tokens"


def test_steps_are_named_only_where_there_are_some() -> None:
    assert (steps_words((3, 5)), steps_words(())) == ("steps 3, 5", "")


def test_a_plan_step_stands_with_what_is_known_of_it() -> None:
    steps = (
        PlanStep(title="read", state=PlanStepState.DONE, flag="by eye only"),
        PlanStep(title="skip", state=PlanStepState.SKIPPED),
        PlanStep(title="write", files=("a.py", "b.py"), confidence=40, requests=12),
    )
    assert list(plan_lines(Plan(steps=steps))) == [
        "[x] 1. read (flag: by eye only)",
        "[-] 2. skip",
        "[ ] 3. write (confidence 40 %; 12 requests; files: a.py, b.py)",
    ]
