"""Figures of what was done about alarms: recovery, and disturbance."""

import pytest

from midwatch_monitor.metrics.alarms import DisturbanceFigures, Outcomes, RecoveryFigures
from midwatch_monitor.metrics.runs import Figures, RunMetrics
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import (
    Action,
    AlertKey,
    DeliveryState,
    Diagnosis,
    Ending,
    Entry,
    Outcome,
    Record,
)
from midwatch_stage.factories import (
    alert,
    decision,
    delivery,
    ended,
    entry,
    intervention,
    outcome,
)

CYCLE, EDITS = AlertKey(rule="cycle"), AlertKey(rule="repeated_edits", subject="a.py")


class Log:
    """A journal in a list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, record: Record, *, attempt: int = 1) -> int:
        """The id of the new entry."""
        self.entries.append(entry(len(self.entries) + 1, record, attempt=attempt))
        return len(self.entries)

    def act(
        self,
        action: Action = Action.NUDGE,
        *answers: AlertKey,
        came: Outcome | None = None,
        attempt: int = 1,
        judged_on: int | None = None,
    ) -> None:
        """An intervention that arrives, and perhaps its outcome."""
        issued = intervention(action, answers=answers, diagnosis=Diagnosis.WRONG_APPROACH)
        id = self.add(issued, attempt=attempt)
        self.add(delivery(id), attempt=attempt)
        if came is not None:
            self.add(outcome(id, came), attempt=judged_on or attempt)

    def figures(self) -> Figures:
        """What comes of it."""
        return RunMetrics(self.entries).figures()


@pytest.fixture
def log() -> Log:
    return Log()


def test_interventions_are_told_by_what_they_answered_and_what_they_were(log: Log) -> None:
    log.act(Action.NUDGE, CYCLE, EDITS, came=Outcome.NO_EFFECT)
    log.act(Action.RESTART, CYCLE, came=Outcome.RECOVERED, judged_on=2)
    log.act(Action.NUDGE, EDITS)
    every = Outcomes(recovered=1, no_effect=1, not_judged=1)
    found = log.figures().recovery
    assert found.total == every
    assert found.by == {
        "rule": {
            "cycle": Outcomes(recovered=1, no_effect=1),
            "repeated_edits": Outcomes(no_effect=1, not_judged=1),
        },
        "action": {
            "nudge": Outcomes(no_effect=1, not_judged=1),
            "restart": Outcomes(recovered=1),
        },
        "diagnosis": {"wrong_approach": every},
        "actor": {"policy": every},
    }
    assert (every.delivered, every.rate) == (3, Share(hits=1, of=2))


def test_what_never_arrived_counts_for_nothing(log: Log) -> None:
    id = log.add(intervention(answers=(CYCLE,)))
    log.add(delivery(id, DeliveryState.EXPIRED))
    assert log.figures().recovery == RecoveryFigures()


def test_what_answers_no_alert_is_counted_apart(log: Log) -> None:
    log.act(Action.NUDGE)
    log.act(Action.ACKNOWLEDGE, CYCLE)
    assert log.figures().recovery == RecoveryFigures(unprompted=1)
    assert log.figures().tasks[0].interventions == 1


def test_a_refused_decision_is_counted(log: Log) -> None:
    log.add(decision(Action.STOP, refused="the attempt is over"))
    assert log.figures().recovery == RecoveryFigures(refused=1)


def test_of_attempts_that_succeeded_it_is_told_which_were_disturbed_and_which_in_vain(
    log: Log,
) -> None:
    for attempt, outcomes in enumerate(
        ((Outcome.NO_EFFECT, None), (Outcome.MADE_WORSE, Outcome.RECOVERED), ()), start=1
    ):
        log.add(alert(), attempt=attempt)
        for came in outcomes:
            log.act(Action.NUDGE, CYCLE, came=came, attempt=attempt)
        log.add(ended(), attempt=attempt)
    log.add(ended(), attempt=4)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=Share(hits=3, of=4),
        disturbed=Share(hits=2, of=4),
        in_vain=Share(hits=1, of=4),
        false_alarms=Share(hits=0, of=4),
        interventions=4,
        interventions_in_vain=2,
    )


def test_a_false_alarm_is_told_and_observing_disturbs_nobody(log: Log) -> None:
    log.add(alert())
    log.add(decision(Action.OBSERVE, diagnosis=Diagnosis.FALSE_ALARM))
    log.act(Action.OBSERVE, CYCLE)
    log.add(ended())
    one, none = Share(hits=1, of=1), Share(hits=0, of=1)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=one, disturbed=none, in_vain=none, false_alarms=one
    )


def test_what_was_done_to_an_attempt_that_failed_is_no_lack_of_restraint(log: Log) -> None:
    log.act(Action.STOP, CYCLE)
    log.add(ended(Ending.STUCK))
    assert log.figures().disturbance == DisturbanceFigures()
