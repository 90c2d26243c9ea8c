"""Which commands make sense for a row, what they ask first, and what is told of them later."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Budget,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Ending,
    Grant,
    Lifecycle,
    Meter,
    Outcome,
    OutcomeReport,
    PlanCheck,
    Record,
    Ruling,
    Severity,
    Terms,
)
from midwatch_supervisor.operator.tasks import alerts_answered, is_held
from midwatch_supervisor.tui.keys import ACTS, EVERYWHERE, LIST
from midwatch_supervisor.tui.operator_command import (
    DialogQuestion,
    confirmation,
    offers,
    question,
    refusal,
    result_text,
    terms_in,
)
from midwatch_supervisor.tui.operator_command import OperatorCommand as Command
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.factories import (
    alert,
    change,
    delivery,
    ended,
    intervention,
    outcome,
    task,
    transition,
)
from midwatch_tests.rows import row

ALERT = alert("cycle")
HELD = intervention(
    Action.REPLAN,
    Actor.SUPERVISOR,
    message="Plan anew.",
    plan=("read", "write"),
    needs_approval=True,
)
PAUSE = intervention(Action.PAUSE, Actor.OPERATOR)
ASKS = intervention(Action.ASK_OPERATOR, Actor.SUPERVISOR, message="Which port?")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="", impact="", proposed=("x", "y"), ruling=Ruling.PENDING
)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
WORKING = transition()
SEEN, HUSHED = (
    (ALERT, intervention(action, Actor.OPERATOR, answers=(ALERT.key,)), delivery(3))
    for action in (Action.ACKNOWLEDGE, Action.SILENCE)
)
"""An alert that a person has acknowledged, and one that was silenced, behind one record."""
PARKED = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")

ALWAYS = {Command.GUIDE, Command.STOP, Command.RESTART, Command.GRANT, Command.SWITCH}
RUNNING = ALWAYS | {Command.PAUSE}
VERDICTS = {Command.ACCEPT, Command.REFUSE}


def dialog_question(command: Command, about: Row, models: tuple[str, ...] = ()) -> DialogQuestion:
    found = question(command, about, models=models)
    assert found is not None
    return found


def sensible(about: Row, *, pausing: bool = False) -> set[Command]:
    return {each for each in Command if not refusal(each, about, pausing=pausing)}


def problem(found: DialogQuestion, words: str) -> str:
    assert found.check is not None
    return found.check(words)


@pytest.mark.parametrize(
    ("records", "commands"),
    [
        ((), RUNNING),
        ((WORKING,), RUNNING),
        ((WORKING, PAUSE), ALWAYS | {Command.RESUME}),
        ((WORKING, ALERT), RUNNING | {Command.ACKNOWLEDGE, Command.SILENCE}),
        ((WORKING, *SEEN), RUNNING | {Command.SILENCE}),
        ((WORKING, *HUSHED), RUNNING),
        ((WORKING, HELD), RUNNING | {Command.APPROVE, Command.MODIFY, Command.REJECT}),
        ((WORKING, HELD, delivery(2, DeliveryState.REJECTED)), RUNNING),
        ((WORKING, BUDGET), RUNNING | {Command.APPROVE, Command.REJECT}),
        ((PARKED,), ALWAYS | {Command.RESUME}),
        ((HELD, ALERT, transition(Lifecycle.COMPLETED)), VERDICTS | {Command.RESTART}),
        ((transition(Lifecycle.CANCELED),), VERDICTS | {Command.RESTART}),
    ],
)
def test_what_can_be_done_by_state(records: tuple[Record, ...], commands: set[Command]) -> None:
    assert sensible(row(*records)) == commands


def test_nothing_can_be_done_about_a_task_without_an_attempt() -> None:
    queued = Row.of(task(name="fix", title=""))
    assert (sensible(queued), offers(queued)) == (set(), ())
    assert refusal(Command.GUIDE, queued) == "it has not begun yet"


@pytest.mark.parametrize(
    ("command", "record", "why"),
    [
        (Command.APPROVE, WORKING, "no decision is waiting for approval"),
        (Command.MODIFY, BUDGET, "no decision is waiting for approval"),
        (Command.SILENCE, WORKING, "no alert is firing"),
        (Command.ACCEPT, WORKING, "there is no result yet: working"),
        (Command.REFUSE, PARKED, "there is no result yet: waits for you"),
        (Command.PAUSE, PARKED, "it is already paused, or waiting for you"),
        (Command.RESUME, WORKING, "it is not paused: working"),
    ],
)
def test_what_makes_no_sense_is_refused(command: Command, record: Record, why: str) -> None:
    assert refusal(command, row(record)) == why


def test_a_restart_of_what_is_over_asks_what_the_next_attempt_should_do_differently() -> None:
    over = row(transition(Lifecycle.FAILED, ending=Ending.STUCK, reason="stop by operator"))
    assert refusal(Command.RESTART, over) == ""
    found = dialog_question(Command.RESTART, over)
    assert found.title == "Restart fix: what should the next attempt do differently?"
    assert found.send == "Restart"
    first, *_, last = found.quote.splitlines()
    assert first == "stop by operator"
    assert last == "The task gets its whole budget again; what was used still counts."
    assert confirmation(Command.RESTART, over) == "begun again"


@pytest.mark.parametrize(("models", "refused"), [((), False), (("m",), True), (("m", "n"), False)])
def test_a_switch_needs_another_model(models: tuple[str, ...], refused: bool) -> None:
    assert bool(refusal(Command.SWITCH, row(WORKING, model="m"), models=models)) is refused


def test_what_holds_or_ends_an_attempt_answers_no_alert() -> None:
    firing = row(WORKING, ALERT).state
    silent = {each for each in Action if not alerts_answered(firing, each)}
    assert silent == {Action.PAUSE, Action.RESUME, Action.STOP}


def test_every_command_has_a_key_and_no_key_is_used_twice() -> None:
    named = {key.action.removeprefix("act('").removesuffix("')") for key in ACTS}
    assert named == {each.value for each in Command} - {Command.RESUME}
    keys = [each for key in (*EVERYWHERE, *LIST, *ACTS) for each in key.keys.split(",")]
    assert sorted(set(keys)) == sorted(keys)


GUIDANCE = DialogQuestion(title="Guidance for fix#1", send="Send")
PROPOSAL = DialogQuestion(
    title="Approve the replan for fix#1?",
    send="Approve",
    quote="replan by supervisor: Plan anew.\n1. read\n2. write",
    confirm=True,
)


LATE = "pause came too late: the attempt is over"
HURRY = Terms(grant=Grant(minutes=5))
BIG = Terms(model="openai:big")


OWN_WORDS = replace(
    PROPOSAL,
    title="Approve the replan for fix#1 in your own words",
    text="Plan anew.",
    confirm=False,
)


@pytest.mark.parametrize(
    ("command", "records", "found"),
    [
        (Command.GUIDE, (), GUIDANCE),
        (Command.GUIDE, (ALERT,), replace(GUIDANCE, quote="cycle: cycle was seen")),
        (Command.GUIDE, (ALERT, PARKED), replace(GUIDANCE, quote="Which port?")),
        (Command.APPROVE, (WORKING, HELD), PROPOSAL),
        (Command.MODIFY, (WORKING, HELD), OWN_WORDS),
    ],
    ids=["guidance", "about an alert", "about a question", "a proposal", "in other words"],
)
def test_a_dialog_shows_what_it_is_about(
    command: Command, records: tuple[Record, ...], found: DialogQuestion
) -> None:
    assert question(command, row(*records)) == found


def test_what_ends_or_hides_something_is_a_matter_of_yes_or_no() -> None:
    found = {each: question(each, row(WORKING, HELD)) for each in Command}
    confirmed = {command for command, each in found.items() if each and each.confirm}
    assert confirmed == {Command.STOP, Command.APPROVE, Command.SILENCE}
    at_once = {Command.PAUSE, Command.RESUME, Command.ACKNOWLEDGE}
    assert {command for command, each in found.items() if each is None} == at_once


TAKES = Action.RESTART, Action.STOP, Action.REPLAN, Action.SPLIT
GIVES = Action.NUDGE, Action.GRANT_BUDGET, Action.SWITCH_MODEL


def test_what_takes_work_away_is_approved_by_name_and_the_rest_at_once() -> None:
    def asks(waiting: Record) -> bool:
        return question(Command.APPROVE, row(WORKING, waiting)) is not None

    held = {
        each: intervention(each, Actor.SUPERVISOR, needs_approval=True) for each in (*TAKES, *GIVES)
    }
    assert tuple(each for each in held if asks(held[each])) == TAKES
    assert (asks(REVISION), asks(BUDGET)) == (True, False)


@pytest.mark.parametrize(
    ("records", "acts"),
    [
        ((WORKING,), "Guide Pause Stop Restart"),
        ((WORKING, PAUSE), "Guide Resume Stop Restart"),
        ((WORKING, ALERT), "Guide Pause Stop Restart Acknowledge"),
        ((WORKING, alert("cycle", Severity.CRITICAL)), "Guide Restart Pause Stop Acknowledge"),
        ((WORKING, *SEEN), "Guide Pause Stop Restart"),
        ((WORKING, HELD), "Approve Modify Reject Guide Pause Stop Restart"),
        ((PARKED, HELD), "Approve Modify Reject Guide Resume Stop Restart"),
        ((WORKING, BUDGET), "Approve Reject Guide Pause Stop Restart"),
        ((ASKS, delivery(1), PARKED), "Answer Resume Stop"),
        ((change(acts=(Action.OBSERVE, Action.ASK_OPERATOR)), ALERT, ASKS), "Acknowledge"),
        ((PAUSE, delivery(1), PARKED), "Resume Guide Stop"),
        ((transition(Lifecycle.COMPLETED),), "Accept Reject result Restart"),
        ((WORKING, HELD, transition(Lifecycle.FAILED)), "Accept Reject result Restart"),
        ((ended(Ending.RESTARTED),), "Accept Reject result"),
        ((ended(Ending.SPLIT),), "Accept Reject result"),
    ],
)
def test_offers_begin_with_the_most_likely(records: tuple[Record, ...], acts: str) -> None:
    assert " ".join(each.does for each in offers(row(*records))) == acts


@pytest.mark.parametrize(
    ("words", "wrong"),
    [("20 requests\nGo on.", False), ("20 apples", True), ("a lot\n20 requests", True)],
)
def test_a_grant_must_begin_with_amounts(words: str, wrong: bool) -> None:
    assert bool(problem(dialog_question(Command.GRANT, row(WORKING)), words)) is wrong


def test_a_grant_begins_from_what_was_asked_for_and_shows_what_is_used_of_each_limit() -> None:
    found = dialog_question(Command.GRANT, row(WORKING, BUDGET))
    assert found.text == "20 requests"
    assert found.quote.splitlines()[1:] == ["asks for budget: 20 requests (two files left)"]
    budget = Budget(requests=Meter(used=12, limit=60), minutes=Meter(used=3, limit=30))
    assert dialog_question(Command.GRANT, row(WORKING, change(budget=budget))).quote == (
        "Used: 12 of 60 requests, 0 tokens, 3 of 30 min\nFor example: 20 requests, 15 minutes"
    )


def test_a_restart_says_what_it_takes_over_and_what_is_kept() -> None:
    found = dialog_question(Command.RESTART, row(WORKING, ALERT))
    assert found.quote.splitlines() == [
        "cycle: cycle was seen",
        "Attempt 2 begins in a new workspace, without these changes and this conversation. "
        "It is told what was tried, why it ended, and your note.",
        "Its workspace is kept as it is, and so is what was learned; "
        "`midwatch diff fix#1` shows its changes.",
        "The budget used so far still counts: 0 requests, 0 tokens, 0 min",
    ]


def test_what_ends_or_hides_something_says_what_comes_of_it() -> None:
    quote = dialog_question(Command.STOP, row(WORKING)).quote
    assert "is canceled; the tasks that depend on it do not begin" in quote
    assert "`midwatch diff fix#1` shows its changes" in quote
    silence = dialog_question(Command.SILENCE, row(WORKING, ALERT))
    assert silence.title == "Silence these alerts of fix#1 until the attempt ends?"
    assert silence.quote.startswith("cycle: cycle was seen\n")


def test_a_switch_goes_to_another_model_that_the_worker_has() -> None:
    found = dialog_question(Command.SWITCH, row(WORKING, model="m"), ("m", "big"))
    assert (found.text, found.quote.splitlines()[:-1]) == ("big", ["· m (current)", "· big"])
    assert [problem(found, words) for words in ("big", "huge", "m\nplease")] == [
        "",
        'Unknown model "huge"',
        "m is the current model",
    ]
    assert problem(dialog_question(Command.SWITCH, row(WORKING, model="m")), "other") == ""


@pytest.mark.parametrize(
    ("command", "words", "terms", "message"),
    [
        (Command.GRANT, "20 requests", Terms(grant=Grant(requests=20)), ""),
        (Command.GRANT, "5 minutes\nHurry.\nGo.", Terms(grant=Grant(minutes=5)), "Hurry.\nGo."),
        (Command.SWITCH, " openai:big \nTry it.", Terms(model="openai:big"), "Try it."),
        (Command.GUIDE, "20 requests", Terms(), "20 requests"),
    ],
)
def test_the_first_line_says_what_exactly_and_the_rest_is_the_message(
    command: Command, words: str, terms: Terms, message: str
) -> None:
    assert terms_in(command, words) == (terms, message)


@pytest.mark.parametrize(
    ("action", "then", "text", "good"),
    [
        (Action.NUDGE, delivery(), "guidance delivered", True),
        (Action.PAUSE, delivery(), "paused", True),
        (Action.RESTART, delivery(), "ended; a new attempt follows", True),
        (Action.NUDGE, outcome(), "recovered after guidance: it moves", True),
        (Action.NUDGE, outcome(1, Outcome.NO_EFFECT), "no effect after guidance: it moves", False),
        (Action.PAUSE, delivery(1, DeliveryState.EXPIRED), LATE, False),
        (Action.REPLAN, delivery(1, DeliveryState.REJECTED), "replan rejected", False),
        (Action.SILENCE, delivery(), "", True),
        (Action.REPLAN, delivery(1, DeliveryState.APPROVED), "", True),
    ],
)
def test_what_becomes_of_a_followed_command_is_told(
    action: Action, then: Delivery | OutcomeReport, text: str, good: bool
) -> None:
    assert result_text(action, then) == (text, good)


def test_a_worker_that_was_told_to_stop_is_not_called_stopped() -> None:
    again = replace(delivery(), comment="told to stop, still running")
    assert result_text(Action.STOP, delivery(), over=False) == ("told to stop", True)
    assert result_text(Action.STOP, again, over=False) == (again.comment, False)
    assert result_text(Action.STOP, delivery()) == ("stopped", True)


@pytest.mark.parametrize("end", [delivery(2), transition(Lifecycle.FAILED)])
def test_a_pause_is_on_its_way_until_it_arrives_or_the_attempt_ends(end: Record) -> None:
    assert is_held(row(WORKING, PAUSE).state)
    assert not is_held(row(WORKING, PAUSE, end).state)
    assert sensible(row(WORKING), pausing=True) == ALWAYS | {Command.RESUME}


def test_what_cannot_reach_a_session_is_not_offered_and_says_why() -> None:
    acts = (Action.OBSERVE, Action.ASK_OPERATOR)
    only_read = row(change(acts=acts), ALERT)
    assert {each.key for each in offers(only_read)} == {"acknowledge"}
    assert "it is only watched" in refusal(Command.GUIDE, only_read)
    hooked = row(change(acts=(*acts, Action.NUDGE, Action.STOP)), ALERT)
    assert {each.key for each in offers(hooked)} == {"guide", "stop", "acknowledge"}
    assert "it can be guided and stopped from here" in refusal(Command.PAUSE, hooked)
