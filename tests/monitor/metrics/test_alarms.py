"""Figures of alarms: requests to detection, retries, recovery, and disturbance."""

from collections.abc import Iterable
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.metrics.alarms import (
    AlarmCounts,
    DetectionFigures,
    DisturbanceFigures,
    Outcomes,
    RecoveryFigures,
    RetryComparison,
    RetryFigures,
)
from midwatch_monitor.metrics.runs import Figures, RunMetrics
from midwatch_monitor.metrics.statistics import Distribution, Share
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tests import factories as make

WHY = make.analysis()


def step(number: int, request: int | None = None, *, tool: str = "bash", **fields: Any) -> r.Step:
    """A call of the same command, each in a request of its own if none is named."""
    made = {"request": number if request is None else request, "args": '{"command":"make"}'}
    return make.step(number, tool, **{**made, **fields})


def alarm(at: int, *evidence: int, **fields: Any) -> r.Alert:
    return make.alert(step=at, evidence=evidence, **fields)


def detection_figures(*records: r.Record) -> DetectionFigures:
    alarms = AlarmCounts()
    for each in make.entries(*records):
        alarms.observe(each)
    return alarms.figures()


def make_distribution(*requests: int) -> Distribution:
    return Distribution(counts=tuple((each, requests.count(each)) for each in sorted({*requests})))


@pytest.mark.parametrize(
    ("values", "median"), [((), None), ((4,), 4), ((1, 2), 1.5), ((1, 1, 9), 1), ((1, 5, 9, 9), 7)]
)
def test_the_median_is_the_middle_value(values: tuple[int, ...], median: float | None) -> None:
    assert make_distribution(*values).median == median


def test_a_range_includes_both_ends() -> None:
    some = make_distribution(1, 5, 5, 6, 40)
    assert (some.between(1, 5), some.between(6, 10), some.between(6, None)) == (3, 1, 2)


def test_trouble_lasts_from_the_first_step_of_the_evidence_to_the_alarm_both_counted() -> None:
    found = detection_figures(
        *(step(number, number + 10) for number in range(1, 6)), alarm(5, 2, 3, 5)
    )
    requests = make_distribution(4)
    assert found == DetectionFigures(requests=requests, rules=(("cycle", requests),))


def test_a_condition_that_held_before_its_evidence_began_trouble() -> None:
    assert detection_figures(
        step(1), step(2), step(3), alarm(3, 3, since_step=1)
    ).requests == make_distribution(3)


def test_steps_of_one_request_are_one_request() -> None:
    assert detection_figures(
        step(1, 7), step(2, 7), step(3, 7), alarm(3, 1, 2, 3)
    ).requests == make_distribution(1)


def test_an_alarm_counts_when_it_begins_and_again_after_it_was_resolved() -> None:
    over = make.alert(state=r.AlertState.RESOLVED, step=2)
    first, second = alarm(2, 1), alarm(3, 3)
    assert detection_figures(
        step(1), step(2), first, first, over, step(3), second
    ).requests == make_distribution(2, 1)


@pytest.mark.parametrize(
    ("records", "unknown"),
    [
        ((step(1), make.alert(severity=r.Severity.NOTICE, evidence=(1,))), 0),
        ((step(1), alarm(1)), 1),
        ((step(1, 0), alarm(1, 1)), 1),
        ((alarm(0, 1),), 1),
    ],
    ids=["a notice", "no evidence", "no request", "no step"],
)
def test_without_evidence_or_requests_there_is_no_onset(
    records: Iterable[r.Record], unknown: int
) -> None:
    assert detection_figures(*records) == DetectionFigures(unknown=unknown)


def retry_figures(*records: r.Record) -> RetryFigures:
    return RunMetrics(make.entries(*records)).figures().retries


def test_a_retry_counts_by_whether_an_analysis_came_between() -> None:
    found = retry_figures(
        *(step(1, ok=False), step(2, ok=False)),
        *(step(3, tool="report_error"), WHY),
        *(step(4, ok=False), step(5), step(6)),
    )
    assert found == RetryFigures(
        acts=RetryComparison(analysed=Share(hits=0, of=1), unanalysed=Share(hits=1, of=2)),
        causes=((r.Cause.PERMANENT, 1),),
    )


def test_an_analysis_in_the_turn_of_the_retry_counts_though_its_call_ended_later() -> None:
    said = (step(3, 2, tool="report_error"), WHY)
    found = retry_figures(step(1, ok=False), step(2, 2), *said, step(4, 3, tool="look"))
    assert found.acts == RetryComparison(analysed=Share(hits=1, of=1))


HELD = step(2, ok=False, output=f"{HELD_BACK}say why.")
SEARCH = step(1, args='{"command":"grep x a"}', exit_code=1, ok=None)
WAITED = make.analysis(cause=r.Cause.TRANSIENT, by=r.AnalysisAuthor.WATCH)


@pytest.mark.parametrize(
    ("records", "figures"),
    [
        ((step(1, ok=False), step(2, tool="look")), RetryFigures()),
        ((SEARCH, SEARCH), RetryFigures()),
        ((step(1, ok=False), HELD), RetryFigures(held_back=1)),
        (
            (step(1, ok=False), WAITED, step(2)),
            RetryFigures(acts=RetryComparison(unanalysed=Share(hits=1, of=1)), provider=1),
        ),
    ],
    ids=[
        *("another act is none", "a search that found nothing did not fail"),
        *("a call that was held back is none", "what Midwatch wrote of a provider excuses none"),
    ],
)
def test_a_retry_is_the_same_act_after_it_failed(
    records: tuple[r.Record, ...], figures: RetryFigures
) -> None:
    assert retry_figures(*records) == figures


