"""What an attempt used of what it was given, against how far it came."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import BudgetBurn, StepsOnPlanStep
from midwatch_monitor.records import (
    AlertKey,
    Budget,
    Change,
    Event,
    Finding,
    Meter,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.budget_use import BudgetBurnDetector, StepsOnPlanStepDetector
from midwatch_monitor.rules.detector import Clear, RuleAnswer, Seen
from midwatch_stage.factories import reflecting

BURN = AlertKey(rule="budget_burn")
SEEN = Seen(Act(7, work=False))


def burn(*changes: Change) -> BudgetBurnDetector:
    settings = BudgetBurn(notice_after=75, warn_after=90, slack=10)
    detector = BudgetBurnDetector(settings)
    for change in changes:
        detector.observe(change, SEEN)
    return detector


def spent(requests: float, limit: float | None = 100) -> Change:
    return Change(budget=Budget(requests=Meter(used=requests, limit=limit)))


def report(percent: int) -> Step:
    return reflecting(7, percent)


def severity(answers: Sequence[RuleAnswer]) -> Severity | None:
    found = [each for each in answers if isinstance(each, Finding)]
    return found[0].severity if found else None


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (0, None),
        (74, None),
        (75, Severity.NOTICE),
        (89, Severity.NOTICE),
        (90, Severity.WARNING),
        (130, Severity.WARNING),
    ],
)
def test_where_nothing_tells_of_progress_the_share_counts(
    used: int, expected: Severity | None
) -> None:
    assert severity(burn().observe(spent(used), SEEN)) is expected


def test_a_finding_names_the_tightest_limit() -> None:
    budget = Budget(
        requests=Meter(used=10, limit=60),
        tokens=Meter(used=900, limit=1000),
        cost_usd=Meter(used=5),
        minutes=Meter(used=3, limit=4),
    )
    assert burn().observe(Change(budget=budget), SEEN) == (
        Finding(
            key=BURN,
            severity=Severity.WARNING,
            value=90,
            summary="90 % of the tokens are used",
            evidence=(7,),
        ),
    )


@pytest.mark.parametrize("limit", [None, 0])
def test_without_a_limit_nothing_runs_out(limit: float | None) -> None:
    assert burn().observe(spent(10**6, limit), SEEN) == ()


@pytest.mark.parametrize(("percent", "expected"), [(70, None), (69, Severity.NOTICE)])
def test_progress_may_lag_behind_by_the_slack(percent: int, expected: Severity | None) -> None:
    detector = burn(spent(80))
    assert severity(detector.observe(report(percent), SEEN)) is expected


def test_a_larger_limit_clears() -> None:
    detector = burn(spent(80))
    assert detector.observe(spent(80, 200), SEEN) == (Clear(key=BURN),)


@pytest.mark.parametrize(
    ("plan_step", "percent", "done"),
    [(1, 0, 0), (1, 100, 25), (3, 0, 50), (4, 40, 85), (5, 0, None)],
)
def test_with_a_plan_its_steps_and_the_share_of_the_one_in_hand_count(
    plan_step: int, percent: int, done: int | None
) -> None:
    detector = burn(Change(plan_step=plan_step, plan_steps=4), spent(100))
    answers = detector.observe(report(percent), SEEN)
    summaries = [each.summary for each in answers if isinstance(each, Finding)]
    said = f"100 % of the requests are used, and {done} % of the work is done"
    assert summaries == ([] if done is None else [said])


def test_a_new_plan_step_begins_at_nothing() -> None:
    detector = burn(Change(plan_step=1, plan_steps=2))
    detector.observe(report(90), SEEN)
    detector.observe(Change(plan_step=2), SEEN)
    [answer] = detector.observe(spent(80), SEEN)
    assert isinstance(answer, Finding)
    assert answer.summary == "80 % of the requests are used, and 50 % of the work is done"


class Steps:
    """Steps of work on plan steps, numbered."""

    def __init__(self, *changes: Event, **thresholds: int) -> None:
        settings = StepsOnPlanStep.model_validate(
            {"notice_after": 3, "warn_after": 5, **thresholds}
        )
        self.detector = StepsOnPlanStepDetector(settings)
        self.step = 0
        for change in changes:
            assert self.detector.observe(change, SEEN) == ()

    def work(self) -> Sequence[RuleAnswer]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="t")
        return self.detector.observe(step, Seen(Act(self.step, work=True)))


PLAN = Change(plan_step=1, plan_steps=3)


def test_many_steps_on_one_plan_step_are_noticed_and_more_warn() -> None:
    run = Steps(PLAN)
    answers = [run.work() for _ in range(5)]
    assert [severity(each) for each in answers] == [
        None,
        None,
        Severity.NOTICE,
        Severity.NOTICE,
        Severity.WARNING,
    ]
    [last] = answers[-1]
    assert isinstance(last, Finding)
    assert (last.value, last.evidence, last.summary) == (5, (1, 5), "5 steps on one plan step")


@pytest.mark.parametrize("changes", [(), (Change(plan_steps=0),), (PLAN, Change(plan_steps=0))])
def test_without_a_plan_no_step_need_be_fed(changes: tuple[Change, ...]) -> None:
    assert not Steps(*changes).detector.awake
    assert Steps(*changes, PLAN).detector.awake


def test_the_next_plan_step_counts_for_itself() -> None:
    run = Steps(PLAN)
    for _ in range(4):
        run.work()
    run.detector.restart()
    answers = [run.work() for _ in range(3)]
    assert [severity(each) for each in answers] == [None, None, Severity.NOTICE]
    [last] = answers[-1]
    assert isinstance(last, Finding)
    assert last.evidence == (5, 7)


@pytest.mark.parametrize(
    ("share", "notice", "warning"),
    [(None, 10, 30), (40, 10, 30), (12, 10, 24), (8, 8, 16), (4, 4, 8), (1, 4, 8)],
)
def test_the_share_of_a_plan_step_lowers_the_thresholds_and_never_raises_them(
    share: int | None, notice: int, warning: int
) -> None:
    change = Change(plan_step=1, plan_steps=3, plan_step_requests=share)
    run = Steps(change, notice_after=10, warn_after=30, lowered_to=4)
    graded = [severity(run.work()) for _ in range(30)]
    assert (graded.index(Severity.NOTICE) + 1, graded.index(Severity.WARNING) + 1) == (
        notice,
        warning,
    )


def test_a_threshold_that_is_off_stays_off_whatever_the_share() -> None:
    change = Change(plan_step=1, plan_steps=3, plan_step_requests=5)
    run = Steps(change, notice_after=0, warn_after=0, critical_after=8)
    assert [severity(run.work()) for _ in range(8)] == [None] * 7 + [Severity.CRITICAL]


def test_a_plan_step_that_comes_without_a_share_has_none() -> None:
    run = Steps(
        Change(plan_step=1, plan_steps=3, plan_step_requests=5), notice_after=7, warn_after=20
    )
    run.detector.observe(Change(plan_steps=3), SEEN)
    assert [severity(run.work()) for _ in range(5)][-1] is Severity.NOTICE
    run.detector.restart()
    run.detector.observe(Change(plan_step=2), SEEN)
    answers = [run.work() for _ in range(7)]
    assert [severity(each) for each in answers][4:] == [None, None, Severity.NOTICE]


def test_a_finding_says_what_the_plan_step_was_given() -> None:
    run = Steps(Change(plan_step=1, plan_steps=3, plan_step_requests=2))
    [last] = [run.work() for _ in range(3)][-1]
    assert isinstance(last, Finding)
    assert last.summary == "3 steps on one plan step, which was given 2 requests"
