"""A count answers only where something changed; the last steps are bits."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import AlertKey, Event, Finding, Severity
from midwatch_monitor.rules.detector import Answer, Clear, Evidence, GradedDetector, Recent, Seen

A, B = AlertKey(rule="r", subject="a"), AlertKey(rule="r", subject="b")


class Counted(GradedDetector):
    """A rule that is told its value."""

    rule = "r"
    evidence = Evidence.EDITS

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        return ()


def gauge(notice: int = 2, warn: int = 4) -> Counted:
    return Counted(Graded(notice_after=notice, warn_after=warn))


def finding(key: AlertKey, severity: Severity, value: float) -> Finding:
    return Finding(key=key, severity=severity, value=value, summary="s")


@pytest.mark.parametrize(
    ("value", "severity"), [(2, Severity.NOTICE), (3.5, Severity.NOTICE), (4, Severity.WARNING)]
)
def test_a_value_has_the_severity_of_the_highest_threshold_it_reached(
    value: float, severity: Severity
) -> None:
    assert gauge().find(value, "s", subject="a") == (finding(A, severity, value),)


def test_the_end_of_what_stood_is_said_once() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert not tried.rests(1)
    assert tried.find(1, "s", subject="a") == (Clear(key=A),)
    assert (tried.rests(1), tried.clear()) == (True, ())


def test_a_finding_about_another_subject_ends_the_one_before() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert tried.find(2, "s", subject="b") == (Clear(key=A), finding(B, Severity.NOTICE, 2))
    assert tried.subject == "b"


def test_what_stands_of_one_subject_leaves_a_low_value_of_another_at_rest() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert [tried.rests(1, about=each) for each in ("a", "b")] == [False, True]
    assert not tried.rests(2, about="b")


def test_only_the_last_steps_are_counted() -> None:
    recent = Recent(3)
    counts = [recent.add(n, 10 * n) if n in {1, 2, 5} else recent.count(n) for n in range(1, 8)]
    assert counts == [1, 2, 2, 1, 1, 1, 1]
    assert recent.steps == (50,)


def test_the_counted_steps_are_named_oldest_first() -> None:
    recent = Recent(4)
    for place, number in enumerate((10, 20, 30, 40, 50, 60)):
        if number != 40:
            recent.add(place, number)
    assert recent.steps == (30, 50, 60)
