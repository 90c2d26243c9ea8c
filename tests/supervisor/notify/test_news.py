"""What of a run is news, and in which words."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from midwatch_monitor.config.notify import NotifySettings
from midwatch_monitor.records import (
    Action,
    AlertKey,
    AlertState,
    Fault,
    Lifecycle,
    Notified,
    PermissionRequest,
    Record,
    Resolution,
    Severity,
)
from midwatch_supervisor.notify.news import News, NewsKind, RunNews, due, message
from midwatch_tests import factories as make
from midwatch_tests.factories import AT, after

SUBJECT = "edit:src/secret_plan.py"


def run_of(*records: Record) -> RunNews:
    run = RunNews(1)
    run.state.meet_task(make.task()).meet(make.attempt(7))
    for entry in make.entries(*records, attempt=7):
        run.fold(entry)
    return run


def news_of(*records: Record) -> list[News]:
    return list(run_of(*records).news())


def test_an_alert_is_said_with_its_subject_and_barely_by_its_rule() -> None:
    key = AlertKey(rule="repeated_edits", subject=SUBJECT)
    (told,) = news_of(make.transition(), make.alert(key=key, summary="secret_plan.py again"))
    assert (told.key, told.name, told.attempt) == ("alert:2", "fix#1", 7)
    assert SUBJECT in told.text
    assert "secret_plan.py again" in told.text
    assert told.bare == "firing warning repeated_edits"


CYCLE, STREAK = make.alert(), make.alert("error_streak")
GROWN = make.alert(severity=Severity.CRITICAL)
CLEARED = make.alert(state=AlertState.RESOLVED, resolution=Resolution.CLEARED)
OVER = make.alert(state=AlertState.RESOLVED, resolution=Resolution.ENDED)
SILENCE = make.intervention(Action.SILENCE, answers=(CYCLE.key,))
ASKED = make.intervention(Action.ASK_OPERATOR, message="May I use curl?")
HELD = make.intervention(Action.RESTART, needs_approval=True)
STOP = (make.transition(), make.intervention(Action.STOP), make.delivery(2))
NO_KEY = make.task_transition(reason="north cannot do it: no key")
FAILED = make.task_transition(Lifecycle.FAILED)
BEGUN_AGAIN = make.task_transition(Lifecycle.SUBMITTED)
PARKED = make.transition(Lifecycle.INPUT_REQUIRED)


NEWS: dict[str, tuple[tuple[Record, ...], str]] = {
    "as it fires now": ((CYCLE, STREAK, GROWN), "alert:2 alert:3"),
    "not once it is cleared": ((CYCLE, STREAK, CLEARED), "alert:2"),
    "also if its attempt ended with it": ((CYCLE, OVER), "alert:1"),
    "not if a person silenced it": ((SILENCE, make.delivery(1), CYCLE), ""),
    "not once a question is answered": ((ASKED, make.delivery(1), PARKED, make.transition()), ""),
    "not of a pause": ((make.intervention(Action.PAUSE), make.delivery(1), PARKED), ""),
    "not of a stop that is on its way": (STOP, ""),
    "of a stop that had to be delivered again": ((*STOP, make.delivery(2)), "waiting:7:end:2"),
    "of a node once more": ((NO_KEY, FAILED, BEGUN_AGAIN, NO_KEY), "node:1 node:4"),
}


@pytest.mark.parametrize(("records", "keys"), NEWS.values(), ids=NEWS)
def test_what_is_news_is_told_once(records: tuple[Record, ...], keys: str) -> None:
    assert [each.key for each in news_of(*records)] == keys.split()


ANSWERS = "`midwatch approve 1` or `midwatch reject 1`"
WAITING: dict[str, tuple[tuple[Record, ...], str]] = {
    "waits for an answer": ((ASKED, make.delivery(1), PARKED), ": May I use curl?"),
    "waits for you to end it in its terminal: told to stop, still running": (
        (*STOP, make.delivery(2)),
        "",
    ),
    f"waits for approval of restart: {ANSWERS}": ((HELD,), ""),
}


@pytest.mark.parametrize(("bare", "case"), WAITING.items(), ids=WAITING)
def test_what_waits_for_a_person_is_said(bare: str, case: tuple[tuple[Record, ...], str]) -> None:
    records, content = case
    (told,) = news_of(*records)
    assert (told.kind, told.text, told.bare) == (NewsKind.WAITING, bare + content, bare)


def test_a_question_and_a_permission_are_said_with_the_commands_that_answer_them() -> None:
    (question,) = news_of(ASKED, make.delivery(1), PARKED)
    assert question.commands == ('midwatch tell fix --run 1 "your answer"',)
    (wants,) = news_of(PermissionRequest(tool="execute", what="run `make`"), PARKED)
    assert wants.text == f"waits for permission to run `make`: {ANSWERS}"
    assert wants.bare == f"waits for permission: {ANSWERS}"


def test_what_waits_for_a_person_is_the_title_and_is_never_cut() -> None:
    alerts = [make.alert(f"rule{number}") for number in range(25)]
    news = news_of(*alerts, ASKED, make.delivery(26), PARKED)
    told = message(news, content=True, link="", mask=str)
    waits = "fix#1 waits for an answer: May I use curl?"
    assert told.title == f"Midwatch: {waits} (and 25 other things)"
    assert (told.items[0].kind, told.more) == (NewsKind.WAITING, 6)


def test_a_node_that_is_gone_and_the_end_of_a_run_are_news() -> None:
    gone = Fault(part="node", error="north is gone: another node continues it")
    node, end = news_of(gone, make.ended(), FAILED)
    assert (node.kind, node.name, node.bare) == (NewsKind.NODE, "fix#1", gone.error)
    assert (end.kind, end.name, end.text) == (NewsKind.END, "run 1", "over: 1 failed")


def test_a_node_that_cannot_do_a_task_is_news_once_for_each_reason() -> None:
    full = "north cannot do it: git worktree: No space left on /srv/secret"
    refused = make.task_transition(reason=full)
    other = make.task_transition(reason="south cannot do it: no key")
    run = RunNews(1)
    run.state.meet_task(make.task())
    for entry in make.entries(
        refused, refused, make.task_transition(), other, refused, attempt=None
    ):
        run.fold(entry)
    north, south = run.news()
    assert (north.key, north.kind, north.name, north.attempt) == ("node:1", "node", "fix", None)
    assert (north.text, north.bare) == (full, "north cannot do it")
    assert south.text == "south cannot do it: no key"


def test_who_reads_a_message_late_is_led_to_its_run_and_not_to_a_newer_one() -> None:
    (end,) = news_of(make.ended(), FAILED)
    link = "http://127.0.0.1/attempt/{attempt}"  # which the end of a run has none of
    tell = partial(message, content=False, link=link, mask=str)
    assert tell([end]).items[0].look == "midwatch status --run 1"
    assert tell([end] * 22).body.endswith("\nand 2 more: midwatch status --run 1")
    both = [*[end] * 21, replace(end, run=2)]
    assert tell(both).body.endswith("\nand 2 more: midwatch status --all")


def test_what_was_told_is_known_from_the_journal_and_so_is_what_failed() -> None:
    failed = Fault(part="message to phone", error="HTTP 503")
    assert run_of(CYCLE, failed).failed == {"message to phone"}
    run = run_of(CYCLE, failed, Notified(target="phone", keys=("alert:1",)))
    assert run.failed == set()
    assert run.told == {"phone": {"alert:1": make.after(3)}}


# -- when they are told: grouping, quiet hours, repetition, severity ---------------------------

HOME = ZoneInfo("Europe/Berlin")


def news(kind: NewsKind = NewsKind.ALERT, at: datetime = AT, **fields: Any) -> News:
    key = f"{kind}:1"
    made = News(
        key=key, kind=kind, at=at, run=1, task=1, attempt=1, name="fix#1", text="a", bare="a"
    )
    return replace(made, **fields)


WAITS = news(NewsKind.WAITING)


def due_keys(
    *what: News,
    now: datetime,
    told: Mapping[str, datetime] | None = None,
    target: Mapping[str, object] | None = None,
    **settings: object,
) -> list[str]:
    """The keys of what is due."""
    way = {"webhook": "https://a.test", "secret_env": "S", **(target or {})}
    given = NotifySettings.model_validate({"targets": {"t": way}, **settings})
    found = due(what, told or {}, target=given.targets["t"], settings=given, now=now)
    return [each.key for each in found]


def test_what_comes_within_the_time_of_a_group_is_one_message() -> None:
    both = news(), news(at=after(20), key="alert:2")
    group = partial(due_keys, *both, group_seconds=30)
    assert group(now=after(29)) == []
    assert group(now=after(30)) == ["alert:1", "alert:2"]
    assert group(now=after(30), told={"alert:1": after(10)}) == []
    assert group(now=after(50), told={"alert:1": after(10)}) == ["alert:2"]


@pytest.mark.parametrize(
    ("severity", "least", "told"),
    [("warning", "warning", True), ("notice", "warning", False), ("critical", "notice", True)],
)
def test_an_alert_is_told_from_the_severity_of_the_target_on(
    severity: str, least: str, *, told: bool
) -> None:
    alert = news(severity=Severity(severity))
    assert bool(due_keys(alert, now=after(60), target={"from": least})) == told
    assert due_keys(WAITS, now=after(60), target={"from": "critical"}) == [WAITS.key]


def test_the_end_of_a_run_is_told_to_those_who_want_it() -> None:
    end = news(NewsKind.END)
    assert due_keys(end, now=after(60)) == []
    assert due_keys(end, now=after(60), target={"ends": True}) == [end.key]


def test_what_still_waits_is_said_again_and_an_alert_is_not() -> None:
    told = {WAITS.key: after(30), "alert:1": after(30)}
    assert due_keys(WAITS, news(), now=after(30, minutes=29), told=told) == []
    assert due_keys(WAITS, news(), now=after(30, minutes=30), told=told) == [WAITS.key]
    assert due_keys(WAITS, now=after(minutes=9000), told=told, repeat_minutes=0) == []


def test_an_alert_of_the_day_before_yesterday_is_not_told_and_what_still_waits_is() -> None:
    assert due_keys(news(), WAITS, now=AT + timedelta(days=2)) == [WAITS.key]


def local_time(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 10, day, hour, minute, tzinfo=HOME)


def utc(hour: int) -> datetime:
    """A moment after the clocks went back: from 03:00 (UTC+2) it is 02:00 (UTC+1) again."""
    return datetime(2026, 10, 25, hour, tzinfo=ZoneInfo("UTC")).astimezone(HOME)


@pytest.mark.parametrize(
    ("begin", "end", "at", "now", "told"),
    [
        ("22:00", "07:00", local_time(20, 21, 58), local_time(20, 21, 59), True),
        ("22:00", "07:00", local_time(20, 21, 58), local_time(20, 22), False),
        ("22:00", "07:00", local_time(20, 23), local_time(21, 6, 59), False),
        ("22:00", "07:00", local_time(20, 23), local_time(21, 7), True),
        ("22:00", "07:00", local_time(24, 23), utc(5), False),
        ("22:00", "07:00", local_time(24, 23), utc(6), True),
        ("12:00", "13:00", local_time(21, 8), local_time(21, 12), False),
        ("12:00", "13:00", local_time(21, 9), local_time(21, 13), True),
        ("12:00", "13:00", local_time(20, 23), local_time(21, 3), True),
    ],
)
def test_in_quiet_hours_nothing_is_told(
    begin: str, end: str, at: datetime, now: datetime, *, told: bool
) -> None:
    assert bool(due_keys(news(at=at), now=now, quiet={"from": begin, "to": end})) == told


def test_over_midnight_only_what_is_excepted_is_told_and_the_rest_in_the_morning() -> None:
    quiet = partial(due_keys, quiet={"from": "22:00", "to": "07:00"})
    late = local_time(20, 23)
    grave = news(at=late, key="alert:2", severity=Severity.CRITICAL)
    all = (news(at=late), grave, news(NewsKind.WAITING, at=late))
    for now in (local_time(20, 23, 30), local_time(21, 0), local_time(21, 6, 59)):
        assert quiet(*all, now=now) == ["alert:2"]
    told = {grave.key: local_time(20, 23, 1)}
    assert quiet(*all, now=local_time(21, 7), told=told) == ["alert:1", "waiting:1"]
