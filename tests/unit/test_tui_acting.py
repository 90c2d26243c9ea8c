"""Which acts make sense for a row, what they ask first, and what is told of them later."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Entry,
    Grant,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Severity,
    Terms,
)
from midwatch_supervisor.tui.action import (
    ABOUT_ALERTS,
    ACTIONS,
    Act,
    Question,
    issued,
    question,
    refusal,
    sensible,
    terms_in,
)
from midwatch_supervisor.tui.keys import ACTS, EVERYWHERE, ROLL
from midwatch_supervisor.tui.state.action_results import News, Trail
from midwatch_supervisor.tui.state.row import Row

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
CYCLE = AlertKey(rule="cycle")
ALERT = Alert(
    key=CYCLE,
    severity=Severity.WARNING,
    state=AlertState.FIRING,
    value=3,
    summary="three times the same",
    since_step=1,
    step=4,
)
HELD = Intervention(
    action=Action.REPLAN,
    by=Actor.SUPERVISOR,
    message="Plan anew.",
    plan=("read", "write"),
    needs_approval=True,
)
PAUSE = Intervention(action=Action.PAUSE, by=Actor.OPERATOR, author="ada")
NUDGE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada", message="Look.")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
SILENCE = Intervention(action=Action.SILENCE, by=Actor.OPERATOR, answers=(CYCLE,))

SPOKEN = {Act.GUIDE, Act.STOP, Act.RESTART, Act.GRANT, Act.SWITCH}
VERDICTS = {Act.ACCEPT, Act.REFUSE}


def a_row(*records: Record) -> Row:
    """Attempt 1 of the task `fix` after some records, with ids from 1."""
    row = Row(run=1, task=1, name="fix", attempt=1, number=1)
    for id, record in enumerate(records, start=1):
        row.fold(entry(id, record))
    return row


def entry(id: int, record: Record, *, attempt: int = 1) -> Entry:
    return Entry(id=id, record=record, at=AT, task=1, attempt=attempt)


def state(lifecycle: Lifecycle, reason: str = "") -> AttemptTransition:
    return AttemptTransition(lifecycle=lifecycle, reason=reason)


WORKING = state(Lifecycle.WORKING)
PARKED = state(Lifecycle.INPUT_REQUIRED, "Which port?")


def stamped(id: int, state: DeliveryState) -> Delivery:
    return Delivery(intervention=id, state=state)


@pytest.mark.parametrize(
    ("records", "acts"),
    [
        ((), SPOKEN | {Act.PAUSE}),
        ((WORKING,), SPOKEN | {Act.PAUSE}),
        ((WORKING, ALERT), SPOKEN | {Act.PAUSE, Act.ACKNOWLEDGE, Act.SILENCE}),
        ((WORKING, HELD), SPOKEN | {Act.PAUSE, Act.APPROVE, Act.MODIFY, Act.REJECT}),
        ((WORKING, HELD, stamped(2, DeliveryState.REJECTED)), SPOKEN | {Act.PAUSE}),
        ((WORKING, BUDGET), SPOKEN | {Act.PAUSE, Act.APPROVE, Act.REJECT}),
        ((PARKED,), SPOKEN | {Act.RESUME}),
        ((HELD, ALERT, state(Lifecycle.COMPLETED)), VERDICTS),
        ((state(Lifecycle.CANCELED),), VERDICTS),
    ],
)
def test_what_can_be_done_depends_on_where_the_attempt_stands(
    records: tuple[Record, ...], acts: set[Act]
) -> None:
    assert sensible(a_row(*records)) == acts


def test_nothing_can_be_done_about_a_task_without_an_attempt() -> None:
    row = Row(run=1, task=1, name="fix")
    assert sensible(row) == frozenset()
    assert refusal(Act.GUIDE, row) == "it has not begun yet"


def test_a_pause_on_its_way_can_be_taken_back_and_not_repeated() -> None:
    assert sensible(a_row(WORKING), pausing=True) == SPOKEN | {Act.RESUME}


@pytest.mark.parametrize(("left", "said"), [(None, False), (1, False), (0, True), (-1, True)])
def test_a_restart_needs_an_attempt_that_is_left(left: int | None, said: bool) -> None:
    assert bool(refusal(Act.RESTART, a_row(WORKING), attempts_left=left)) is said


def test_every_act_but_verdicts_and_decisions_is_an_intervention_of_its_own() -> None:
    assert ACTIONS.keys() == {act for act in Act if not (act.of_decision or act.of_result)}
    assert ACTIONS.keys() >= ABOUT_ALERTS


def test_every_act_has_a_key_and_no_key_is_used_twice() -> None:
    named = {key.action.removeprefix("act('").removesuffix("')") for key in ACTS}
    assert named == {act.value for act in Act} - {Act.RESUME}
    keys = [each for key in (*EVERYWHERE, *ROLL, *ACTS) for each in key.keys.split(",")]
    assert sorted(set(keys)) == sorted(keys)


def test_every_act_is_told_once_it_is_stored() -> None:
    assert all("fix#1" in issued(act, a_row()) for act in Act)


@pytest.mark.parametrize(
    ("records", "quote"),
    [((), ""), ((ALERT,), "cycle: three times the same"), ((ALERT, PARKED), "Which port?")],
)
def test_guidance_answers_the_question_or_the_alerts(
    records: tuple[Record, ...], quote: str
) -> None:
    asked = question(Act.GUIDE, a_row(*records))
    assert asked == Question(title="Guidance for fix#1", send="Send", quote=quote)


def test_a_decision_is_modified_beginning_from_its_own_words() -> None:
    assert question(Act.MODIFY, a_row(WORKING, HELD)) == Question(
        title="The replan for fix#1, in your words",
        send="Issue",
        quote="replan by supervisor: Plan anew.\n1. read\n2. write",
        text="Plan anew.",
    )


def test_only_a_stop_is_a_matter_of_yes_or_no() -> None:
    row = a_row(WORKING, HELD)
    asked = {act: question(act, row) for act in Act}
    assert {act for act, each in asked.items() if each is not None and each.confirm} == {Act.STOP}


@pytest.mark.parametrize(
    ("words", "problem"),
    [("20 requests\nGo on.", False), ("20 apples", True), ("a lot\n20 requests", True)],
)
def test_a_grant_must_begin_with_amounts(words: str, problem: bool) -> None:
    asked = question(Act.GRANT, a_row(WORKING))
    assert asked is not None
    assert asked.check is not None
    assert bool(asked.check(words)) is problem


def test_a_grant_begins_from_what_was_asked_for() -> None:
    asked = question(Act.GRANT, a_row(WORKING, BUDGET))
    assert asked is not None
    assert asked.text == "20 requests"
    assert asked.quote == "asks for budget: 20 requests (two files left)"


def test_the_model_in_force_is_no_switch() -> None:
    row = a_row(WORKING)
    row.model = "m"
    asked = question(Act.SWITCH, row)
    assert asked is not None
    assert asked.check is not None
    assert [asked.check(words) for words in ("m\nplease", "other")] == [
        "it works with m already",
        "",
    ]


def test_a_switch_goes_to_a_model_that_the_worker_has() -> None:
    row = a_row(WORKING)
    row.model = "m"
    asked = question(Act.SWITCH, row, models=("m", "big"))
    assert asked is not None
    assert asked.check is not None
    assert (asked.text, asked.quote) == ("big", "It works with m. Its worker may also have: big")
    assert [asked.check(words) for words in ("big", "huge")] == ["", "its worker has no model huge"]


@pytest.mark.parametrize(
    ("act", "words", "terms", "message"),
    [
        (Act.GRANT, "20 requests", Terms(grant=Grant(requests=20)), ""),
        (Act.GRANT, "5 minutes\nHurry.\nPlease.", Terms(grant=Grant(minutes=5)), "Hurry.\nPlease."),
        (Act.SWITCH, " openai:big \nTry it.", Terms(model="openai:big"), "Try it."),
        (Act.GUIDE, "20 requests", Terms(), "20 requests"),
    ],
)
def test_the_first_line_says_what_exactly_and_the_rest_is_the_message(
    act: Act, words: str, terms: Terms, message: str
) -> None:
    assert terms_in(act, words) == (terms, message)


@pytest.mark.parametrize("act", [Act.APPROVE, Act.PAUSE, Act.RESUME, Act.ACKNOWLEDGE, Act.SILENCE])
def test_what_can_be_taken_back_or_was_read_already_is_done_at_once(act: Act) -> None:
    assert question(act, a_row(WORKING, HELD)) is None


@pytest.mark.parametrize(
    ("issue", "news", "told"),
    [
        (
            NUDGE,
            stamped(1, DeliveryState.DELIVERED),
            News(text="fix#1: guidance was delivered"),
        ),
        (
            NUDGE,
            OutcomeReport(
                intervention=1,
                outcome=Outcome.RECOVERED,
                step=9,
                reason="resolved, with new-content",
            ),
            News(text="fix#1: recovered after guidance: resolved, with new-content"),
        ),
        (
            NUDGE,
            OutcomeReport(
                intervention=1, outcome=Outcome.NO_EFFECT, step=9, reason="cycle still fires"
            ),
            News(text="fix#1: no effect after guidance: cycle still fires", good=False),
        ),
        (
            PAUSE,
            stamped(1, DeliveryState.EXPIRED),
            News(text="fix#1: pause came too late, the attempt is over", good=False),
        ),
        (
            HELD,
            stamped(1, DeliveryState.REJECTED),
            News(text="fix#1: replan was rejected", good=False),
        ),
        (
            SILENCE,
            stamped(1, DeliveryState.DELIVERED),
            News(text="fix#1: the monitor took the silence"),
        ),
        (HELD, stamped(1, DeliveryState.APPROVED), None),
    ],
)
def test_what_becomes_of_a_followed_act_is_told(
    issue: Intervention, news: Delivery | OutcomeReport, told: News | None
) -> None:
    trail = Trail()
    assert trail.fold(entry(1, issue)) is None
    assert trail.follow(1, "fix#1") is None
    assert trail.fold(entry(2, news)) == told


def test_what_others_did_is_not_told() -> None:
    trail = Trail()
    trail.fold(entry(1, NUDGE))
    assert trail.fold(entry(2, stamped(1, DeliveryState.DELIVERED))) is None


def test_what_arrived_before_it_was_followed_is_told_then() -> None:
    trail = Trail()
    trail.fold(entry(1, NUDGE))
    trail.fold(entry(2, stamped(1, DeliveryState.DELIVERED)))
    assert trail.follow(1, "fix#1") == News(text="fix#1: guidance was delivered")


@pytest.mark.parametrize("end", [stamped(1, DeliveryState.DELIVERED), state(Lifecycle.FAILED)])
def test_a_pause_is_on_its_way_until_it_arrives_or_the_attempt_ends(end: Record) -> None:
    trail = Trail()
    trail.fold(entry(1, PAUSE))
    assert trail.pausing(1)
    assert not trail.pausing(2)
    trail.fold(entry(2, end))
    assert not trail.pausing(1)
