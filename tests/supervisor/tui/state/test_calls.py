"""When a person is called, with what words; and what the banner says of the watch itself."""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertState,
    Change,
    DeliveryState,
    EscalationState,
    Fault,
    Lifecycle,
    Record,
    Severity,
)
from midwatch_stage.factories import (
    AT,
    alert,
    attempt,
    delivery,
    entry,
    escalation,
    intervention,
    task,
    transition,
)
from midwatch_stage.rows import row
from midwatch_supervisor.tui.bell import Bell, call_text, escape, notifier, notify_desktop
from midwatch_supervisor.tui.log_capture import LogCapture
from midwatch_supervisor.tui.screens.banner import (
    Trouble,
    banner_text,
    failed_parts,
    journal_still,
)
from midwatch_supervisor.tui.state.attention import AttentionQueue, QueueItem, waiting_attempt
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Need, Row

LATER = AT + timedelta(minutes=3)


def working(*records: Record, id: int = 1) -> Row:
    return row(transition(), *records, id=id)


def need(
    kind: Need = Need.ANSWER, *, attempt: int = 1, since: datetime = AT, what: str = "Which port?"
) -> QueueItem:
    asks = {
        Need.ANSWER: transition(Lifecycle.INPUT_REQUIRED, reason=what),
        Need.APPROVAL: intervention(Action.STOP, message=what, needs_approval=True),
        Need.STUCK: alert(severity=Severity.CRITICAL, summary=what),
    }
    return replace(
        waiting_attempt(working(asks[kind], id=attempt)), since=since, mark=(attempt, kind, since)
    )


def approved(id: int) -> Record:
    return delivery(id, DeliveryState.APPROVED)


def rejected(id: int) -> Record:
    return delivery(id, DeliveryState.REJECTED)


def gone(fired: Alert) -> Record:
    return replace(fired, state=AlertState.RESOLVED)


WORKS = transition(reason="goes on")
AGAIN = alert(severity=Severity.CRITICAL, step=9)


def test_one_need_is_announced_once() -> None:
    bell = Bell(opened_at=AT)
    assert bell.next_call([need()]) == "fix#1 waits for an answer: Which port?"
    assert bell.next_call([need()]) is None


def test_another_need_of_the_same_attempt_is_announced_again() -> None:
    bell = Bell(opened_at=AT)
    bell.next_call([need(Need.STUCK)])
    assert bell.next_call([need()]) is not None
    bell.next_call([])
    assert bell.next_call([need(since=LATER)]) is not None


CRITICAL = alert(severity=Severity.CRITICAL, summary="It turns in circles.")
OLDER = alert("silence", Severity.CRITICAL, step=0)
HELD = intervention(Action.RESTART, needs_approval=True)
ASK = intervention(Action.ASK_OPERATOR, message="Which port?")
PARKED = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
ANSWER = intervention(Action.NUDGE, Actor.OPERATOR)
PAUSE = intervention(Action.PAUSE, Actor.OPERATOR)
NUDGE = intervention(Action.NUDGE)
ASKED = escalation()
DECIDED = replace(ASKED, state=EscalationState.ANSWERED)
CLOSED = replace(ASKED, state=EscalationState.CLOSED)
RESUME = intervention(Action.RESUME, Actor.OPERATOR)


