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
    AlertState,
    Change,
    DeliveryState,
    EscalationState,
    Fault,
    Lifecycle,
    Record,
    Severity,
)
from midwatch_supervisor.tui.bell import Bell, call_text, escape, notifier, notify_desktop
from midwatch_supervisor.tui.log_capture import LogCapture
from midwatch_supervisor.tui.screens.banner import Trouble, banner_text, failed_parts, journal_still
from midwatch_supervisor.tui.state.attention import AttentionQueue, QueueItem, waiting_attempt
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_tests.factories import (
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
from midwatch_tests.rows import row

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
    item = waiting_attempt(working(asks[kind], id=attempt))
    return replace(item, since=since, mark=(attempt, kind, since))


def test_one_need_is_announced_once_and_another_of_the_same_attempt_again() -> None:
    bell = Bell(opened_at=AT)
    stuck, answer, later = [need(Need.STUCK)], [need()], [need(since=LATER)]
    seconds: list[list[QueueItem]] = [stuck, answer, answer, [], later]
    said = [bell.next_call(items) is not None for items in seconds]
    assert said == [True, True, False, False, True]


W, WORKS, GONE = transition(), transition(reason="goes on"), AlertState.RESOLVED
AGAIN = alert(severity=Severity.CRITICAL, step=9)


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
        queue.observe(entries)
        call = bell.next_call(queue.calling)
        said += [call.partition(":")[0]] if call else []
    return said


OK, NO = DeliveryState.APPROVED, DeliveryState.REJECTED
PARKS: list[Sequence[Record]] = [(W, HELD), (PARKED,), (delivery(2, OK),), (delivery(2),)]
STAYS: list[Sequence[Record]] = [
    (W, CRITICAL, ASK, delivery(3), PARKED),
    (ANSWER, delivery(6)),
    (WORKS,),
]
CALLS: dict[str, tuple[list[Sequence[Record]], str]] = {
    "approved": ([(W, CRITICAL), (HELD,), (delivery(3, OK),), (delivery(3),)], "stuck approval"),
    "rejected": ([(W, CRITICAL), (HELD,), (delivery(3, NO),)], "stuck approval"),
    "parked for the approval": (PARKS, "approval"),
    "another one to be approved": ([(W, HELD), (HELD,), (delivery(2, OK),)], "approval approval"),
    "the newest of two approved": ([(W, HELD, HELD), (delivery(3, OK),)], "approval"),
    "answered": ([(W, ASK, delivery(2), PARKED), (ANSWER,), (delivery(5),)], "answer"),
    "answered and still stuck": (STAYS, "answer"),
    "the supervisor knows nothing to do": ([(W, CRITICAL, ASKED), (CLOSED,)], "stuck"),
    "the supervisor is at it": ([(W, CRITICAL, ASKED), (NUDGE, DECIDED), (delivery(4),)], ""),
    "one alert of two gone": ([(W, OLDER, CRITICAL), (replace(OLDER, state=GONE),)], "stuck"),
    "stuck again": ([(W, CRITICAL), (replace(CRITICAL, state=GONE),), (AGAIN,)], "stuck stuck"),
}


@pytest.mark.parametrize(("seconds", "said"), CALLS.values(), ids=CALLS)
def test_what_was_just_answered_is_not_announced_again(
    seconds: Sequence[Sequence[Record]], said: str
) -> None:
    words = {"stuck": "is stuck", "approval": "waits for approval", "answer": "waits for an answer"}
    assert calls(*seconds) == [f"fix#1 {words[each]}" for each in said.split()]


def test_who_paused_a_task_is_not_told_that_it_waits() -> None:
    by_policy = replace(PAUSE, by=Actor.POLICY)
    parked = transition(Lifecycle.INPUT_REQUIRED)
    assert calls((transition(), PAUSE), (delivery(2), parked), (RESUME,), (delivery(5),)) == []
    assert calls((transition(), by_policy, delivery(2), parked)) == ["fix#1 is paused"]


def test_what_waited_before_the_console_was_opened_does_not_ring() -> None:
    assert Bell(opened_at=LATER).next_call([need()]) is None


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ([need()], "fix#1 waits for an answer: Which port?"),
        ([need(Need.APPROVAL)], "fix#1 waits for approval: policy wants to stop: Which port?"),
        ([need(Need.STUCK)], "fix#1 is stuck: Which port?"),
        ([need(), need(attempt=2)], "2 attempts need you; fix#1 waits for an answer: Which port?"),
        ([need(what="why " * 200)], ("fix#1 waits for an answer: " + "why " * 40)[:159] + "…"),
    ],
    ids=["an answer", "an approval", "stuck", "several", "a long one"],
)
def test_a_call_says_who_needs_what(needs: list[QueueItem], words: str) -> None:
    assert call_text(needs) == words


def test_a_terminal_gets_one_notification_and_no_escape_of_an_agent() -> None:
    assert (
        escape("fix\x07\x1b]0;gone\x07 it")
        == "\x1b]9;Midwatch: fix\N{REPLACEMENT CHARACTER} it\x07"
    )


@pytest.mark.parametrize(
    ("environ", "found"),
    [({}, None), ({"DISPLAY": ":0"}, "notify-send"), ({"WAYLAND_DISPLAY": "w"}, "notify-send")],
)
def test_a_program_notifies_on_desktops(environ: dict[str, str], found: str | None) -> None:
    assert notifier(environ, lambda name: name) == found


def test_a_broken_rule_is_told_with_its_attempt_and_its_error_until_it_is_over() -> None:
    fault = Fault(part="repeated_edits", error="ValueError: no [bold]")
    what = "the rule repeated_edits failed and is off in fix#1: ValueError: no [bold]"
    (found,) = failed_parts([(AT, working(), fault)])
    assert (found.what, found.since) == (what, AT)
    assert found.text == f"{what} → watch it yourself; a new attempt has the rule again"
    assert failed_parts([(AT, row(transition(Lifecycle.COMPLETED)), fault)]) == []


def test_a_journal_rests_while_nobody_works_or_it_grew_a_moment_ago() -> None:
    others = (Lifecycle.INPUT_REQUIRED, Lifecycle.COMPLETED)
    idle = [working(Change(activity=Activity.WAITING)), *(row(transition(each)) for each in others)]
    assert journal_still(idle, AT, LATER, stale_seconds=60) is None
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


def test_the_log_of_the_watch_is_heard_without_secrets_and_no_other() -> None:
    with closing(LogCapture(lambda text: text.replace("s3cret", "***"))) as captured:
        captured.attach()
        logging.getLogger("midwatch_monitor.loop").warning("it %s", "fails s3cret")
        logging.getLogger("midwatch_supervisor.run.attempt_run").error("a worker failed")
        assert (captured.take(), captured.take()) == ("it fails ***", "")
        logging.getLogger("midwatch_monitor.bus.client").warning("no way to mqtt://a:s3cret@far")
        assert captured.take_bus() == "no way to mqtt://a:***@far"
        error = ValueError("no number")
        logging.getLogger("midwatch_monitor.loop").error("the monitor failed", exc_info=error)
        assert captured.take() == "the monitor failed (ValueError: no number)"
    logging.getLogger("midwatch_monitor.loop").warning("afterwards")
    assert captured.take() == ""


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
