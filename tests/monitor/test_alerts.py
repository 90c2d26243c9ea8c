"""The life of an alert, one moment at a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.alerts import (
    Holding,
    Moment,
    advance,
    raise_agreeing,
    resolve,
)
from midwatch_monitor.config.rules import RuleSettings
from midwatch_monitor.config.section import parse_length
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Resolution,
    Severity,
)
from midwatch_stage import factories as make

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = RuleSettings(hold=parse_length(0), cooldown=parse_length(0))


def moment(step: int, seconds: float | None = None) -> Moment:
    return Moment(step=step, at=None if seconds is None else START + timedelta(seconds=seconds))


def holding(
    since: Moment, *, severity: Severity = Severity.WARNING, value: float = 1, rule: str = "r"
) -> Holding:
    finding = make.finding(rule, severity, value=value, summary="s", evidence=(1,))
    return Holding(finding=finding, since=since)


def fired(step: int = 1, severity: Severity = Severity.WARNING, rule: str = "r") -> Alert:
    now = moment(step)
    return advance(AT_ONCE, None, holding(now, severity=severity, rule=rule), now)


def test_without_a_hold_an_alert_fires_at_once() -> None:
    now = moment(3, 10)
    assert advance(AT_ONCE, None, holding(now), now) == make.alert(
        "r", value=1, summary="s", evidence=(1,), step=3, since_at=now.at, at=now.at
    )


def test_a_hold_in_steps_keeps_it_pending() -> None:
    settings = RuleSettings(hold=parse_length(2))
    held = holding(moment(3))
    first = advance(settings, None, held, moment(3))
    second = advance(settings, first, held, moment(4))
    third = advance(settings, second, held, moment(5))
    assert [(each.state, each.since_step, each.step) for each in (first, second, third)] == [
        (AlertState.PENDING, 3, 3),
        (AlertState.PENDING, 3, 3),
        (AlertState.FIRING, 3, 5),
    ]


@pytest.mark.parametrize(("seconds", "state"), [(29, AlertState.PENDING), (30, AlertState.FIRING)])
def test_a_hold_in_time_is_met_by_time(seconds: float, state: AlertState) -> None:
    settings = RuleSettings(hold=parse_length("30s"))
    assert advance(settings, None, holding(moment(3, 0)), moment(3, seconds)).state is state


def test_a_hold_in_time_is_met_at_once_where_no_time_is_known() -> None:
    settings = RuleSettings(hold=parse_length("30s"))
    assert advance(settings, None, holding(moment(3)), moment(3)).firing


def test_a_pending_alert_that_clears_just_vanishes() -> None:
    pending = replace(fired(), state=AlertState.PENDING)
    assert resolve(pending, Resolution.CLEARED, moment(4)) is None
    assert resolve(pending, Resolution.RESTARTED, moment(4)) is None


def test_at_the_end_a_pending_alert_is_resolved_too() -> None:
    pending = replace(fired(), state=AlertState.PENDING)
    ended = resolve(pending, Resolution.ENDED, moment(4))
    assert ended is not None
    assert (ended.state, ended.resolution) == (AlertState.RESOLVED, Resolution.ENDED)


def test_a_resolved_alert_says_why_and_when() -> None:
    alert = fired()
    assert resolve(alert, Resolution.CLEARED, moment(4, 9)) == replace(
        alert,
        state=AlertState.RESOLVED,
        resolution=Resolution.CLEARED,
        step=4,
        at=moment(4, 9).at,
    )


@pytest.mark.parametrize(("step", "state"), [(8, AlertState.RESOLVED), (9, AlertState.FIRING)])
def test_a_resolved_alert_is_quiet_until_the_cooldown_is_over(step: int, state: AlertState) -> None:
    settings = RuleSettings(hold=parse_length(0), cooldown=parse_length(5))
    before = resolve(fired(), Resolution.CLEARED, moment(4))
    alert = advance(settings, before, holding(moment(5)), moment(step))
    assert alert.state is state
    assert alert.resolution is (None if alert.firing else Resolution.CLEARED)


def test_a_cooldown_in_time_is_over_by_time() -> None:
    settings = RuleSettings(cooldown=parse_length("1m"))
    before = resolve(fired(), Resolution.CLEARED, moment(4, 0))
    held = holding(moment(5, 10))
    assert not advance(settings, before, held, moment(500, 59)).firing
    assert advance(settings, before, held, moment(6, 60)).firing


def test_the_hold_runs_while_the_cooldown_does() -> None:
    settings = RuleSettings(hold=parse_length(3), cooldown=parse_length(5))
    before = resolve(fired(), Resolution.CLEARED, moment(4))
    assert advance(settings, before, holding(moment(6)), moment(9)).firing


def test_a_new_value_alone_changes_neither_step_nor_time() -> None:
    alert = fired(step=1)
    newer = advance(AT_ONCE, alert, holding(moment(1), value=9), moment(5))
    assert newer == replace(alert, value=9)


def test_while_it_fires_the_severity_rises() -> None:
    alert = fired(step=1)
    raised = advance(AT_ONCE, alert, holding(moment(1), severity=Severity.CRITICAL), moment(5))
    assert raised == replace(alert, severity=Severity.CRITICAL, step=5)


def test_while_it_fires_the_severity_never_falls() -> None:
    alert = fired(severity=Severity.CRITICAL)
    lower = holding(moment(1), severity=Severity.NOTICE)
    assert advance(AT_ONCE, alert, lower, moment(5)).severity is Severity.CRITICAL


EVIDENCE = {"a": "repetition", "b": "edits", "c": "edits", "r": "reports", "silence": "time"}
NOTICE, WARNING, CRITICAL = Severity.NOTICE, Severity.WARNING, Severity.CRITICAL


def severities(*alerts: Alert) -> list[Severity]:
    """Of each alert, after all have agreed."""
    raised = {alert.key: alert for alert in raise_agreeing(alerts, (), EVIDENCE, moment(7))}
    return [raised.get(alert.key, alert).severity for alert in alerts]


def test_one_rule_does_not_agree_with_itself() -> None:
    one, other = fired(severity=NOTICE), fired(severity=CRITICAL)
    other = replace(other, key=AlertKey(rule="r", subject="b.py"))
    assert severities(one, other) == [NOTICE, CRITICAL]


def test_two_notices_of_one_rule_confirm_nothing() -> None:
    one = fired(3, NOTICE)
    other = replace(one, key=AlertKey(rule="r", subject="b.py"))
    assert severities(one, other) == [NOTICE, NOTICE]


def test_a_lone_notice_stays_one() -> None:
    assert severities(fired(3, NOTICE)) == [NOTICE]
    assert severities() == []


def test_a_notice_confirms_for_as_long_as_something_spoke_for_it_of_late() -> None:
    old, new = fired(3, NOTICE, "a"), fired(60, NOTICE, "b")
    assert raise_agreeing((old, new), (), EVIDENCE, moment(60)) == []
    renewed = replace(old, evidence=(3, 40))
    assert [each.key for each in raise_agreeing((renewed, new), (), EVIDENCE, moment(60))] == [
        new.key
    ]


def test_what_was_only_raised_raises_no_other() -> None:
    old, new = fired(3, NOTICE, "a"), replace(fired(5, NOTICE, "b"), severity=WARNING)
    assert raise_agreeing((old, new), {new.key}, EVIDENCE, moment(7)) == []
