"""The life of an alert, one moment at a time, and when alerts become a question."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from midwatch_monitor.alerts import Holding, Moment, advance, raise_agreeing, resolve
from midwatch_monitor.config.rules import RuleSettings
from midwatch_monitor.config.section import parse_length
from midwatch_monitor.escalation import alerts_to_join, audible
from midwatch_monitor.records import Alert, AlertKey, AlertState, Resolution, Severity
from midwatch_tests import factories as make

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = RuleSettings(hold=parse_length(0), cooldown=parse_length(0))
NOTICE, WARNING, CRITICAL = Severity.NOTICE, Severity.WARNING, Severity.CRITICAL
PENDING, FIRING, RESOLVED = AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED


def moment(step: int, seconds: float | None = None) -> Moment:
    return Moment(step=step, at=None if seconds is None else START + timedelta(seconds=seconds))


def holding(since: Moment, severity: Severity = WARNING, **fields: Any) -> Holding:
    named: dict[str, Any] = {"rule": "r", "value": 1, "summary": "s", "evidence": (1,), **fields}
    return Holding(finding=make.finding(severity=severity, **named), since=since)


def firing_alert(step: int = 1, severity: Severity = WARNING, rule: str = "r") -> Alert:
    now = moment(step)
    return advance(AT_ONCE, None, holding(now, severity, rule=rule), now)


def test_without_a_hold_an_alert_fires_at_once() -> None:
    now = moment(3, 10)
    assert advance(AT_ONCE, None, holding(now), now) == make.alert(
        "r", value=1, summary="s", evidence=(1,), step=3, since_at=now.at, at=now.at
    )


@pytest.mark.parametrize(
    ("hold", "now", "state"),
    [
        (2, moment(4, 500), PENDING),
        (2, moment(5), FIRING),
        ("30s", moment(99, 29), PENDING),
        ("30s", moment(3, 30), FIRING),
        ("30s", moment(3), FIRING),
    ],
    ids=["too few steps", "enough steps", "too early", "in time", "no time is known"],
)
def test_a_hold_keeps_it_pending_for_so_long(
    hold: int | str, now: Moment, state: AlertState
) -> None:
    settings = RuleSettings(hold=parse_length(hold))
    held = holding(moment(3, None if now.at is None else 0))
    first = advance(settings, None, held, held.since)
    alert = advance(settings, first, held, now)
    assert (alert.state, alert.since_step) == (state, 3)
    assert alert.step == (3 if first.state is state else now.step)


@pytest.mark.parametrize("resolution", [Resolution.CLEARED, Resolution.RESTARTED])
def test_a_pending_alert_just_vanishes_unless_the_attempt_ends(resolution: Resolution) -> None:
    pending = replace(firing_alert(), state=PENDING)
    assert resolve(pending, resolution, moment(4)) is None
    ended = resolve(pending, Resolution.ENDED, moment(4))
    assert ended is not None
    assert (ended.state, ended.resolution) == (RESOLVED, Resolution.ENDED)


def test_a_resolved_alert_says_why_and_when() -> None:
    now = moment(4, 9)
    assert resolve(firing_alert(), Resolution.CLEARED, now) == replace(
        firing_alert(), state=RESOLVED, resolution=Resolution.CLEARED, step=4, at=now.at
    )


@pytest.mark.parametrize(
    ("cooldown", "hold", "now", "fires"),
    [
        (5, 0, moment(8, 99), False),
        (5, 0, moment(9, 11), True),
        ("1m", 0, moment(500, 59), False),
        ("1m", 0, moment(6, 60), True),
        (5, 4, moment(9, 11), True),  # the hold runs while the cooldown does
    ],
)
def test_a_resolved_alert_is_quiet_until_the_cooldown_is_over(
    cooldown: int | str, hold: int, now: Moment, fires: bool
) -> None:
    settings = RuleSettings(hold=parse_length(hold), cooldown=parse_length(cooldown))
    before = resolve(firing_alert(), Resolution.CLEARED, moment(4, 0))
    alert = advance(settings, before, holding(moment(5, 10)), now)
    assert alert.firing is fires
    assert fires or alert == before


@pytest.mark.parametrize(
    ("before", "found", "then", "step"),
    [
        (WARNING, WARNING, WARNING, 1),
        (WARNING, CRITICAL, CRITICAL, 5),
        (CRITICAL, NOTICE, CRITICAL, 1),
    ],
)
def test_while_it_fires_the_severity_only_rises_and_a_new_value_alone_is_no_step(
    before: Severity, found: Severity, then: Severity, step: int
) -> None:
    alert = firing_alert(severity=before)
    newer = advance(AT_ONCE, alert, holding(moment(1), found, value=9), moment(5))
    assert newer == replace(alert, value=9, severity=then, step=step)


EVIDENCE = {"a": "repetition", "b": "edits", "c": "edits", "r": "reports", "silence": "time"}


@pytest.mark.parametrize(
    "severities", [(), (NOTICE,), (NOTICE, NOTICE), (NOTICE, CRITICAL)], ids=len
)
def test_one_rule_does_not_agree_with_itself(severities: tuple[Severity, ...]) -> None:
    alerts = [
        replace(firing_alert(3, each), key=AlertKey(rule="r", subject=f"{number}"))
        for number, each in enumerate(severities)
    ]
    assert raise_agreeing(alerts, (), EVIDENCE, moment(7)) == []


def test_a_notice_confirms_for_as_long_as_something_spoke_for_it_of_late() -> None:
    old, new = firing_alert(3, NOTICE, "a"), firing_alert(60, NOTICE, "b")
    assert raise_agreeing((old, new), (), EVIDENCE, moment(60)) == []
    renewed = replace(old, evidence=(3, 40))
    (raised,) = raise_agreeing((renewed, new), (), EVIDENCE, moment(60))
    assert (raised.key, raised.severity) == (new.key, WARNING)


def test_what_was_only_raised_raises_no_other() -> None:
    old, new = firing_alert(3, NOTICE, "a"), replace(firing_alert(5, NOTICE, "b"), severity=WARNING)
    assert raise_agreeing((old, new), {new.key}, EVIDENCE, moment(7)) == []


# -- which of them are heard ----------------------------------------------------------------------


def alert(rule: str, severity: Severity = WARNING, since: int = 1, **fields: Any) -> Alert:
    return make.alert(rule, severity, since_step=since, **fields)


@pytest.mark.parametrize(
    ("alerts", "heard"),
    [
        ([alert("a", NOTICE)], ""),
        ([alert("a", state=PENDING), alert("b", state=RESOLVED)], ""),
        ([alert("w", step=1), alert("c", CRITICAL, 4, step=5)], "c w"),
        (
            [
                alert("before", since=4, step=8),
                alert("cause", CRITICAL, 2, step=5),
                alert("after", since=5, step=6),
            ],
            "cause before",
        ),
    ],
    ids=["a lone notice", "what does not fire", "the worst first", "what follows is muted"],
)
def test_alarms_are_heard_without_those_that_a_critical_one_explains(
    alerts: list[Alert], heard: str
) -> None:
    assert [each.key.rule for each in audible(alerts)] == heard.split()


def test_what_fires_later_joins_once() -> None:
    cycle, silence = AlertKey(rule="cycle"), AlertKey(rule="silence")
    alerts = [alert("cycle"), alert("silence"), alert("quiet", NOTICE)]
    assert alerts_to_join(alerts, [cycle]) == (silence,)
    assert alerts_to_join(alerts, [cycle, silence]) == ()
