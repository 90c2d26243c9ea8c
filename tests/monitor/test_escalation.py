"""When alerts become a question, and when they must wait."""

import pytest

from midwatch_monitor.escalation import Quiet, audible, joining, question
from midwatch_monitor.records import Alert, AlertKey, AlertState, Severity


def alert(
    rule: str,
    severity: Severity = Severity.WARNING,
    *,
    since: int = 1,
    step: int = 1,
    state: AlertState = AlertState.FIRING,
) -> Alert:
    return Alert(
        key=AlertKey(rule=rule),
        severity=severity,
        state=state,
        value=1,
        summary="",
        since_step=since,
        step=step,
    )


def rules(keys: tuple[AlertKey, ...]) -> list[str]:
    return [key.rule for key in keys]


def asked(quiet: Quiet, *, step: int = 10) -> list[str]:
    return rules(question([alert("cycle")], quiet, step=step, cooldown=3, cap=2))


def test_a_lone_notice_is_no_question() -> None:
    assert question([alert("a", Severity.NOTICE)], Quiet(), step=1, cooldown=0, cap=1) == ()


@pytest.mark.parametrize("state", [AlertState.PENDING, AlertState.RESOLVED])
def test_only_what_fires_is_heard(state: AlertState) -> None:
    assert audible([alert("a", state=state)]) == ()


def test_the_worst_comes_first() -> None:
    alerts = [alert("w", step=1), alert("c", Severity.CRITICAL, since=4, step=5)]
    assert rules(tuple(each.key for each in audible(alerts))) == ["c", "w"]


def test_a_critical_one_mutes_the_warnings_that_follow_from_it() -> None:
    alerts = [
        alert("before", since=4, step=8),
        alert("cause", Severity.CRITICAL, since=2, step=5),
        alert("after", since=5, step=6),
    ]
    assert rules(tuple(each.key for each in audible(alerts))) == ["cause", "before"]


@pytest.mark.parametrize(
    ("quiet", "heard"),
    [
        (Quiet(), True),
        (Quiet(open=True), False),
        (Quiet(parked=True), False),
        (Quiet(closed_at_step=8), False),
        (Quiet(closed_at_step=7), True),
        (Quiet(raised=2), True),
        (Quiet(raised=3), False),
    ],
)
def test_an_attempt_is_not_asked_about_all_the_time(quiet: Quiet, heard: bool) -> None:
    assert asked(quiet) == (["cycle"] if heard else [])


def test_what_fires_later_joins_once() -> None:
    alerts = [alert("cycle"), alert("silence"), alert("quiet", Severity.NOTICE)]
    assert rules(joining(alerts, [AlertKey(rule="cycle")])) == ["silence"]
    assert joining(alerts, [AlertKey(rule="cycle"), AlertKey(rule="silence")]) == ()
