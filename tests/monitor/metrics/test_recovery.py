"""Figures of what was done about alarms: recovery, and disturbance."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.metrics import Figures, RunMetrics
from midwatch_monitor.metrics.recovery import DisturbanceFigures, Outcomes, RecoveryFigures
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Severity,
)

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
DONE = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)
CYCLE, EDITS = AlertKey(rule="cycle"), AlertKey(rule="repeated_edits", subject="a.py")


class Log:
    """A journal in a list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, record: Record, *, attempt: int = 1) -> int:
        """The id of the new entry."""
        id = len(self.entries) + 1
        self.entries.append(Entry(id=id, record=record, at=AT, task=1, attempt=attempt))
        return id

    def act(
        self,
        action: Action = Action.NUDGE,
        *answers: AlertKey,
        outcome: Outcome | None = None,
        attempt: int = 1,
        judged_on: int | None = None,
    ) -> None:
        """An intervention that arrives, and perhaps its outcome."""
        issued = Intervention(
            action=action, by=Actor.POLICY, answers=answers, diagnosis=Diagnosis.WRONG_APPROACH
        )
        id = self.add(issued, attempt=attempt)
        self.add(Delivery(intervention=id, state=DeliveryState.DELIVERED), attempt=attempt)
        if outcome is not None:
            report = OutcomeReport(intervention=id, outcome=outcome, step=9, reason="")
            self.add(report, attempt=judged_on or attempt)

    def figures(self) -> Figures:
        """What comes of it."""
        return RunMetrics(self.entries).figures()


@pytest.fixture
def log() -> Log:
    return Log()


def test_interventions_are_told_by_what_they_answered_and_what_they_were(log: Log) -> None:
    log.act(Action.NUDGE, CYCLE, EDITS, outcome=Outcome.NO_EFFECT)
    log.act(Action.RESTART, CYCLE, outcome=Outcome.RECOVERED, judged_on=2)
    log.act(Action.NUDGE, EDITS)
    every = Outcomes(recovered=1, no_effect=1, not_judged=1)
    assert log.figures().recovery == RecoveryFigures(
        total=every,
        by_rule=(
            ("cycle", Outcomes(recovered=1, no_effect=1)),
            ("repeated_edits", Outcomes(no_effect=1, not_judged=1)),
        ),
        by_action=(
            ("nudge", Outcomes(no_effect=1, not_judged=1)),
            ("restart", Outcomes(recovered=1)),
        ),
        by_diagnosis=(("wrong_approach", every),),
        by_actor=(("policy", every),),
    )
    assert (every.delivered, every.rate) == (3, Share(hits=1, of=2))


def test_what_never_arrived_counts_for_nothing(log: Log) -> None:
    id = log.add(Intervention(action=Action.NUDGE, by=Actor.POLICY, answers=(CYCLE,)))
    log.add(Delivery(intervention=id, state=DeliveryState.EXPIRED))
    assert log.figures().recovery == RecoveryFigures()


def test_what_answers_no_alert_is_counted_apart(log: Log) -> None:
    log.act(Action.NUDGE)
    log.act(Action.ACKNOWLEDGE, CYCLE)
    assert log.figures().recovery == RecoveryFigures(unprompted=1)
    assert log.figures().tasks[0].interventions == 1


def test_a_refused_decision_is_counted(log: Log) -> None:
    decision = Decision(
        escalation=1,
        action=Action.STOP,
        diagnosis=Diagnosis.INFEASIBLE,
        message="",
        rationale="",
        by=Actor.SUPERVISOR,
        refused="the attempt is over",
    )
    log.add(decision)
    assert log.figures().recovery == RecoveryFigures(refused=1)


def alarm(log: Log, attempt: int) -> None:
    alert = Alert(
        key=CYCLE,
        severity=Severity.WARNING,
        state=AlertState.FIRING,
        value=5,
        summary="",
        since_step=1,
        step=1,
    )
    log.add(alert, attempt=attempt)


def test_of_attempts_that_succeeded_it_is_told_which_were_disturbed_and_which_in_vain(
    log: Log,
) -> None:
    for attempt, outcomes in enumerate(
        ((Outcome.NO_EFFECT, None), (Outcome.MADE_WORSE, Outcome.RECOVERED), ()), start=1
    ):
        alarm(log, attempt)
        for outcome in outcomes:
            log.act(Action.NUDGE, CYCLE, outcome=outcome, attempt=attempt)
        log.add(DONE, attempt=attempt)
    log.add(DONE, attempt=4)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=Share(hits=3, of=4),
        disturbed=Share(hits=2, of=4),
        in_vain=Share(hits=1, of=4),
        false_alarms=Share(hits=0, of=4),
        interventions=4,
        interventions_in_vain=2,
    )


def test_a_false_alarm_is_told_and_observing_disturbs_nobody(log: Log) -> None:
    alarm(log, 1)
    decision = Decision(
        escalation=1,
        action=Action.OBSERVE,
        diagnosis=Diagnosis.FALSE_ALARM,
        message="",
        rationale="",
        by=Actor.SUPERVISOR,
    )
    log.add(decision)
    log.act(Action.OBSERVE, CYCLE)
    log.add(DONE)
    one, none = Share(hits=1, of=1), Share(hits=0, of=1)
    assert log.figures().disturbance == DisturbanceFigures(
        alarmed=one, disturbed=none, in_vain=none, false_alarms=one
    )


def test_what_was_done_to_an_attempt_that_failed_is_no_lack_of_restraint(log: Log) -> None:
    log.act(Action.STOP, CYCLE)
    log.add(AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK))
    assert log.figures().disturbance == DisturbanceFigures()
