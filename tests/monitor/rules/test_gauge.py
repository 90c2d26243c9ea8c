"""A count answers only where something changed; the last steps are bits."""

import pytest

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import AlertKey, Finding, Severity
from midwatch_monitor.rules.detector import Clear, Gauge, Recent

A, B = AlertKey(rule="r", subject="a"), AlertKey(rule="r", subject="b")


def gauge(notice: int = 2, warn: int = 4) -> Gauge:
    return Gauge(Graded(notice_after=notice, warn_after=warn))


def finding(key: AlertKey, severity: Severity, value: float) -> Finding:
    return Finding(key=key, severity=severity, value=value, summary="s")


@pytest.mark.parametrize(
    ("value", "severity"), [(2, Severity.NOTICE), (3.5, Severity.NOTICE), (4, Severity.WARNING)]
)
def test_a_value_has_the_severity_of_the_highest_threshold_it_reached(
    value: float, severity: Severity
) -> None:
    assert gauge().answer(A, value, "s") == (finding(A, severity, value),)


def test_below_every_threshold_there_is_nothing_to_say() -> None:
    tried = gauge()
    assert (tried.rests(1.5), tried.answer(A, 1.5, "s")) == (True, ())
    assert not tried.rests(2)


def test_the_end_of_what_stood_is_said_once() -> None:
    tried = gauge()
    tried.answer(A, 2, "s")
    assert not tried.rests(1)
    assert tried.answer(A, 1, "s") == (Clear(key=A),)
    assert (tried.rests(1), tried.clear()) == (True, ())


def test_a_finding_about_another_subject_ends_the_one_before() -> None:
    tried = gauge()
    tried.answer(A, 2, "s")
    assert tried.answer(B, 2, "s") == (Clear(key=A), finding(B, Severity.NOTICE, 2))
    assert tried.subject == "b"


def test_what_stands_of_one_subject_leaves_a_low_value_of_another_at_rest() -> None:
    tried = gauge()
    tried.answer(A, 2, "s")
    assert [tried.rests(1, about=each) for each in ("a", "b")] == [False, True]
    assert not tried.rests(2, about="b")


def test_a_restart_forgets_what_stood_without_a_word() -> None:
    tried = gauge()
    tried.answer(A, 2, "s")
    tried.restart()
    assert (tried.subject, tried.clear()) == (None, ())


def test_without_thresholds_nothing_is_ever_said() -> None:
    tried = gauge(0, 0)
    assert tried.rests(10**9)
    assert tried.answer(A, 10**9, "s") == ()


def test_only_the_last_steps_are_counted() -> None:
    recent = Recent(3)
    counts = [recent.add(n, 10 * n) if n in {1, 2, 5} else recent.count(n) for n in range(1, 8)]
    assert counts == [1, 2, 2, 1, 1, 1, 1]
    assert recent.steps == (50,)


def test_steps_that_it_is_not_told_of_pass_by() -> None:
    recent = Recent(3)
    recent.add(1, 1)
    assert (recent.add(3, 7), recent.add(6, 9), recent.steps) == (2, 1, (9,))


def test_the_counted_steps_are_named_oldest_first() -> None:
    recent = Recent(4)
    for place, number in enumerate((10, 20, 30, 40, 50, 60)):
        if number != 40:
            recent.add(place, number)
    assert recent.steps == (30, 50, 60)


def test_an_emptied_window_counts_nothing() -> None:
    recent = Recent(4)
    recent.add(1, 1)
    recent.clear()
    assert (recent.steps, recent.count(2), recent.add(2, 2)) == ((), 0, 1)