def calls(*seconds: Sequence[Record]) -> list[str]:
    """What each second's records of one attempt, whose ids begin at 1, call a person for."""
    board, bell = FleetBoard(), Bell(opened_at=AT)
    board.meet_task(task())
    board.meet_attempt(attempt())
    queue, last = AttentionQueue(board), 0
    said: list[str] = []
    for records in seconds:
        entries = [entry(id, each) for id, each in enumerate(records, start=last + 1)]
        last += len(records)
        for each in entries:
            board.fold(each)
        queue.observe()
        call = bell.next_call(queue.calling)
        said += [call.partition(":")[0]] if call else []
    return said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (
            [(transition(), CRITICAL), (HELD,), (approved(3),), (delivery(3),)],
            ["stuck", "approval"],
        ),
        ([(transition(), CRITICAL), (HELD,), (rejected(3),)], ["stuck", "approval"]),
        ([(transition(), HELD), (PARKED,), (approved(2),), (delivery(2),)], ["approval"]),
        ([(transition(), HELD), (HELD,), (approved(2),)], ["approval"] * 2),
        ([(transition(), HELD, HELD), (approved(3),)], ["approval"]),
        ([(transition(), ASK, delivery(2), PARKED), (ANSWER,), (delivery(5),)], ["answer"]),
        (
            [(transition(), CRITICAL, ASK, delivery(3), PARKED), (ANSWER, delivery(6)), (WORKS,)],
            ["answer"],
        ),
        ([(transition(), CRITICAL, ASKED), (CLOSED,)], ["stuck"]),
        ([(transition(), CRITICAL, ASKED), (NUDGE, DECIDED), (delivery(4),)], []),
        ([(transition(), OLDER, CRITICAL), (gone(OLDER),)], ["stuck"]),
        ([(transition(), CRITICAL), (gone(CRITICAL),), (AGAIN,)], ["stuck"] * 2),
    ],
    ids=[
        "approved",
        "rejected",
        "parked for the approval",
        "another one to be approved",
        "the newest of two approved",
        "answered",
        "answered and still stuck",
        "the supervisor knows nothing to do",
        "the supervisor is at it",
        "one alert of two gone",
        "stuck again",
    ],
)
def test_what_was_just_answered_is_not_announced_again(
    seconds: Sequence[Sequence[Record]], said: Sequence[str]
) -> None:
    words = {"stuck": "is stuck", "approval": "waits for approval", "answer": "waits for an answer"}
    assert calls(*seconds) == [f"fix#1 {words[each]}" for each in said]


def test_an_answer_on_its_way_leaves_nothing_to_be_answered() -> None:
    asked = row(transition(), ASK, delivery(2), PARKED)
    assert (asked.need, asked.called) == (Need.ANSWER, True)
    answered = row(transition(), ASK, delivery(2), PARKED, ANSWER)
    assert (answered.need, answered.called) == (Need.WORKING, False)


def test_who_paused_a_task_is_not_told_that_it_waits() -> None:
    by_policy = replace(PAUSE, by=Actor.POLICY)
    parked = transition(Lifecycle.INPUT_REQUIRED)
    assert calls((transition(), PAUSE), (delivery(2), parked), (RESUME,), (delivery(5),)) == []
    assert calls((transition(), by_policy, delivery(2), parked)) == ["fix#1 is paused"]


def test_what_waited_before_the_console_was_opened_does_not_ring() -> None:
    assert Bell(opened_at=LATER).next_call([need()]) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Need.ANSWER, "fix#1 waits for an answer: Which port?"),
        (Need.APPROVAL, "fix#1 waits for approval: policy wants to stop: Which port?"),
        (Need.STUCK, "fix#1 is stuck: Which port?"),
    ],
)
def test_a_call_says_who_needs_what(kind: Need, words: str) -> None:
    assert call_text([need(kind)]) == words


def test_several_at_once_are_one_call() -> None:
    said = call_text([need(), need(attempt=2)])
    assert said == "2 attempts need you; fix#1 waits for an answer: Which port?"


def test_a_long_call_is_cut() -> None:
    assert len(call_text([need(what="why " * 200)])) == 160


def test_a_terminal_gets_one_notification_and_no_escape_of_an_agent() -> None:
    assert (
        escape("fix\x07\x1b]0;gone\x07 it")
        == "\x1b]9;Midwatch: fix\N{REPLACEMENT CHARACTER} it\x07"
    )


@pytest.mark.parametrize(
    ("environ", "found"),
    [({}, None), ({"DISPLAY": ":0"}, "notify-send"), ({"WAYLAND_DISPLAY": "w"}, "notify-send")],
)
def test_a_program_notifies_only_where_there_is_a_desktop(
    environ: dict[str, str], found: str | None
) -> None:
    assert notifier(environ, lambda name: name) == found


