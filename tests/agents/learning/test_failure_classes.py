"""The class of a failure: named by somebody, or told by how the attempt went."""

from typing import Any

import pytest

from midwatch_agents.learning.case import named_class, observed_class
from midwatch_monitor.config.learning import FAILURE_CLASSES


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("wrong_result", "wrong_result"),
        ("Wrong result", "wrong_result"),
        ("unknown", "unknown"),
        ("hubris", "other"),
        ("", "other"),
    ],
)
def test_r26_a_class_that_nobody_configured_is_another(named: str, expected: str) -> None:
    assert named_class(named, FAILURE_CLASSES) == expected


@pytest.mark.parametrize(
    ("ending", "rules", "check_failed", "expected"),
    [
        ("out-of-budget", ("cycle",), True, "budget"),
        ("unaccepted", ("silence", "cycle"), True, "loop"),
        ("unaccepted", ("blocked_environment",), True, "environment"),
        ("stuck", (), True, "loop"),
        ("unaccepted", ("silence",), True, "wrong_result"),
        ("done", (), False, "unknown"),
    ],
)
def test_r26_without_a_model_the_end_the_alarms_and_the_checks_tell_the_class(
    ending: str, rules: tuple[str, ...], check_failed: bool, expected: str
) -> None:
    given: dict[str, Any] = {"ending": ending, "rules": rules, "check_failed": check_failed}
    assert observed_class(FAILURE_CLASSES, **given) == expected
    assert observed_class(("late",), **given) == "unknown"