def ended_attempt(attempt: int, *records: r.Record, ending: r.Ending) -> list[r.Entry]:
    return make.entries(*records, make.ended(ending), attempt=attempt)


def test_a_further_attempt_is_analysed_if_the_analysis_came_before_its_work() -> None:
    told = [
        *ended_attempt(1, step(1), ending=r.Ending.STUCK),
        *ended_attempt(2, step(1), WHY, ending=r.Ending.UNACCEPTED),
        *ended_attempt(3, WHY, step(1), ending=r.Ending.DONE),
        *ended_attempt(4, step(1), step(2), WHY, ending=r.Ending.DONE),
        *ended_attempt(5, step(1, 1), WHY, ending=r.Ending.CANCELED),
    ]
    found = RunMetrics(told).figures().retries
    # The analysis of attempt 2 stands in the turn of its first work, that of 4 came a turn late.
    assert found.attempts == RetryComparison(
        analysed=Share(hits=1, of=2), unanalysed=Share(hits=1, of=1)
    )


CYCLE, EDITS = r.AlertKey(rule="cycle"), r.AlertKey(rule="repeated_edits", subject="a.py")


class Log:
    """A journal in a list."""

    def __init__(self) -> None:
        self.entries: list[r.Entry] = []

    def add(self, record: r.Record, *, attempt: int = 1) -> int:
        """The id of the new entry."""
        self.entries.append(make.entry(len(self.entries) + 1, record, attempt=attempt))
        return len(self.entries)

    def act(
        self,
        action: r.Action = r.Action.NUDGE,
        *answers: r.AlertKey,
        came: r.Outcome | None = None,
        attempt: int = 1,
        judged_on: int | None = None,
    ) -> None:
        """An intervention that arrives, and perhaps its outcome."""
        issued = make.intervention(action, answers=answers, diagnosis=r.Diagnosis.WRONG_APPROACH)
        id = self.add(issued, attempt=attempt)
        self.add(make.delivery(id), attempt=attempt)
        if came is not None:
            self.add(make.outcome(id, came), attempt=judged_on or attempt)

    def figures(self) -> Figures:
        """What comes of it."""
        return RunMetrics(self.entries).figures()


@pytest.fixture
def log() -> Log:
    return Log()


def test_interventions_are_told_by_what_they_answered_and_what_they_were(log: Log) -> None:
    log.act(r.Action.NUDGE, CYCLE, EDITS, came=r.Outcome.NO_EFFECT)
    log.act(r.Action.RESTART, CYCLE, came=r.Outcome.RECOVERED, judged_on=2)
    log.act(r.Action.NUDGE, EDITS)
    every = Outcomes(recovered=1, no_effect=1, not_judged=1)
    found = log.figures().recovery
    assert found.total == every
    assert found.by == {
        "rule": {
            "cycle": Outcomes(recovered=1, no_effect=1),
            "repeated_edits": Outcomes(no_effect=1, not_judged=1),
        },
        "action": {"nudge": Outcomes(no_effect=1, not_judged=1), "restart": Outcomes(recovered=1)},
        "diagnosis": {"wrong_approach": every},
        "actor": {"policy": every},
    }
    assert (every.delivered, every.rate) == (3, Share(hits=1, of=2))


def test_what_never_arrived_or_answers_no_alert_or_was_refused_is_counted_apart(log: Log) -> None:
    id = log.add(make.intervention(answers=(CYCLE,)))
    log.add(make.delivery(id, r.DeliveryState.EXPIRED))
    assert log.figures().recovery == RecoveryFigures()
    log.act(r.Action.NUDGE)
    log.act(r.Action.ACKNOWLEDGE, CYCLE)
    log.add(make.decision(r.Action.STOP, refused="the attempt is over"))
    assert log.figures().recovery == RecoveryFigures(unprompted=1, refused=1)
    assert log.figures().tasks[0].interventions == 1


def test_of_attempts_that_succeeded_it_is_told_which_were_disturbed_in_vain(log: Log) -> None:
    for attempt, outcomes in enumerate(
        ((r.Outcome.NO_EFFECT, None), (r.Outcome.MADE_WORSE, r.Outcome.RECOVERED), ()), start=1
    ):
        log.add(make.alert(), attempt=attempt)
        for came in outcomes:
            log.act(r.Action.NUDGE, CYCLE, came=came, attempt=attempt)
        log.add(make.ended(), attempt=attempt)
    log.add(make.ended(), attempt=4)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=Share(hits=3, of=4),
        disturbed=Share(hits=2, of=4),
        in_vain=Share(hits=1, of=4),
        false_alarms=Share(hits=0, of=4),
        interventions=4,
        interventions_in_vain=2,
    )


def test_a_false_alarm_is_told_and_observing_disturbs_nobody(log: Log) -> None:
    log.add(make.alert())
    log.add(make.decision(r.Action.OBSERVE, diagnosis=r.Diagnosis.FALSE_ALARM))
    log.act(r.Action.OBSERVE, CYCLE)
    log.add(make.ended())
    one, none = Share(hits=1, of=1), Share(hits=0, of=1)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=one, disturbed=none, in_vain=none, false_alarms=one
    )


def test_what_was_done_to_an_attempt_that_failed_is_no_lack_of_restraint(log: Log) -> None:
    log.act(r.Action.STOP, CYCLE)
    log.add(make.ended(r.Ending.STUCK))
    assert log.figures().disturbance == DisturbanceFigures()
