"""Midwatch's own judge, from source: all rules, or those that look for loops."""

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Step
from midwatch_monitor.rules import rule_settings
from midwatch_monitor.rules.act import Act, Normaliser
from midwatch_peers.detector import Detector, InProcess

NAME = "midwatch"
LOOPS = "midwatch, loop rules"
_LOOP_RULES = {"redundant_steps", "repeated_call", "cycle", "error_streak", "same_failure"}
"""The rules that compare with what the peers have: same acts, same results, same errors."""


class _JudgeSensor:
    def __init__(self, rules: Rules) -> None:
        self._judge = Judge(rules)
        self._normaliser = Normaliser()

    def prepare(self, step: Step) -> tuple[Step, Act]:
        """The step with what is compared of it: masked, and as digests."""
        return step, self._normaliser.act(step)

    def check(self, prepared: tuple[Step, Act]) -> str:
        """The rule whose alert fires or rises at a severity that counts as an alarm."""
        step, act = prepared
        for alert in self._judge.judge(step, act).alerts:
            if alert.firing and alert.severity.alarm:
                return alert.key.rule
        return ""


def detector() -> Detector:
    """All rules with the built-in thresholds."""
    rules = Rules()
    return Detector(
        name=NAME,
        version="source",
        note="all rules; preparing is masking and digests",
        start=lambda: InProcess(_JudgeSensor(rules)),
    )


def loop_detector() -> Detector:
    """The rules that look for loops. Raises LookupError if there are none."""
    rules = _loop_rules()
    return Detector(
        name=LOOPS,
        version="source",
        note=f"only {', '.join(sorted(_LOOP_RULES))}",
        start=lambda: InProcess(_JudgeSensor(rules)),
    )


def _loop_rules() -> Rules:
    """The built-in rules with all off that do not look for loops."""
    rules = Rules()
    settings = rule_settings(rules)
    if missing := _LOOP_RULES - settings.keys():
        raise LookupError(f"no rules of the names {', '.join(sorted(missing))}")
    off = {
        name: each.model_copy(update={"enabled": False})
        for name, each in settings.items()
        if name not in _LOOP_RULES
    }
    return rules.model_copy(update=off)
