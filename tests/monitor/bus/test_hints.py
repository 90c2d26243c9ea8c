"""A hint says where to look, and for people in a few words what is there."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Entry,
    Hint,
    Plan,
    Record,
    Severity,
    Step,
    StepKind,
)

ALERT = Alert(
    key=AlertKey(rule="low_confidence", subject="a secret"),
    severity=Severity.WARNING,
    state=AlertState.FIRING,
    value=20.0,
    summary="what the worker wrote",
    since_step=3,
    step=4,
)


@pytest.mark.parametrize(
    ("record", "kind", "step", "note"),
    [
        (Step(number=5, kind=StepKind.TOOL, output="a secret"), "step", 5, ""),
        (ALERT, "alert", 4, "low_confidence warning firing"),
        (Plan(steps=()), "plan", None, ""),
    ],
)
def test_a_hint_names_the_step_and_of_an_alert_the_rule_and_nothing_that_was_written(
    record: Record, kind: str, step: int | None, note: str
) -> None:
    entry = Entry(id=9, record=record, at=datetime(2026, 11, 21, tzinfo=UTC), task=1, attempt=2)
    assert hint_of(entry) == Hint(entry=9, kind=kind, task=1, attempt=2, step=step, note=note)
