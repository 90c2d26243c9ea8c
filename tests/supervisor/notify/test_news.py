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
    DeliveryState,
    Fault,
    Lifecycle,
    Notified,
    PermissionRequest,
    Record,
    Resolution,
    Severity,
)
from midwatch_stage import factories as make
from midwatch_stage.factories import AT, after
from midwatch_supervisor.notify.news import News, NewsKind, RunNews, due, message

SUBJECT = "edit:src/secret_plan.py"


def run_of(*records: Record) -> RunNews:
    run = RunNews(1)
    run.state.meet_task(make.task()).meet(make.attempt(7))
    for entry in make.entries(*records, attempt=7):
        run.fold(entry)
    return run


def news_of(*records: Record) -> list[News]:
    return list(run_of(*records).news())


def waiting(*records: Record) -> list[News]:
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    return [each for each in news_of(*records, parked) if each.kind is NewsKind.WAITING]


def test_an_alert_is_said_with_its_subject_and_barely_by_its_rule() -> None:
    key = AlertKey(rule="repeated_edits", subject=SUBJECT)
    (told,) = news_of(make.transition(), make.alert(key=key, summary="secret_plan.py again"))
    assert (told.key, told.name, told.attempt) == ("alert:2", "fix#1", 7)
    assert SUBJECT in told.text
    assert "secret_plan.py again" in told.text
    assert told.bare == "firing warning repeated_edits"


def test_an_alert_is_news_only_as_it_fires_now() -> None:
    grown = make.alert(severity=Severity.CRITICAL)
    other = make.alert("error_streak")
    assert [each.key for each in news_of(make.alert(), other, grown)] == ["alert:2", "alert:3"]
    cleared = make.alert(state=AlertState.RESOLVED, resolution=Resolution.CLEARED)
    assert [each.key for each in news_of(make.alert(), other, cleared)] == ["alert:2"]
    ended = make.alert(state=AlertState.RESOLVED, resolution=Resolution.ENDED)
    assert [each.key for each in news_of(make.alert(), ended)] == ["alert:1"]


def test_what_waits_for_a_person_is_the_title_and_is_never_cut() -> None:
    alerts = [make.alert(f"rule{number}") for number in range(25)]
    asked = make.intervention(Action.ASK_OPERATOR, message="May I use curl?")
    delivered = make.delivery(26, DeliveryState.DELIVERED)
    news = news_of(*alerts, asked, delivered, make.transition(Lifecycle.INPUT_REQUIRED))
    told = message(news, content=True, link="", mask=str)
    waits = "fix#1 waits for an answer: May I use curl?"
    assert told.title == f"Midwatch: {waits} (and 25 other things)"
    assert (told.items[0].kind, told.more) == (NewsKind.WAITING, 6)


def test_the_end_of_a_run_has_no_link_to_an_attempt() -> None:
    (end,) = news_of(make.ended(), make.task_transition(Lifecycle.FAILED))
    told = message([end], content=True, link="http://127.0.0.1/attempt/{attempt}", mask=str)
    assert told.items[0].look == "midwatch status --run 1"


def test_an_alert_that_a_person_silenced_is_no_news() -> None:
    key = AlertKey(rule="cycle")
    silence = make.intervention(Action.SILENCE, answers=(key,))
    done = make.delivery(1, DeliveryState.DELIVERED)
    assert news_of(silence, done, make.alert(key=key)) == []


def test_a_question_is_said_with_the_command_that_answers_it() -> None:
    asked = make.intervention(Action.ASK_OPERATOR, message="May I use curl?")
    (told,) = waiting(asked, make.delivery(1, DeliveryState.DELIVERED))
    assert told.text == "waits for an answer: May I use curl?"
    assert told.bare == "waits for an answer"
    assert told.commands == ('midwatch tell fix --run 1 "your answer"',)


def test_an_answered_question_is_no_news() -> None:
    asked = make.intervention(Action.ASK_OPERATOR, message="May I?")
    delivered = make.delivery(1, DeliveryState.DELIVERED)
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    assert news_of(asked, delivered, parked, make.transition(Lifecycle.WORKING)) == []


def test_a_worker_that_does_not_heed_a_stop_is_news_once_the_stop_is_delivered_again() -> None:
    told = (make.transition(), make.intervention(Action.STOP), make.delivery(2))
    assert news_of(*told) == []
    (again,) = news_of(*told, make.delivery(2))
    assert again.text == "waits for you to end it in its terminal: told to stop, still running"


def test_an_approval_and_a_permission_are_asked_for_and_a_pause_is_not() -> None:
    held = make.intervention(Action.RESTART, needs_approval=True)
    (told,) = news_of(held)
    assert told.bare == "waits for approval of restart: `midwatch approve 1` or `midwatch reject 1`"
    wants = PermissionRequest(tool="execute", what="run `make`")
    (told,) = waiting(wants)
    assert (
        told.text
        == "waits for permission to run `make`: `midwatch approve 1` or `midwatch reject 1`"
    )
    assert told.bare == "waits for permission: `midwatch approve 1` or `midwatch reject 1`"
    pause = make.intervention(Action.PAUSE)
    assert waiting(pause, make.delivery(1, DeliveryState.DELIVERED)) == []


def test_a_node_that_is_gone_and_the_end_of_a_run_are_news() -> None:
    gone = Fault(part="node", error="north is gone: another node continues it")
    failed = make.task_transition(Lifecycle.FAILED)
    node, end = news_of(gone, make.ended(), failed)
    assert (node.kind, node.name, node.bare) == (NewsKind.NODE, "fix#1", gone.error)
    assert (end.kind, end.name, end.text) == (NewsKind.END, "run 1", "over: 1 failed")


