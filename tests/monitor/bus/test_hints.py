"""A hint says where to look, and for people in a few words what is there."""

import pytest

from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import (
    Hint,
    Plan,
    Record,
    Step,
    StepKind,
)
from midwatch_stage.factories import alert, entry

ALERT = alert("low_confidence", subject="a secret", summary="what the worker wrote", step=4)


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
    assert hint_of(entry(9, record, attempt=2)) == Hint(
        entry=9, kind=kind, task=1, attempt=2, step=step, note=note
    )
