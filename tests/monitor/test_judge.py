"""All rules of one attempt together."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.rules import DETECTORS, EVIDENCE
from midwatch_monitor.rules.overrides import rule_settings
from midwatch_tests.factories import edit, editing, message, reflecting, step


def only_these_rules(*, agreement: bool = False, **settings: dict[str, object]) -> Rules:
    """These rules, each other one off; nothing agrees unless that is said."""
    off: dict[str, dict[str, object]] = {
        name: {"enabled": False} for name in rule_settings(Rules())
    }
    return Rules.model_validate({**off, **settings, "agreement": agreement})


SEED = only_these_rules(
    explicit_escalation={"cooldown": 0},
    low_confidence={"below": 30, "cooldown": 0},
    declining_confidence={"window": 3, "drop": 20, "cooldown": 0},
    stalled_progress={"window": 3, "min_gain": 1, "cooldown": 0},
    repeated_edits={
        "notice_after": 0,
        "critical_after": 5,
        "return_weight": 1,
        "movement_resets": False,
        "cooldown": 0,
    },
)

NOTICED = Rules.model_validate({"multiple_blockers": {"severity": "notice"}}).multiple_blockers


def report(
    number: int, *, progress: int | None = None, confidence: int = 80, **fields: Any
) -> r.Step:
    return reflecting(number, number if progress is None else progress, confidence, **fields)


def work(number: int, *, path: str = "", exit_code: int | None = None) -> r.Step:
    edits = (edit(path, str(number)),) if path else ()
    return step(number, "t", ok=None, edits=edits, exit_code=exit_code, output="o")


def feed(judge: Judge, events: Iterable[r.Event]) -> list[r.Judgement]:
    return [judge.observe(event) for event in events]


def brief(alerts: Iterable[r.Alert]) -> list[tuple[str, r.AlertState, r.Resolution | None]]:
    return [(alert.key.rule, alert.state, alert.resolution) for alert in alerts]


def firing_after(events: Iterable[r.Event], rules: Rules = SEED) -> list[str]:
    judge = Judge(rules)
    feed(judge, events)
    return [alert.key.rule for alert in judge.firing]


def stall(first: int = 1, *, plan_step: int = 1) -> list[r.Event]:
    return [report(number, progress=60, plan_step=plan_step) for number in range(first, first + 3)]


def test_every_rule_over_events_has_a_detector_and_each_its_evidence() -> None:
    of_time_or_of_several = ["silence", "workspace_conflict"]
    names = list(rule_settings(Rules()))
    assert [*DETECTORS, *of_time_or_of_several] == names
    assert sorted(EVIDENCE) == sorted(names)


def test_a_finding_stands_until_it_is_cleared_and_a_value_that_changes_is_kept_untold() -> None:
    judge = Judge(SEED)
    first, *rest = feed(judge, [report(1, confidence=10), work(2), report(3, confidence=5)])
    assert brief(first.alerts) == [("low_confidence", r.AlertState.FIRING, None)]
    assert [judgement.alerts for judgement in rest] == [(), ()]
    [alert] = judge.firing
    assert (alert.value, alert.step, alert.since_step) == (5, 1, 1)
    cleared = judge.observe(report(4, confidence=30))
    assert brief(cleared.alerts) == [
        ("low_confidence", r.AlertState.RESOLVED, r.Resolution.CLEARED)
    ]
    assert judge.firing == ()


@pytest.mark.parametrize(
    "event",
    [
        r.Change(plan_step=2),
        r.Change(revision=1),
        report(4, progress=60, decision=r.CheckpointDecision.PIVOT),
        report(4, progress=60, plan_step=2),
    ],
)
def test_a_restart_of_the_windows_resolves_what_they_found(event: r.Event) -> None:
    judge = Judge(SEED)
    feed(judge, stall())
    judgement = judge.observe(event)
    assert brief(judgement.alerts) == [
        ("stalled_progress", r.AlertState.RESOLVED, r.Resolution.RESTARTED)
    ]
    assert judge.firing == ()
    assert feed(judge, stall(5)[:2])[-1].alerts == ()


ONE, TWO, THREE = stall()
PIVOT = r.CheckpointDecision.PIVOT
PIVOTS = [report(number, progress=60, decision=PIVOT) for number in range(1, 6)]
TURNS = [ONE, TWO, report(3, progress=60, decision=PIVOT), *stall(4)]
FOUR_EDITS = [work(number, path="a.py") for number in range(1, 5)]
FOUR_MORE = [work(number, path="a.py") for number in range(6, 10)]
STALLED, LOW = ["stalled_progress"], ["low_confidence"]


@pytest.mark.parametrize(
    ("events", "firing"),
    [
        ([ONE, TWO, r.Change(plan_steps=5), THREE], STALLED),
        ([ONE, TWO, r.Change(revision=0), THREE], STALLED),
        ([ONE, TWO, r.Change(reflect=True), THREE], STALLED),
        (TURNS[:-1], []),
        (TURNS, STALLED),
        ([report(1, decision=PIVOT, confidence=3)], LOW),
        ([report(1, confidence=3), r.Change(plan_step=2)], LOW),
        ([*FOUR_EDITS, report(5, decision=PIVOT), *FOUR_MORE], []),
        ([*FOUR_EDITS, report(5), *FOUR_MORE], ["repeated_edits"]),
        (PIVOTS[:4], []),
        (PIVOTS, STALLED),
        ([*PIVOTS[:4], r.Change(plan_step=2), PIVOTS[4]], []),
    ],
    ids=[
        *("more plan steps", "the same plan", "a request to report"),
        *("a pivot is not part of the new window", "three reports after it are"),
        *("a pivot is judged for itself", "a rule without a window"),
        *("a pivot empties the counts", "a report does not"),
        *("two pivots", "the third on a plan step empties nothing", "the next step"),
    ],
)
def test_a_restart_is_what_empties_windows(events: list[r.Event], firing: list[str]) -> None:
    assert firing_after(events) == firing


def test_a_hold_runs_while_nothing_is_said() -> None:
    rules = only_these_rules(low_confidence={"hold": 2})
    judge = Judge(rules)
    judgements = feed(judge, [report(1, confidence=10), work(2), work(3), work(4)])
    assert [[alert.state for alert in each.alerts] for each in judgements] == [
        [r.AlertState.PENDING],
        [],
        [r.AlertState.FIRING],
        [],
    ]


PARKED = r.Change(lifecycle=r.Lifecycle.INPUT_REQUIRED)
ASKS = report(1, decision=r.CheckpointDecision.ESCALATE)


@pytest.mark.parametrize(
    ("events", "health"),
    [
        ([], r.Health.OK),
        ([report(1, confidence=10)], r.Health.SUSPECT),
        ([ASKS], r.Health.STUCK),
        ([ASKS, PARKED], r.Health.STUCK),
        ([report(1, blockers=("a", "b", "c"))], r.Health.NOTICE),
    ],
)
def test_health_is_what_fires_while_it_waits(events: Sequence[r.Event], health: r.Health) -> None:
    judge = Judge(SEED.model_copy(update={"multiple_blockers": NOTICED}))
    feed(judge, events)
    assert judge.health is health


def test_a_judgement_says_what_moved() -> None:
    judge = Judge(SEED)
    assert judge.observe(work(1, path="a.py")) == r.Judgement(
        movements=frozenset({r.Movement.NEW_CONTENT}), moved_paths=("a.py",)
    )


def test_the_end_of_an_attempt_resolves_what_is_open() -> None:
    judge = Judge(only_these_rules(low_confidence={"hold": 9}, explicit_escalation={}))
    feed(judge, [report(1, confidence=10, decision=r.CheckpointDecision.ESCALATE)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ended = judge.end(now).alerts
    assert sorted((a.key.rule, a.resolution, a.at) for a in ended) == [
        ("explicit_escalation", r.Resolution.ENDED, now),
        ("low_confidence", r.Resolution.ENDED, now),
    ]
    assert (judge.firing, judge.end(now)) == ((), r.Judgement())


def test_a_rule_that_breaks_is_switched_off_and_stops_nothing_else() -> None:
    judge = Judge(SEED)
    judge.observe(report(1, confidence=10, decision=r.CheckpointDecision.ESCALATE))
    broken = report(2, confidence="ten", decision=r.CheckpointDecision.ESCALATE)  # pyright: ignore[reportArgumentType]
    judgement = judge.observe(broken)
    assert brief(judgement.alerts) == [
        ("low_confidence", r.AlertState.RESOLVED, r.Resolution.ENDED)
    ]
    [fault] = judgement.faults
    assert (fault.part, fault.error.split(":")[0]) == ("low_confidence", "TypeError")
    again = [fault.part for _ in range(3) for fault in judge.observe(broken).faults]
    assert again == ["declining_confidence"]
    assert "explicit_escalation" in [alert.key.rule for alert in judge.firing]


def long_run(length: int) -> list[r.Event]:
    """Files that come back, failures that change, reports that fall and stall."""
    events: list[r.Event] = []
    for number in range(1, length + 1):
        if number % 5 == 0:
            events.append(report(number, progress=number // 50 % 100, confidence=number * 7 % 100))
        else:
            events.append(work(number, path=f"{number % 7}.py", exit_code=number % 3))
        if number % 97 == 0:
            events.append(r.Change(plan_step=number // 97))
    return events


@pytest.mark.parametrize("cut", [1, 50, 199])
def test_rebuilding_from_the_same_events_gives_the_same_judgements(cut: int) -> None:
    events = long_run(200)
    live = feed(Judge(Rules()), events)
    rebuilt = Judge(Rules())
    feed(rebuilt, events[:cut])
    assert feed(rebuilt, events[cut:]) == live[cut:]


def test_what_is_open_is_what_was_told() -> None:
    judge = Judge(Rules())
    told: dict[object, r.Alert] = {}
    for judgement in feed(judge, long_run(500)):
        told.update({alert.key: alert for alert in judgement.alerts})
    fired = {key: alert.severity for key, alert in told.items() if alert.firing}
    assert fired == {alert.key: alert.severity for alert in judge.firing}
    assert fired


NOTICE, WARNING, CRITICAL = r.Severity.NOTICE, r.Severity.WARNING, r.Severity.CRITICAL


def look(number: int) -> r.Step:
    return step(number, "ls", output="a.py")


def changed_alerts(rules: Rules, events: Iterable[r.Event]) -> list[dict[str, r.Severity]]:
    """For each event the alerts that changed, with their severities."""
    judge = Judge(rules)
    return [
        {alert.key.rule: alert.severity for alert in judge.observe(event).alerts}
        for event in events
    ]


EDITS: dict[str, object] = {"notice_after": 1}

CALLS: dict[str, object] = {"notice_after": 2, "warn_after": 0, "critical_after": 0}


def test_a_higher_alert_raises_the_lower_one_of_another_rule_once() -> None:
    rules = only_these_rules(
        agreement=True,
        multiple_blockers={"severity": "notice"},
        low_confidence={},
        explicit_escalation={},
    )
    three = ("a", "b", "c")
    events = [
        report(1, blockers=three),
        report(2, blockers=three, confidence=10),
        report(3, blockers=three, confidence=10, decision=r.CheckpointDecision.ESCALATE),
    ]
    assert changed_alerts(rules, events) == [
        {"multiple_blockers": NOTICE},
        {"low_confidence": WARNING, "multiple_blockers": WARNING},
        {"explicit_escalation": CRITICAL, "low_confidence": CRITICAL},
    ]


AGREE = only_these_rules(agreement=True, repeated_edits=EDITS, repeated_call=CALLS)
EDITED, CALLED = {"repeated_edits": NOTICE}, {"repeated_call": NOTICE}


@pytest.mark.parametrize(
    ("rules", "events", "expected"),
    [
        (
            AGREE,
            [editing(1, "a.py"), *map(look, range(2, 6))],
            [EDITED, {}, {"repeated_call": WARNING}, {}, {}],
        ),
        (
            only_these_rules(agreement=True, redundant_steps=CALLS, repeated_call=CALLS),
            [look(1), look(2), look(3)],
            [{}, CALLED, {"redundant_steps": NOTICE}],
        ),
        (
            AGREE.model_copy(update={"agreement": False}),
            [editing(1, "a.py"), look(2), look(3)],
            [EDITED, {}, CALLED],
        ),
        (
            only_these_rules(
                agreement=True, repeated_edits={**EDITS, "hold": 9}, monologue={"notice_after": 1}
            ),
            [editing(1, "a.py"), message(2)],
            [EDITED, {"monologue": NOTICE}],
        ),
    ],
    ids=["different evidence", "the same evidence", "without agreement", "what only pends"],
)
def test_notices_of_different_evidence_make_the_newest_a_warning_and_no_more(
    rules: Rules, events: list[r.Event], expected: list[dict[str, r.Severity]]
) -> None:
    assert changed_alerts(rules, events) == expected


def test_what_was_resolved_and_fires_anew_may_be_raised_anew() -> None:
    rules = only_these_rules(
        agreement=True, repeated_edits=EDITS, repeated_call={**CALLS, "cooldown": 0}
    )
    events = [editing(1, "a.py"), look(2), look(3), editing(4, "a.py"), look(5), look(6)]
    assert [each.get("repeated_call") for each in changed_alerts(rules, events)] == [
        None,
        None,
        WARNING,
        WARNING,
        None,
        WARNING,
    ]