def test_a_node_that_cannot_do_a_task_is_news_once_for_each_reason() -> None:
    full = "north cannot do it: git worktree: No space left on /srv/secret"
    refused = make.task_transition(reason=full)
    other = make.task_transition(reason="south cannot do it: no key")
    run = RunNews(1)
    run.state.meet_task(make.task())
    said = (refused, refused, make.task_transition(), other, refused)
    for entry in make.entries(*said, attempt=None):
        run.fold(entry)
    north, south = run.news()
    assert (north.key, north.kind, north.name, north.attempt) == ("node:1", "node", "fix", None)
    assert (north.text, north.bare) == (full, "north cannot do it")
    assert south.text == "south cannot do it: no key"


def test_what_a_node_cannot_do_is_news_again_once_the_task_is_begun_again() -> None:
    refused = make.task_transition(reason="north cannot do it: no key")
    failed = make.task_transition(Lifecycle.FAILED, reason="north cannot do it: no key")
    found = news_of(refused, failed, make.task_transition(Lifecycle.SUBMITTED), refused)
    assert [each.key for each in found] == ["node:1", "node:4"]


def test_who_reads_a_message_late_is_led_to_its_run_and_not_to_a_newer_one() -> None:
    (end,) = news_of(make.ended(), make.task_transition(Lifecycle.FAILED))
    tell = partial(message, content=False, link="", mask=str)
    assert tell([end]).items[0].look == "midwatch status --run 1"
    assert tell([end] * 22).body.endswith("\nand 2 more: midwatch status --run 1")
    both = [*[end] * 21, replace(end, run=2)]
    assert tell(both).body.endswith("\nand 2 more: midwatch status --all")


def test_what_was_told_is_known_from_the_journal_and_so_is_what_failed() -> None:
    failed = Fault(part="message to phone", error="HTTP 503")
    run = run_of(make.alert(), failed)
    assert run.failed == {"message to phone"}
    run = run_of(make.alert(), failed, Notified(target="phone", keys=("alert:1",)))
    assert run.failed == set()
    assert run.told == {"phone": {"alert:1": make.after(3)}}


# -- when they are told: grouping, quiet hours, repetition, severity ---------------------------

HOME = ZoneInfo("Europe/Berlin")
QUIET: dict[str, Any] = {"quiet": {"from": "22:00", "to": "07:00"}}


def news(kind: NewsKind = NewsKind.ALERT, at: datetime = AT, **fields: Any) -> News:
    key = f"{kind}:1"
    made = News(
        key=key, kind=kind, at=at, run=1, task=1, attempt=1, name="fix#1", text="a", bare="a"
    )
    return replace(made, **fields)


WAITS = news(NewsKind.WAITING)


def said(
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
    group = partial(said, *both, group_seconds=30)
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
    assert bool(said(alert, now=after(60), target={"from": least})) == told
    assert said(WAITS, now=after(60), target={"from": "critical"}) == [WAITS.key]


def test_the_end_of_a_run_is_told_to_those_who_want_it() -> None:
    end = news(NewsKind.END)
    assert said(end, now=after(60)) == []
    assert said(end, now=after(60), target={"ends": True}) == [end.key]


def test_what_still_waits_is_said_again_and_an_alert_is_not() -> None:
    told = {WAITS.key: after(30), "alert:1": after(30)}
    assert said(WAITS, news(), now=after(30, minutes=29), told=told) == []
    assert said(WAITS, news(), now=after(30, minutes=30), told=told) == [WAITS.key]
    assert said(WAITS, now=after(minutes=9000), told=told, repeat_minutes=0) == []


def test_an_alert_of_the_day_before_yesterday_is_not_told_and_what_still_waits_is() -> None:
    now = AT + timedelta(days=2)
    assert said(news(), WAITS, now=now) == [WAITS.key]


def at_home(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 10, day, hour, minute, tzinfo=HOME)


def test_over_midnight_only_what_is_excepted_is_told_and_the_rest_in_the_morning() -> None:
    late = at_home(20, 23)
    minor = news(at=late)
    grave = news(at=late, key="alert:2", severity=Severity.CRITICAL)
    waits = news(NewsKind.WAITING, at=late)
    for now in (at_home(20, 23, 30), at_home(21, 0), at_home(21, 6, 59)):
        assert said(minor, grave, waits, now=now, **QUIET) == [grave.key]
    told = {grave.key: at_home(20, 23, 1)}
    assert said(minor, grave, waits, now=at_home(21, 7), told=told, **QUIET) == [
        minor.key,
        waits.key,
    ]


def test_before_the_quiet_hours_begin_everything_is_told() -> None:
    assert said(news(at=at_home(20, 21, 58)), now=at_home(20, 21, 59), **QUIET) == ["alert:1"]
    assert said(news(at=at_home(20, 21, 58)), now=at_home(20, 22), **QUIET) == []


@pytest.mark.parametrize(("hour", "told"), [(12, False), (13, True), (3, True)])
def test_quiet_hours_may_lie_within_a_day(hour: int, *, told: bool) -> None:
    noon: dict[str, Any] = {"quiet": {"from": "12:00", "to": "13:00"}}
    at = at_home(21, hour)
    assert bool(said(news(at=at - timedelta(hours=4)), now=at, **noon)) == told


@pytest.mark.parametrize(("utc_hour", "told"), [(4, False), (5, False), (6, True)])
def test_the_morning_after_the_clocks_go_back_begins_by_the_new_time(
    utc_hour: int, *, told: bool
) -> None:
    # From 03:00 (UTC+2) it is 02:00 (UTC+1) again on 25 October 2026: 07:00 is 06:00 in UTC.
    now = datetime(2026, 10, 25, utc_hour, tzinfo=ZoneInfo("UTC")).astimezone(HOME)
    assert bool(said(news(at=at_home(24, 23)), now=now, **QUIET)) == told
