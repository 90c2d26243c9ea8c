"""Rules of one attempt that confirm each other."""

from collections.abc import Iterable

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Checkpoint, Course, Edit, Event, Severity, Step, StepKind
from midwatch_monitor.rules.tuning import rule_settings

NOTICE, WARNING, CRITICAL = Severity.NOTICE, Severity.WARNING, Severity.CRITICAL


def only(**settings: dict[str, object]) -> Rules:
    """These rules, and each other one off."""
    off: dict[str, dict[str, object]] = {
        name: {"enabled": False} for name in rule_settings(Rules())
    }
    return Rules.model_validate({**off, **settings})


def report(
    number: int,
    *blockers: str,
    confidence: int = 80,
    decision: Course = Course.CONTINUE,
) -> Step:
    checkpoint = Checkpoint(
        progress_percent=number, confidence=confidence, decision=decision, blockers=blockers
    )
    return Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=checkpoint)


def edit(number: int) -> Step:
    edits = (Edit(path="a.py", digest=str(number)),)
    return Step(number=number, kind=StepKind.TOOL, tool="edit", args=str(number), edits=edits)


def look(number: int) -> Step:
    return Step(number=number, kind=StepKind.TOOL, tool="ls", output="a.py", ok=True)


def say(number: int) -> Step:
    return Step(number=number, kind=StepKind.MESSAGE, text="Well.")


def told(rules: Rules, events: Iterable[Event]) -> list[dict[str, Severity]]:
    """For each event the alerts that changed, with their severities."""
    judge = Judge(rules)
    return [
        {alert.key.rule: alert.severity for alert in judge.observe(event).alerts}
        for event in events
    ]


EDITS: dict[str, object] = {"notice_after": 1}
CALLS: dict[str, object] = {"notice_after": 2, "warn_after": 0, "critical_after": 0}


def test_a_higher_alert_raises_the_lower_one_of_another_rule_once() -> None:
    rules = only(
        multiple_blockers={"severity": "notice"}, low_confidence={}, explicit_escalation={}
    )
    three = ("a", "b", "c")
    events = [
        report(1, *three),
        report(2, *three, confidence=10),
        report(3, *three, confidence=10, decision=Course.ESCALATE),
    ]
    assert told(rules, events) == [
        {"multiple_blockers": NOTICE},
        {"low_confidence": WARNING, "multiple_blockers": WARNING},
        {"explicit_escalation": CRITICAL, "low_confidence": CRITICAL},
    ]


def test_notices_of_different_evidence_make_the_newest_a_warning_and_no_more() -> None:
    rules = only(repeated_edits=EDITS, repeated_call=CALLS)
    events = [edit(1), look(2), look(3), look(4), look(5)]
    assert told(rules, events) == [
        {"repeated_edits": NOTICE},
        {},
        {"repeated_call": WARNING},
        {},
        {},
    ]


def test_notices_of_the_same_evidence_stay_notices() -> None:
    rules = only(redundant_steps=CALLS, repeated_call=CALLS)
    assert told(rules, [look(1), look(2), look(3)]) == [
        {},
        {"repeated_call": NOTICE},
        {"redundant_steps": NOTICE},
    ]


def test_what_was_resolved_and_fires_anew_may_be_raised_anew() -> None:
    rules = only(repeated_edits=EDITS, repeated_call={**CALLS, "cooldown": 0})
    events = [edit(1), look(2), look(3), edit(4), look(5), look(6)]
    assert [each.get("repeated_call") for each in told(rules, events)] == [
        None,
        None,
        WARNING,
        WARNING,
        None,
        WARNING,
    ]


def test_without_agreement_each_rule_stands_for_itself() -> None:
    rules = only(repeated_edits=EDITS, repeated_call=CALLS)
    alone = rules.model_copy(update={"agreement": False})
    assert told(alone, [edit(1), look(2), look(3)]) == [
        {"repeated_edits": NOTICE},
        {},
        {"repeated_call": NOTICE},
    ]


def test_what_only_pends_confirms_nothing() -> None:
    rules = only(repeated_edits={**EDITS, "hold": 9}, monologue={"notice_after": 1})
    assert told(rules, [edit(1), say(2)])[1] == {"monologue": NOTICE}
