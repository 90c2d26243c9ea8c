"""When alerts become a question, and when they must wait."""

from typing import Any

import pytest

from midwatch_monitor.escalation import alerts_to_join, audible
from midwatch_monitor.records import Alert, AlertKey, AlertState, Severity
from midwatch_stage import factories


def alert(
    rule: str, severity: Severity = Severity.WARNING, *, since: int = 1, **fields: Any
) -> Alert:
    return factories.alert(rule, severity, since_step=since, **fields)


def rules(keys: tuple[AlertKey, ...]) -> list[str]:
    return [key.rule for key in keys]


def test_a_lone_notice_is_not_heard() -> None:
    assert audible([alert("a", Severity.NOTICE)]) == ()


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


def test_what_fires_later_joins_once() -> None:
    alerts = [alert("cycle"), alert("silence"), alert("quiet", Severity.NOTICE)]
    assert rules(alerts_to_join(alerts, [AlertKey(rule="cycle")])) == ["silence"]
    assert alerts_to_join(alerts, [AlertKey(rule="cycle"), AlertKey(rule="silence")]) == ()
