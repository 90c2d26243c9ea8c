"""What a worker says of its work or fails to say, and what it used, at each boundary."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Alert,
    Budget,
    Change,
    CheckpointDecision,
    Event,
    Meter,
    Severity,
    Step,
)
from midwatch_monitor.rules import rule_settings
from midwatch_monitor.rules.act import claims_success
from midwatch_tests.factories import change, message, reflecting, step

NOTICE, WARNING, CRITICAL = Severity.NOTICE, Severity.WARNING, Severity.CRITICAL


def alerts(rule: str, events: Iterable[Event], **settings: Any) -> list[Alert | None]:
    """What one rule says after each event; steps are numbered."""
    off: dict[str, Any] = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = {rule: {"hold": 0, "cooldown": 0, **settings}}
    judge = Judge(Rules.model_validate({"agreement": False, **off, **own}))
    said, number = list[Alert | None](), 0
    for event in events:
        if isinstance(event, Step):
            number += 1
            event = replace(event, number=number)
        judge.observe(event)
        said.append(judge.firing[0] if judge.firing else None)
    return said


def last_alert(
    rule: str, events: Iterable[Event], **settings: Any
) -> tuple[Severity, float] | None:
    alert = alerts(rule, events, **settings)[-1]
    return alert and (alert.severity, alert.value)


def confidence_reports(*values: int) -> list[Step]:
    return [reflecting(progress=10 * n, confidence=value) for n, value in enumerate(values)]


def progress_reports(*values: int) -> list[Step]:
    return [reflecting(progress=value) for value in values]


def spent_budget(requests: float, limit: float | None = 100, **more: Meter) -> Change:
    return change(budget=Budget(requests=Meter(used=requests, limit=limit), **more))


OFFERED = change(reflect=True)
PLAN = change(plan_step=1, plan_steps=3)
TIGHT = spent_budget(10, 60, tokens=Meter(used=900, limit=1000), cost_usd=Meter(used=5))
FAILED = step(args="pytest -q", exit_code=1, ok=False)
CLAIM = message(text="All tests pass.")


def calls(count: int, *, request: int | None = None) -> list[Step]:
    """So many calls, each of a request of its own unless that is said."""
    return [
        step(tool="look", args=f"{n}", request=1 + n if request is None else request)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("rule", "settings", "events", "told", "evidence"),
    [
        (
            "low_confidence",
            {"below": 30},
            confidence_reports(12),
            (WARNING, 12, "stated confidence is 12 %, below 30 %"),
            (1,),
        ),
        (
            "stalled_progress",
            {"window": 3},
            progress_reports(38, 38, 38),
            (CRITICAL, 0, "progress stuck at 38 % for 3 checkpoints"),
            (1, 2, 3),
        ),
        (
            "stalled_progress",
            {"window": 3, "min_gain": 5},
            progress_reports(50, 52, 54),
            (CRITICAL, 4, "progress went from 50 % to 54 % in 3 checkpoints"),
            (1, 2, 3),
        ),
        (
            "missed_checkpoint",
            {"warn_after": 3},
            [OFFERED, reflecting(), *calls(9)],
            (WARNING, 3, "no checkpoint in 9 requests (3 reminder intervals)"),
            (1, 10),
        ),
        (
            "monologue",
            {"notice_after": 3},
            [step(), message(), message(), message()],
            (NOTICE, 3, "3 turns in a row without an act"),
            (2, 4),
        ),
        (
            "unsupported_claim",
            {},
            [FAILED, CLAIM],
            (WARNING, 1, "says that the tests pass; they failed when last run, at step 1"),
            (1, 2),
        ),
        ("budget_burn", {}, [TIGHT], (WARNING, 90, "90 % of the tokens are used"), (0,)),
        (
            "budget_burn",
            {},
            [change(plan_step=4, plan_steps=4), spent_budget(100), reflecting(progress=40)],
            (WARNING, 100, "100 % of the requests are used, and 85 % of the work is done"),
            (1,),
        ),
        (
            "steps_on_plan_step",
            {"notice_after": 3, "warn_after": 5},
            [PLAN, *calls(5)],
            (WARNING, 5, "5 steps on one plan step"),
            (1, 5),
        ),
        (
            "steps_on_plan_step",
            {"notice_after": 3},
            [replace(PLAN, plan_step_requests=2), *calls(3)],
            (NOTICE, 3, "3 steps on one plan step, which was given 2 requests"),
            (1, 3),
        ),
    ],
)
def test_a_finding_says_what_where_and_how_much(
    rule: str,
    settings: dict[str, int],
    events: list[Event],
    told: tuple[object, ...],
    evidence: tuple[int, ...],
) -> None:
    alert = alerts(rule, events, **settings)[-1]
    assert alert is not None
    assert (alert.severity, alert.value, alert.summary) == told
    assert alert.evidence == evidence


@pytest.mark.parametrize(
    ("values", "fall"),
    [
        ((80, 70, 60), 20),
        ((80, 70, 61), None),
        ((80, 90, 60), 20),
        ((80, 60, 60), 20),
        ((80, 50, 51), None),
        ((80, 50), None),
        ((90, 80, 70, 61), None),
    ],
)
def test_confidence_declines_from_the_first_to_the_last_of_a_full_window(
    values: tuple[int, ...], fall: float | None
) -> None:
    told = last_alert("declining_confidence", confidence_reports(*values), window=3, drop=20)
    assert told == (fall and (WARNING, fall))


@pytest.mark.parametrize(
    ("values", "gain"),
    [
        ((60, 60, 60), 0),
        ((0, 0, 0), 0),
        ((60, 70, 50), -10),
        ((60, 60, 61), None),
        ((60, 60), None),
        ((100, 100, 100), None),
    ],
)
def test_progress_stalls_over_a_full_window_and_never_at_100(
    values: tuple[int, ...], gain: float | None
) -> None:
    told = last_alert("stalled_progress", progress_reports(*values), window=3, min_gain=1)
    assert told == (None if gain is None else (CRITICAL, gain))


def test_the_window_of_progress_may_be_longer_than_all_others_and_a_gain_may_be_too_small() -> None:
    found = alerts("stalled_progress", progress_reports(*range(40, 47)), window=6, min_gain=6)
    assert [bool(each) for each in found] == [False] * 5 + [True] * 2
    assert (
        last_alert("stalled_progress", progress_reports(50, 52, 55), window=3, min_gain=5) is None
    )


@pytest.mark.parametrize("pivots", [2, 3])
def test_a_pivot_that_begins_a_window_is_not_judged_by_it(pivots: int) -> None:
    pivot = reflecting(progress=40, decision=CheckpointDecision.PIVOT)
    events = [*[pivot] * pivots, *progress_reports(40, 40)]
    found = last_alert("stalled_progress", events, window=3, min_gain=1)
    assert (found is not None) is (pivots > 2)  # who turns again and again goes in circles


def test_blockers_of_different_checkpoints_are_not_added_up() -> None:
    assert last_alert("multiple_blockers", [reflecting(blockers=("a", "b"))] * 2, count=3) is None


@pytest.mark.parametrize("rule", ["low_confidence", "declining_confidence"])
def test_confidence_worth_nothing_is_no_alarm_until_another_model_goes_on(rule: str) -> None:
    falling = [*confidence_reports(80, 50, 10), change(doing="x")]
    worthless = change(confidence_counts=False)
    found = alerts(rule, [*falling, worthless, *falling, change(model="another"), *falling])
    assert [bool(each) for each in found[2:]] == [True, True, *[False] * 8, True, True]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param([OFFERED, *calls(8)], None, id="two intervals"),
        pytest.param([OFFERED, *calls(9)], (WARNING, 3), id="three intervals"),
        pytest.param([OFFERED, *calls(18)], (CRITICAL, 6), id="six intervals"),
        pytest.param([OFFERED, *calls(9), reflecting(), *calls(8)], None, id="begun anew"),
        pytest.param([OFFERED, *calls(17, request=0)], None, id="no known request counts half"),
        pytest.param([OFFERED, *calls(18, request=0)], (WARNING, 3), id="twice as many of those"),
        pytest.param(calls(100), None, id="the tool is not there"),
        pytest.param([*calls(20), reflecting(), *calls(9)], (WARNING, 3), id="a report shows it"),
        pytest.param([OFFERED, *calls(50, request=1)], None, id="one request"),
        pytest.param(
            [OFFERED, change(reflect_every=1), *calls(3), reflecting(), *calls(5, request=0)],
            None,
            id="the rest of the request that reported",
        ),
        pytest.param([OFFERED, *calls(9), change(reflect_every=0)], None, id="no reminders"),
        pytest.param(
            [OFFERED, change(reflect_every=0), *calls(50)], None, id="none from the start"
        ),
        pytest.param([OFFERED, *calls(9), change(reflect=False)], None, id="taken away"),
        pytest.param([OFFERED, change(reflect=False), *calls(9)], None, id="taken away before"),
        pytest.param(
            [OFFERED, *calls(8), change(reflect=False), OFFERED, *calls(8)], None, id="given back"
        ),
        pytest.param(
            [OFFERED, *calls(8), change(reflect=False), OFFERED, *calls(9)],
            (WARNING, 3),
            id="given back for long",
        ),
        pytest.param(
            [OFFERED, *calls(9), step(tool="reflect", ok=False), *calls(8)], None, id="refused"
        ),
    ],
)
def test_a_report_is_missed_in_requests_in_which_it_could_have_come(
    events: list[Event], told: tuple[Severity, float] | None
) -> None:
    assert last_alert("missed_checkpoint", events, warn_after=3, critical_after=6) == told


def test_the_requests_of_one_interval_are_those_after_the_report() -> None:
    told = replace(reflecting(), request=1)
    rest = [step(tool="look", args=f"{n}", request=1 + n // 5) for n in range(5 * 3 + 1)]
    found = alerts("missed_checkpoint", [OFFERED, change(reflect_every=1), told, *rest])
    assert [bool(each) for each in found[3:]] == [False] * 15 + [True]


@pytest.mark.parametrize("tool", ["bash", "set_plan", "wait"])
def test_any_call_of_a_tool_ends_a_monologue(tool: str) -> None:
    events = [*[message()] * 3, step(tool=tool), message(), message()]
    assert [bool(each) for each in alerts("monologue", events)] == [
        False,
        False,
        True,
        *[False] * 3,
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("All tests pass.", "Now all tests pass!", "I fixed it and the tests are passing"),
        *("All 12 tests passed", "The test suite is green", "Every test passes"),
        *("All of the tests now pass", "Great! All checks succeeded.", "The unit tests all pass"),
        *("I should stop here. All tests pass.", "all tests have passed"),
    ],
)
def test_a_claim_of_success_is_one(text: str) -> None:
    assert claims_success(text)


@pytest.mark.parametrize(
    "text",
    [
        *("All tests should pass", "Let me check that all tests pass"),
        *("I will make sure all tests pass", "We go on until all tests pass"),
        *("If all tests pass, submit", "Once the tests pass I will submit", "Not all tests pass"),
        *("The tests do not pass", "All tests pass except one", "All tests pass, but one"),
        *("All tests passed before my change", "All tests pass if I set the variable"),
        *("the other tests pass", "All existing tests pass", "so that all the tests pass"),
        *("I hope the tests pass", "We need the tests to pass", "Let me run the tests.", ""),
    ],
)
def test_a_wish_a_plan_or_a_doubt_is_no_claim(text: str) -> None:
    assert not claims_success(text)


PASSED = step(args="pytest", exit_code=0)
LOOKED = [step(args="ls", exit_code=0), step(tool="read_file")]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param([FAILED, reflecting(notes="All tests pass.")], True, id="notes claim"),
        pytest.param([FAILED, step(args="ls", text="All tests pass.")], True, id="beside a call"),
        pytest.param([FAILED, *LOOKED, CLAIM], True, id="looking around makes it no truer"),
        pytest.param(
            [replace(FAILED, tool="run_tests", args=""), CLAIM], True, id="a tool ran them"
        ),
        pytest.param([CLAIM], False, id="nothing ran"),
        pytest.param([PASSED, CLAIM], False, id="they passed"),
        pytest.param([replace(PASSED, exit_code=None, ok=None), CLAIM], False, id="who knows"),
        pytest.param([FAILED, replace(PASSED, text="All tests pass.")], False, id="they pass now"),
        pytest.param([FAILED, step(args="./run.sh now"), CLAIM], False, id="another program ran"),
        pytest.param([FAILED, change(doing="All tests pass.")], False, id="nobody said it"),
    ],
)
def test_a_claim_is_held_against_the_last_run_of_the_tests(
    events: list[Event], *, found: bool
) -> None:
    assert (last_alert("unsupported_claim", events) is not None) is found


@pytest.mark.parametrize(
    ("events", "severity"),
    [
        pytest.param([spent_budget(74)], None, id="below"),
        pytest.param([spent_budget(75)], NOTICE, id="three quarters"),
        pytest.param([spent_budget(89)], NOTICE, id="below a warning"),
        pytest.param([spent_budget(90)], WARNING, id="nine tenths"),
        pytest.param([spent_budget(10**6, None)], None, id="no limit"),
        pytest.param([spent_budget(10**6, 0)], None, id="a limit of nothing"),
        pytest.param([spent_budget(80), reflecting(progress=70)], None, id="behind by the slack"),
        pytest.param([spent_budget(80), reflecting(progress=69)], NOTICE, id="behind by more"),
        pytest.param([spent_budget(80), spent_budget(80, 200)], None, id="a larger limit"),
        pytest.param(
            [
                change(plan_step=1, plan_steps=2),
                reflecting(progress=90),
                change(plan_step=2),
                spent_budget(80),
            ],
            NOTICE,
            id="a new plan step begins at nothing",
        ),
        pytest.param(
            [change(plan_step=5, plan_steps=4), spent_budget(100), reflecting(progress=0)],
            None,
            id="all plan steps are done",
        ),
    ],
)
def test_a_budget_runs_out_where_more_of_it_is_used_than_done(
    events: list[Event], severity: Severity | None
) -> None:
    told = last_alert("budget_burn", events, notice_after=75, warn_after=90, slack=10)
    assert (told and told[0]) == severity


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param([PLAN, *calls(2)], None, id="below"),
        pytest.param([PLAN, *calls(3)], (NOTICE, 3), id="three"),
        pytest.param([PLAN, *calls(5)], (WARNING, 5), id="five"),
        pytest.param(calls(9), None, id="no plan"),
        pytest.param([change(plan_steps=3), *calls(3)], (NOTICE, 3), id="no known plan step"),
        pytest.param([PLAN, change(plan_steps=0), *calls(9)], None, id="no plan any more"),
        pytest.param([PLAN, *calls(4), change(plan_step=2), *calls(2)], None, id="the next one"),
    ],
)
def test_many_steps_on_one_plan_step_are_noticed_and_more_warn(
    events: list[Event], told: tuple[Severity, float] | None
) -> None:
    assert last_alert("steps_on_plan_step", events, notice_after=3, warn_after=5) == told


@pytest.mark.parametrize(
    ("share", "settings", "first"),
    [
        (None, {}, {NOTICE: 10, WARNING: 30}),
        (40, {}, {NOTICE: 10, WARNING: 30}),
        (12, {}, {NOTICE: 10, WARNING: 24}),
        (8, {}, {NOTICE: 8, WARNING: 16}),
        (1, {}, {NOTICE: 4, WARNING: 8}),
        (5, {"notice_after": 0, "warn_after": 0, "critical_after": 8}, {CRITICAL: 8}),
    ],
)
def test_the_share_of_a_plan_step_lowers_the_thresholds_and_never_raises_them(
    share: int | None, settings: dict[str, int], first: dict[Severity, int]
) -> None:
    given = {"notice_after": 10, "warn_after": 30, "lowered_to": 4, **settings}
    events = [replace(PLAN, plan_step_requests=share), *calls(30)]
    found: dict[Severity, int] = {}
    for number, alert in enumerate(alerts("steps_on_plan_step", events, **given)):
        if alert:
            found.setdefault(alert.severity, number)
    assert found == first


def test_a_plan_step_that_comes_without_a_share_has_none() -> None:
    shared = [replace(PLAN, plan_step_requests=5), change(plan_steps=3), *calls(5)]
    events = [*shared, change(plan_step=2), *calls(7)]
    found = alerts("steps_on_plan_step", events, notice_after=7, warn_after=20)
    assert [bool(each) for each in found[2:]] == [*[False] * 4, True, *[False] * 7, True]
