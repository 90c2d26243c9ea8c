"""Figures of acts: requests to detection, and retries with and without an analysis."""

from collections.abc import Iterable
from typing import Any

import pytest

from midwatch_monitor.metrics.alarms import (
    AlarmCounts,
    DetectionFigures,
    RetryComparison,
    RetryFigures,
)
from midwatch_monitor.metrics.runs import RunMetrics
from midwatch_monitor.metrics.statistics import Distribution, Share
from midwatch_monitor.records import (
    Alert,
    AlertState,
    AnalysisAuthor,
    Cause,
    Ending,
    Entry,
    Record,
    Severity,
    Step,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_stage import factories
from midwatch_stage.factories import alert, analysis, entries

WHY = analysis()


def step(number: int, request: int | None = None, *, tool: str = "bash", **fields: Any) -> Step:
    """A call of the same command, each in a request of its own if none is named."""
    made = {"request": number if request is None else request, "args": '{"command":"make"}'}
    return factories.step(number, tool, **{**made, **fields})


def alarm(at: int, *evidence: int, **fields: Any) -> Alert:
    return alert(step=at, evidence=evidence, **fields)


def detected(*records: Record) -> DetectionFigures:
    alarms = AlarmCounts()
    for entry in entries(*records):
        alarms.observe(entry)
    return alarms.figures()


def counted(*requests: int) -> Distribution:
    return Distribution(counts=tuple((each, requests.count(each)) for each in sorted({*requests})))


@pytest.mark.parametrize(
    ("values", "median"), [((), None), ((4,), 4), ((1, 2), 1.5), ((1, 1, 9), 1), ((1, 5, 9, 9), 7)]
)
def test_the_median_is_the_middle_value(values: tuple[int, ...], median: float | None) -> None:
    assert counted(*values).median == median


def test_a_range_includes_both_ends() -> None:
    some = counted(1, 5, 5, 6, 40)
    assert (some.between(1, 5), some.between(6, 10), some.between(6, None)) == (3, 1, 2)


def test_trouble_lasts_from_the_first_step_of_the_evidence_to_the_alarm_both_counted() -> None:
    found = detected(*(step(number, number + 10) for number in range(1, 6)), alarm(5, 2, 3, 5))
    requests = counted(4)
    assert found == DetectionFigures(requests=requests, rules=(("cycle", requests),))


def test_a_condition_that_held_before_its_evidence_began_trouble() -> None:
    assert detected(step(1), step(2), step(3), alarm(3, 3, since_step=1)).requests == counted(3)


def test_steps_of_one_request_are_one_request() -> None:
    assert detected(step(1, 7), step(2, 7), step(3, 7), alarm(3, 1, 2, 3)).requests == counted(1)


def test_an_alarm_counts_when_it_begins_and_again_after_it_was_resolved() -> None:
    over = alert(state=AlertState.RESOLVED, step=2)
    first, second = alarm(2, 1), alarm(3, 3)
    assert detected(step(1), step(2), first, first, over, step(3), second).requests == counted(2, 1)


def test_a_notice_is_no_alarm() -> None:
    assert detected(step(1), alert(severity=Severity.NOTICE, evidence=(1,))) == DetectionFigures()


@pytest.mark.parametrize(
    "records",
    [
        (step(1), alarm(1)),
        (step(1, 0), alarm(1, 1)),
        (alarm(0, 1),),
    ],
)
def test_an_alarm_without_evidence_or_requests_has_no_onset(records: Iterable[Record]) -> None:
    assert detected(*records) == DetectionFigures(unknown=1)


def retried(*records: Record) -> RetryFigures:
    return RunMetrics(entries(*records)).figures().retries


def test_a_retry_counts_by_whether_an_analysis_came_between() -> None:
    found = retried(
        *(step(1, ok=False), step(2, ok=False)),
        *(step(3, tool="report_error"), WHY),
        *(step(4, ok=False), step(5), step(6)),
    )
    assert found == RetryFigures(
        acts=RetryComparison(analysed=Share(hits=0, of=1), unanalysed=Share(hits=1, of=2)),
        causes=((Cause.PERMANENT, 1),),
    )


def test_an_analysis_in_the_turn_of_the_retry_counts_though_its_call_ended_later() -> None:
    said = (step(3, 2, tool="report_error"), WHY)
    found = retried(step(1, ok=False), step(2, 2), *said, step(4, 3, tool="look"))
    assert found.acts == RetryComparison(analysed=Share(hits=1, of=1))


def test_another_act_is_no_retry() -> None:
    assert retried(step(1, ok=False), step(2, tool="look")).acts == RetryComparison()


def test_a_search_that_found_nothing_did_not_fail() -> None:
    search = step(1, args='{"command":"grep x a"}', exit_code=1, ok=None)
    assert retried(search, search).acts == RetryComparison()


def test_a_call_that_was_held_back_is_no_retry() -> None:
    held = step(2, ok=False, output=f"{HELD_BACK}say why.")
    assert retried(step(1, ok=False), held) == RetryFigures(held_back=1)


def test_what_midwatch_wrote_of_a_provider_excuses_no_retry() -> None:
    waited = analysis(cause=Cause.TRANSIENT, by=AnalysisAuthor.WATCH)
    assert retried(step(1, ok=False), waited, step(2)) == RetryFigures(
        acts=RetryComparison(unanalysed=Share(hits=1, of=1)), provider=1
    )


def ended(attempt: int, *records: Record, ending: Ending) -> list[Entry]:
    return entries(*records, factories.ended(ending), attempt=attempt)


def test_a_further_attempt_is_analysed_if_the_analysis_came_before_its_work() -> None:
    told = [
        *ended(1, step(1), ending=Ending.STUCK),
        *ended(2, step(1), WHY, ending=Ending.UNACCEPTED),
        *ended(3, WHY, step(1), ending=Ending.DONE),
        *ended(4, step(1, 1), WHY, ending=Ending.CANCELED),
    ]
    found = RunMetrics(told).figures().retries
    # The analysis of attempt 2 stands in the turn of its first work, so it came in time.
    assert found.attempts == RetryComparison(analysed=Share(hits=1, of=2))


def test_an_analysis_after_the_first_turn_of_work_is_late() -> None:
    told = [
        *ended(1, ending=Ending.STUCK),
        *ended(2, step(1), step(2), WHY, ending=Ending.DONE),
    ]
    found = RunMetrics(told).figures().retries
    assert found.attempts == RetryComparison(unanalysed=Share(hits=1, of=1))
