"""What follows from an analysis, as the worker reads it."""

import pytest

from midwatch_monitor.config.settings import ErrorSettings
from midwatch_monitor.records import Cause
from midwatch_tools.gate.gate import LastFailure
from midwatch_tools.tools.report_error import analysis_answer

FAILED = LastFailure(number=7, act="`pytest`", blocked="", words="KeyError: 'a'")
BLOCKED = LastFailure(
    number=7, act="`make`", blocked="missing program gcc", words="gcc: command not found"
)


def test_a_transient_failure_is_told_its_waits() -> None:
    said = analysis_answer(Cause.TRANSIENT, FAILED, ErrorSettings(backoff_seconds=0.5))
    assert "Midwatch waits before each try (0.5 s, 1 s, 2 s)" in said


@pytest.mark.parametrize(
    ("failure", "where"),
    [
        (FAILED, "the output of `pytest` (`KeyError: 'a'`)"),
        (BLOCKED, "the surroundings (missing program gcc)"),
        (None, "what the approach took for granted"),
    ],
)
def test_a_permanent_failure_is_told_where_to_look(failure: LastFailure | None, where: str) -> None:
    said = analysis_answer(Cause.PERMANENT, failure, ErrorSettings())
    assert said.startswith("Recorded. Change the approach before you try again")
    assert f"Look first at {where}" in said


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Cause.PERMANENT, "An unknown cause counts as permanent here. Change the approach"),
        (Cause.TRANSIENT, "An unknown cause counts as transient here. Change nothing"),
        (Cause.UNKNOWN, "One more try is allowed as it is"),
    ],
)
def test_an_unknown_cause_is_told_the_policy(policy: Cause, says: str) -> None:
    assert says in analysis_answer(Cause.UNKNOWN, FAILED, ErrorSettings(unknown=policy))