def test_a_broken_rule_is_told_with_its_attempt_and_its_error() -> None:
    faults = [(AT, working(), Fault(part="repeated_edits", error="ValueError: no [bold]"))]
    what = "the rule repeated_edits failed and is off in fix#1: ValueError: no [bold]"
    (found,) = failed_parts(faults)
    assert (found.what, found.since) == (what, AT)
    assert found.text == f"{what} → watch it yourself; a new attempt has the rule again"


def test_a_rule_of_an_attempt_that_is_over_is_no_trouble_any_more() -> None:
    over = row(transition(Lifecycle.COMPLETED))
    assert failed_parts([(AT, over, Fault(part="repeated_edits", error="x"))]) == []


def test_a_journal_rests_while_nobody_works() -> None:
    parked = working(Change(activity=Activity.WAITING))
    others = (Lifecycle.INPUT_REQUIRED, Lifecycle.COMPLETED)
    idle = [parked, *(row(transition(each)) for each in others)]
    assert journal_still(idle, AT, LATER, stale_seconds=60) is None


def test_a_journal_that_grew_a_moment_ago_is_well() -> None:
    assert journal_still([working()], AT, LATER, stale_seconds=181) is None
    assert journal_still([working()], None, LATER, stale_seconds=60) is None


def test_the_banner_says_the_newest_trouble_and_how_many_more_there_are() -> None:
    old, new = Trouble(what="old", since=AT), Trouble(what="new\x1b[2J", since=AT.replace(minute=1))
    assert banner_text([new, old], LATER) == "! since 20:01:00 (2m) (and 1 more): new"
    assert banner_text([old], LATER) == "! since 20:00:00 (3m): old"
    assert banner_text([], LATER) == ""


@pytest.mark.parametrize(("passing", "passed"), [(True, True), (False, False)])
def test_only_what_is_passing_is_forgotten(passing: bool, passed: bool) -> None:
    told = Trouble(what="late", since=AT, last=AT if passing else None)
    assert told.passed(LATER) is passed
    assert not told.passed(AT + timedelta(seconds=60))


def test_the_log_of_the_watch_is_heard_and_no_other() -> None:
    with closing(LogCapture()) as captured:
        captured.attach()
        logging.getLogger("midwatch_monitor.loop").warning("it %s", "fails")
        logging.getLogger("midwatch_supervisor.run.attempt_run").error("a worker failed")
        assert captured.take() == "it fails"
        assert captured.take() == ""
    logging.getLogger("midwatch_monitor.loop").warning("afterwards")
    assert captured.take() == ""


def test_no_secret_of_a_captured_line_is_shown() -> None:
    with closing(LogCapture(lambda text: text.replace("s3cret", "***"))) as captured:
        captured.attach()
        for name in ("midwatch_monitor.loop", "midwatch_monitor.bus.client"):
            logging.getLogger(name).warning("no way to mqtt://ada:s3cret@far")
        assert captured.take() == captured.take_bus() == "no way to mqtt://ada:***@far"


def test_a_captured_line_names_its_error() -> None:
    with closing(LogCapture()) as captured:
        captured.attach()
        try:
            raise ValueError("no number")
        except ValueError:
            logging.getLogger("midwatch_monitor.loop").exception("the monitor failed")
        assert captured.take() == "the monitor failed (ValueError: no number)"


async def test_the_program_gets_the_text_as_its_last_argument(tmp_path: Path) -> None:
    heard, program = tmp_path / "heard", tmp_path / "notify"
    program.write_text(f'#!/bin/sh\nfor each; do echo "$each"; done > "{heard}"\n')
    program.chmod(0o755)
    await notify_desktop(str(program), "fix#1 waits; $(rm -r /nothing) <b>")
    assert heard.read_text().splitlines() == [
        "--app-name=Midwatch",
        "--",
        "Midwatch",
        "fix#1 waits; $(rm -r /nothing) &lt;b&gt;",
    ]


async def test_a_program_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    await notify_desktop(str(tmp_path / "nothing"), "fix#1 waits")
