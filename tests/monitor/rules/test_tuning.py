"""Other thresholds for some workers and some tools."""

import pytest
from pydantic import ValidationError

from midwatch_monitor.config.rules import LowConfidence, RepeatedCall, Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Severity, Step, StepKind
from midwatch_monitor.rules.overrides import for_worker, rule_settings


def calls(**tools: dict[str, object]) -> RepeatedCall:
    return RepeatedCall.model_validate(
        {"notice_after": 3, "warn_after": 4, "critical_after": 0, "tools": tools}
    )


def test_the_settings_of_all_rules_stand_under_their_names() -> None:
    settings = rule_settings(Rules())
    assert (settings["cycle"], "agreement" in settings) == (Rules().cycle, False)


def test_a_worker_may_have_thresholds_of_its_own() -> None:
    own = {"below": 10, "hold": "5s"}
    rules = Rules(low_confidence=LowConfidence.model_validate({"workers": {"bold": own}}))
    bold = for_worker(rules, "bold").low_confidence
    assert (bold.below, bold.hold.seconds, bold.severity) == (10, 5, Severity.WARNING)
    assert for_worker(rules, "shy") == rules


@pytest.mark.parametrize("override", [{"blow": 10}, {"warn_after": -1}])
def test_a_wrong_override_is_refused(override: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Judge(Rules(repeated_call=calls(wait_less=override)))


@pytest.mark.parametrize(
    ("tool", "severities"),
    [
        ("ls", [Severity.NOTICE, Severity.WARNING]),
        ("pay", [Severity.WARNING]),  # sooner than any other tool
        ("build", [Severity.CRITICAL]),  # later
        ("poll", []),
    ],
)
def test_a_judge_keeps_to_the_thresholds_of_the_tool(tool: str, severities: list[Severity]) -> None:
    off = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = calls(
        pay={"notice_after": 0, "warn_after": 2},
        build={"notice_after": 0, "warn_after": 0, "critical_after": 5},
        poll={"enabled": False},
    )
    judge = Judge(Rules.model_validate({**off, "repeated_call": own}))
    alerts = [
        alert.severity
        for number in range(1, 6)
        for alert in judge.observe(
            Step(number=number, kind=StepKind.TOOL, tool=tool, output="o")
        ).alerts
    ]
    assert alerts == severities
