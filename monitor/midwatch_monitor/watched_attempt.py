"""One attempt as the monitor's loop judges it; the same after any restart."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from midwatch_monitor.alerts import Moment, resolve
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.escalation import about_reporting, audible
from midwatch_monitor.outcome import PROOF, InterventionTrial
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    AlertState,
    Change,
    Delivery,
    DeliveryState,
    Entry,
    Escalation,
    EscalationState,
    Lifecycle,
    Movement,
    Outcome,
    OutcomeReport,
    Record,
    Resolution,
    Step,
    TaskTransition,
)
from midwatch_monitor.rules import DETECTORS
from midwatch_monitor.rules.act import CheckKind, Normaliser
from midwatch_monitor.rules.detector import Movements
from midwatch_monitor.silence import SilenceAlerts
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState


@dataclass(slots=True, kw_only=True)
class WatchedAttempt:
    """The state of an attempt, and what is also needed to judge it: trials and signs of life."""

    state: AttemptState
    outcome_after: float = math.inf
    """Steps from an intervention's delivery to its judgement, unless the attempt ends earlier."""
    silence: SilenceAlerts = field(default_factory=lambda: SilenceAlerts(Rules()), compare=False)
    unhelped: tuple[AlertKey, ...] = ()
    """Alerts that an intervention did not help against, until a check shows something new."""
    trials: dict[int, InterventionTrial] = field(default_factory=dict[int, InterventionTrial])
    """Interventions being judged, by journal id."""
    unchecked: bool = False
    """Whether files changed since the last check that passed or failed."""
    _movements: Movements = field(default_factory=Movements, compare=False)
    _normaliser: Normaliser = field(default_factory=Normaliser, compare=False)

    @property
    def id(self) -> int:
        """Journal id of the attempt."""
        return self.state.id

    @property
    def task(self) -> int:
        """Journal id of its task."""
        return self.state.task

    @property
    def over(self) -> bool:
        """Whether the attempt has ended."""
        return self.state.over

    def may_escalate(self, *, cooldown: int, cap: int) -> bool:
        """Return whether an escalation may be opened now.

        None is opened while another one is open or waits for its outcome, while a person is asked,
        or when the attempt is over or about to end. `cooldown` is the number of steps since the
        last one was closed. One more than `cap` may be opened, so that the policy can hand the
        attempt to a person.
        """
        state = self.state
        parked = state.lifecycle is Lifecycle.INPUT_REQUIRED or state.interventions.ends_attempt
        if state.escalation is not None or state.over or parked or state.raised > cap:
            return False
        last = next(reversed(state.escalations.values()), None)
        # An escalation about reporting starts no cooldown for alerts about the work.
        if state.closed_at_step is None or (last is not None and self.outweighs(last)):
            return True
        return state.last_step - state.closed_at_step >= cooldown

    def outweighs(self, asked: Escalation) -> bool:
        """Return whether an alert about the work fires, while `asked` is only about reporting."""
        heard = [alert.key for alert in audible(self.alerts_to_escalate)]
        return about_reporting(asked.alerts) and not about_reporting(heard)

    def close_superseded(self, asked: Escalation) -> tuple[Record, ...]:
        """Return a superseded escalation as closed, and its interventions as expired."""
        coming = self.state.interventions.under_way
        answers = [each for each in coming if each.intervention.escalation == asked.id]
        expired = self._deliveries(answers, DeliveryState.EXPIRED)
        why = "superseded by an alert about the work"
        return (*expired, replace(asked, state=EscalationState.CLOSED, reason=why))

    def fold(self, entry: Entry) -> None:
        """Take in one entry of this attempt; kinds that do not matter here are ignored."""
        record = entry.record
        # Before the entry counts: entries after the end of a trial must not affect it.
        if isinstance(record, Acceptance | Step) or (
            isinstance(record, Change) and record.budget is not None
        ):
            self._settle_trials()
        asked = self._open_question()
        self.state.fold(entry)
        if isinstance(record, Delivery) and asked is not None and self._open_question() is None:
            self._judge_anew(asked)
        match record:
            case Step() | Change():
                self._note_change(record)
            case Acceptance(passed=True):
                for trial in self.trials.values():  # the best evidence there is
                    trial.see_movement(frozenset({Movement.CHECK_PASSED}), ())
            case Alert():
                for trial in self.trials.values():
                    trial.see_alert(record)
            case Delivery():
                self._begin_judging(record)
            case OutcomeReport():
                self._end_judging(record)
            case _:
                pass

    def _settle_trials(self) -> None:
        """Fix the verdicts of the trials that are due, so that later entries do not count."""
        for trial in self.trials.values():
            if self._is_due(trial):
                trial.settle(self.state.alerts, self.state.last_step)

    def _is_due(self, trial: InterventionTrial) -> bool:
        if trial is self._open_question():
            return False
        return self.state.last_step - trial.delivered_step >= self.outcome_after

    def _open_question(self) -> InterventionTrial | None:
        """Return the trial of a question that a person has not answered, while the worker goes on.

        One that waits for the answer makes no step that would count.
        """
        asked = self.state.asks_beside if self.trials else None
        return None if asked is None else self.trials.get(asked.id)

    def _judge_anew(self, trial: InterventionTrial) -> None:
        """Judge a question from now on: a person has answered it, or has seen its alerts."""
        self.begin_trial(trial.intervention, trial.answers, fresh=trial.fresh)

    def _note_change(self, event: Step | Change) -> None:
        if isinstance(event, Change):
            moved, checked, obstacle = self._movements.plan(event), False, ""
        else:
            act = self._normaliser.act(event)
            moved, obstacle = self._movements.observe(act), act.blocked
            checked = act.check is not CheckKind.NONE and act.failed is not None
            self.unchecked = (self.unchecked and not checked) or act.changes or act.swaps
        if moved.kinds & PROOF:
            self.unhelped = ()
        self.silence.observe(event, moved)
        for trial in self.trials.values():
            trial.see_movement(moved.kinds, moved.paths, checked=checked, obstacle=obstacle)

    def _begin_judging(self, delivery: Delivery) -> None:
        found = self.state.interventions.get(delivery.intervention)
        if found is None or not found.delivered or found.stamp is not delivery:
            return
        answers = found.intervention.answers
        if answers and not found.action.of_alerts and not found.action.at_once:
            asked, answered = self.state.escalation, found.intervention.escalation
            silent = asked is not None and asked.silent and asked.id == answered
            grant = found.action is Action.GRANT_BUDGET
            self.begin_trial(found.id, answers, fresh=silent, grant=grant)

    def begin_trial(
        self,
        id: int,
        answers: tuple[AlertKey, ...],
        *,
        fresh: bool,
        grant: bool = False,
        before: Iterable[Alert] = (),
    ) -> None:
        """Begin to judge an intervention, from now on.

        `before` are the alerts of the previous attempt: one that keeps firing, such as that about
        the task's budget, is not new. Alerts that the intervention answers are judged afresh.
        """
        firing = {each.key: each.severity for each in before if each.key not in answers}
        firing |= {k: alert.severity for k, alert in self.state.alerts.items() if alert.firing}
        self.trials[id] = InterventionTrial(
            intervention=id,
            answers=answers,
            severities=firing,
            delivered_step=self.state.last_step,
            unchecked=self.unchecked,
            fresh=fresh,
            grant=grant,
        )

    def _end_judging(self, report: OutcomeReport) -> None:
        trial = self.trials.pop(report.intervention, None)
        found = self.state.interventions.get(report.intervention)
        if found is not None and trial is not None and not trial.late:
            helped = report.outcome is Outcome.RECOVERED
            keys = tuple(key for key in found.intervention.answers if not _of_conflict(key))
            self.unhelped = () if helped else keys

    def due_outcomes(self) -> tuple[OutcomeReport, ...]:
        """Return the outcomes that are due, at `outcome_after` steps or at the attempt's end."""
        reports: list[OutcomeReport] = []
        for trial in self.trials.values():
            if not self.over and not self._is_due(trial):
                continue
            ending = None if self._is_due(trial) else self.state.transition.ending
            outcome, reason = trial.verdict(self.state.alerts, ending)
            step = self.state.last_step if trial.settled_step is None else trial.settled_step
            reports.append(
                OutcomeReport(
                    intervention=trial.intervention, outcome=outcome, step=step, reason=reason
                )
            )
        return tuple(reports)

    @property
    def alerts_to_escalate(self) -> tuple[Alert, ...]:
        """Alerts that may be escalated: not silenced, and not a conflict that is already decided.

        Of two attempts that conflict over a file, one keeps it; its alert stays until the other
        attempt is over.
        """
        observed = self.state.observed.values()
        settled = {key for keys in observed for key in keys if _of_conflict(key)}
        quiet = self.state.silenced | settled
        return tuple(alert for key, alert in self.state.alerts.items() if key not in quiet)

    @property
    def stranded(self) -> Escalation | None:
        """The answered escalation whose intervention will never have an outcome, or `None`.

        One that ends the attempt at once has none either, but its escalation ends with the attempt.
        """
        asked = self.state.escalation
        if asked is None or asked.state is not EscalationState.ANSWERED:
            return None
        found = [e for e in self.state.interventions if e.intervention.escalation == asked.id]
        waiting = any(
            each.status.under_way or (each.delivered and each.action.at_once) for each in found
        )
        return None if waiting or self.trials else asked

    @property
    def split(self) -> int | None:
        """Journal id of the delivered split that ended this attempt and is not judged yet."""
        found = self._unjudged_intervention(Action.SPLIT)
        return found.id if found else None

    @property
    def begun_anew(self) -> bool:
        """Whether a restart made this attempt."""
        return any(each.action is Action.RESTART for each in self.state.interventions.delivered)

    @property
    def restart(self) -> InterventionState | None:
        """The delivered restart that ended this attempt and is judged on the next one."""
        return self._unjudged_intervention(Action.RESTART)

    def judge_split(self, end: TaskTransition | None) -> tuple[OutcomeReport, ...]:
        """Return the outcome of a split, which is judged by the end of the whole task."""
        split = self.split
        if split is None or end is None:
            return ()
        done = end.lifecycle is Lifecycle.COMPLETED
        return (
            OutcomeReport(
                intervention=split,
                outcome=Outcome.RECOVERED if done else Outcome.NO_EFFECT,
                step=self.state.last_step,
                reason=f"the task is {end.lifecycle}: {end.reason}",
            ),
        )

    def alert_acts(self) -> tuple[Delivery, ...]:
        """Return a person's acts on alerts as delivered: the monitor itself carries them out."""
        coming = [each for each in self.state.interventions.under_way if each.action.of_alerts]
        return self._deliveries(coming, DeliveryState.DELIVERED)

    def expire_undelivered(self) -> tuple[Delivery, ...]:
        """Return the interventions not delivered before the attempt's end as expired."""
        return self._deliveries(self.state.interventions.under_way, DeliveryState.EXPIRED)

    def _deliveries(
        self, of: Iterable[InterventionState], state: DeliveryState
    ) -> tuple[Delivery, ...]:
        step = self.state.last_step
        return tuple(Delivery(intervention=each.id, state=state, step=step) for each in of)

    @property
    def open_alerts(self) -> tuple[Alert, ...]:
        """Alerts that are not resolved, of rules that the recorder does not judge."""
        return tuple(
            alert
            for key, alert in self.state.alerts.items()
            if key.rule not in DETECTORS and alert.state is not AlertState.RESOLVED
        )

    def end_alerts(self, at: datetime) -> tuple[Alert, ...]:
        """Return the open alerts as ended with the attempt."""
        now = Moment(step=self.state.last_step, at=at)
        ended = [resolve(alert, Resolution.ENDED, now) for alert in self.open_alerts]
        return tuple(alert for alert in ended if alert is not None)

    def _unjudged_intervention(self, action: Action) -> InterventionState | None:
        delivered = self.state.interventions.delivered
        waiting = (e for e in delivered if e.outcome is None and e.id not in self.trials)
        return next((each for each in waiting if each.action is action), None)

    def hand_over(self, successor: "WatchedAttempt") -> None:
        """Hand a restart to the attempt that it made, to be judged there."""
        found = self.restart
        if found is not None:
            del self.state.interventions.by_id[found.id]
            successor.state.interventions.by_id[found.id] = found
            if answers := found.intervention.answers:  # otherwise there is nothing to judge it by
                left = self.state.last_firing
                successor.begin_trial(found.id, answers, fresh=True, before=left)


def _of_conflict(key: AlertKey) -> bool:
    return key.rule == "workspace_conflict"
