"""Other thresholds for some workers and some tools."""

import pytest
from pydantic import ValidationError

from midwatch_monitor.config.rules import LowConfidence, RepeatedCall, Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import AlertKey, Finding, Severity, Step, StepKind
from midwatch_monitor.rules.detector import Clear
from midwatch_monitor.rules.tuning import ToolTuning, for_worker, rule_settings

KEY = AlertKey(rule="repeated_call", subject="t")


def calls(**tools: dict[str, object]) -> RepeatedCall:
    return RepeatedCall.model_validate(
        {"notice_after": 3, "warn_after": 4, "critical_after": 0, "tools": tools}
    )


def found(value: float, severity: Severity = Severity.NOTICE) -> Finding:
    return Finding(key=KEY, severity=severity, value=value, summary="s", evidence=(1,))


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
        ToolTuning(calls(wait_less=override))


def test_the_widest_thresholds_find_what_any_tool_calls_for() -> None:
    tuning = ToolTuning(calls(ls={"notice_after": 9}, pay={"warn_after": 2, "critical_after": 5}))
    widest = tuning.widest
    assert isinstance(widest, RepeatedCall)
    assert (widest.notice_after, widest.warn_after, widest.critical_after) == (3, 2, 5)


def test_a_finding_is_graded_by_the_thresholds_of_its_tool() -> None:
    tuning = ToolTuning(calls(ls={"notice_after": 9, "warn_after": 0}, pay={"warn_after": 2}))
    graded = [tuning.grade(found(3), tool) for tool in ("ls", "pay", "other")]
    assert graded == [Clear(key=KEY), found(3, Severity.WARNING), found(3)]


def test_a_clear_stays_one() -> None:
    assert ToolTuning(calls()).grade(Clear(key=KEY), "ls") == Clear(key=KEY)


def test_a_rule_may_be_off_for_a_tool() -> None:
    tuning = ToolTuning(calls(poll={"enabled": False}))
    assert (tuning.hears("poll"), tuning.hears("ls")) == (False, True)


@pytest.mark.parametrize(
    ("tool", "severities"),
    [("ls", [Severity.NOTICE, Severity.WARNING]), ("pay", [Severity.WARNING]), ("poll", [])],
)
def test_a_judge_keeps_to_the_thresholds_of_the_tool(tool: str, severities: list[Severity]) -> None:
    off = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = calls(pay={"notice_after": 0, "warn_after": 2}, poll={"enabled": False})
    judge = Judge(Rules.model_validate({**off, "repeated_call": own}))
    alerts = [
        alert.severity
        for number in range(1, 6)
        for alert in judge.observe(
            Step(number=number, kind=StepKind.TOOL, tool=tool, output="o")
        ).alerts
    ]
    assert alerts == severities
