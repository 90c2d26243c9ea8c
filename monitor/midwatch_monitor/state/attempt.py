"""One attempt as the monitor sees it, folded from its entries. The same after any restart."""

import math
from dataclasses import dataclass, field

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.escalation import Quiet
from midwatch_monitor.outcome import PROOF, Trial
from midwatch_monitor.outlook import forecast
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Alert,
    AlertKey,
    AttemptTransition,
    Budget,
    Change,
    Decision,
    Delivery,
    DeliveryState,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    Movement,
    Outcome,
    OutcomeReport,
    Record,
    Step,
)
from midwatch_monitor.rules.act import Check, Normaliser
from midwatch_monitor.rules.detector import Movements
from midwatch_monitor.silence import SilenceAlerts


@dataclass(slots=True, kw_only=True)
class View:
    """One attempt as the monitor sees it."""

    attempt: int
    task: int
    outcome_after: float = math.inf
    """Steps after its delivery at which an intervention is judged, if the attempt is not over."""
    vigil: SilenceAlerts = field(default_factory=lambda: SilenceAlerts(Rules()), compare=False)
    lifecycle: Lifecycle = Lifecycle.SUBMITTED
    last_step: int = 0
    alerts: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    escalation: Escalation | None = None
    raised: int = 0
    closed_at_step: int | None = None
    silenced: set[AlertKey] = field(default_factory=set[AlertKey])
    """Alerts that a person does not want to hear of again."""
    issued: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    """On their way: by journal id."""
    done: dict[int, tuple[Intervention, Outcome | None]] = field(
        default_factory=dict[int, tuple[Intervention, Outcome | None]]
    )
    """Delivered ones, in order, with their outcome once it is known."""
    observed: dict[int, tuple[AlertKey, ...]] = field(
        default_factory=dict[int, tuple[AlertKey, ...]]
    )
    """The alerts about which it was decided to do nothing, by the decision's journal id."""
    unhelped: tuple[AlertKey, ...] = ()
    """Alerts about which something was done in vain, while no check showed anything new since."""
    budget: Budget = field(default_factory=Budget)
    began: Budget | None = None
    """The budget as the attempt found it."""
    trials: dict[int, Trial] = field(default_factory=dict[int, Trial])
    unchecked: bool = False
    """Whether files changed since the last check that passed or failed."""
    movements: Movements = field(default_factory=Movements, compare=False)
    normaliser: Normaliser = field(default_factory=Normaliser, compare=False)

    @property
    def over(self) -> bool:
        """Whether the attempt has ended."""
        return self.lifecycle.over

    @property
    def quiet(self) -> Quiet:
        """What keeps it from being escalated."""
        return Quiet(
            open=self.escalation is not None,
            parked=self.over or self.lifecycle is Lifecycle.INPUT_REQUIRED,
            closed_at_step=self.closed_at_step,
            raised=self.raised,
        )

    def fold(self, entry: Entry) -> None:
        """Take in one entry of this attempt. Kinds that do not matter here are passed over."""
        match entry.record:
            case Step() | Change() as event:
                self._fold_event(event)
            case Alert() as alert:
                self.alerts[alert.key] = alert
                for trial in self.trials.values():
                    trial.see_alert(alert)
            case AttemptTransition() as state:
                self.lifecycle = state.lifecycle
            case Acceptance() as acceptance:
                self._fold_acceptance(acceptance)
            case Escalation() as escalation:
                self._fold_escalation(escalation)
            case record:
                self._fold_intervention(entry.id, record)

    def _fold_intervention(self, id: int, record: Record) -> None:
        match record:
            case Decision(action=Action.OBSERVE, refused="") if self.escalation is not None:
                self.observed[id] = self.escalation.alerts
            case Intervention() as intervention:
                self.issued[id] = intervention
            case Delivery() as delivery:
                self._fold_delivery(delivery)
            case OutcomeReport() as report:
                self._fold_outcome(report)
            case _:
                pass

    def _fold_acceptance(self, acceptance: Acceptance) -> None:
        """A passed acceptance check is the best evidence that there is."""
        self._settle()
        if acceptance.passed:
            for trial in self.trials.values():
                trial.see_movement(frozenset({Movement.CHECK_PASSED}), ())

    def _settle(self) -> None:
        """What comes from here on counts for no trial that is due, however late that is asked."""
        for trial in self.trials.values():
            if self._due(trial):
                trial.settle(self.alerts, self.last_step)

    def _due(self, trial: Trial) -> bool:
        return self.last_step - trial.delivered_step >= self.outcome_after

    def _fold_event(self, event: Step | Change) -> None:
        if isinstance(event, Step) or event.budget is not None:  # else it may be of the last step
            self._settle()
        if isinstance(event, Step):
            self.last_step = event.number
        elif event.lifecycle is not None:
            self.lifecycle = event.lifecycle
        if isinstance(event, Change):
            self.budget = event.budget or self.budget
            self.began = self.began or event.budget
            moved, checked, obstacle = self.movements.plan(event), False, ""
        else:
            act = self.normaliser.act(event)
            moved, obstacle = self.movements.observe(act), act.blocked
            checked = act.check is not Check.NONE and act.failed is not None
            self.unchecked = (self.unchecked and not checked) or act.changes or act.swaps
        if moved.kinds & PROOF:
            self.unhelped = ()
        self.vigil.observe(event, moved)
        for trial in self.trials.values():
            trial.see_movement(moved.kinds, moved.paths, checked=checked, obstacle=obstacle)

    def _fold_escalation(self, escalation: Escalation) -> None:
        if escalation.state is EscalationState.CLOSED:
            self.escalation = None
            # Where an intervention was in vain, the next rung must not wait.
            self.closed_at_step = None if self._in_vain(escalation.id) else self.last_step
            return
        if self.escalation is None:
            self.raised += 1
        self.escalation = escalation

    def _in_vain(self, escalation: int) -> bool:
        """Whether an intervention answered an escalation and did not help."""
        outcomes = [out for each, out in self.done.values() if each.escalation == escalation]
        return any(out in {Outcome.NO_EFFECT, Outcome.MADE_WORSE} for out in outcomes)

    def _fold_delivery(self, delivery: Delivery) -> None:
        intervention = self.issued.get(delivery.intervention)
        if intervention is None or delivery.state is DeliveryState.APPROVED:
            return
        del self.issued[delivery.intervention]
        if delivery.state is not DeliveryState.DELIVERED:
            return
        if intervention.action is Action.SILENCE:
            self.silenced.update(intervention.answers)
        if intervention.action.of_alerts:
            return
        self.done[delivery.intervention] = (intervention, None)
        if intervention.answers and not intervention.action.at_once:
            asked = self.escalation
            silent = asked is not None and asked.silent and asked.id == intervention.escalation
            self.begin_trial(delivery.intervention, intervention.answers, fresh=silent)

    def begin_trial(self, id: int, answers: tuple[AlertKey, ...], *, fresh: bool) -> None:
        """Watch what an intervention does from now on."""
        self.trials[id] = Trial(
            intervention=id,
            answers=answers,
            severities={key: alert.severity for key, alert in self.alerts.items() if alert.firing},
            delivered_step=self.last_step,
            unchecked=self.unchecked,
            fresh=fresh,
        )

    def _fold_outcome(self, report: OutcomeReport) -> None:
        trial = self.trials.pop(report.intervention, None)
        if report.intervention in self.done:
            intervention, _ = self.done[report.intervention]
            self.done[report.intervention] = (intervention, report.outcome)
            if trial is not None and not trial.late:
                helped = report.outcome is Outcome.RECOVERED
                answers = tuple(key for key in intervention.answers if not _of_conflict(key))
                self.unhelped = () if helped else answers

    def then_used(self, ahead: int) -> float:
        """The share of the tightest limit that will be used `ahead` steps from now."""
        began = self.began or self.budget
        return forecast(began, self.budget, steps=self.last_step, ahead=ahead)

    def due_outcomes(self) -> tuple[OutcomeReport, ...]:
        """The verdicts that are due: so many steps after the delivery, or at the attempt's end."""
        reports: list[OutcomeReport] = []
        for trial in self.trials.values():
            if not self.over and not self._due(trial):
                continue
            outcome, reason = trial.verdict(self.alerts)
            step = self.last_step if trial.settled_step is None else trial.settled_step
            reports.append(
                OutcomeReport(
                    intervention=trial.intervention, outcome=outcome, step=step, reason=reason
                )
            )
        return tuple(reports)

    @property
    def heard(self) -> tuple[Alert, ...]:
        """The alerts that may be escalated: not again the conflicts that were decided upon.

        One of two at a file keeps it, and its alert stays until the other is over.
        """
        settled = {key for keys in self.observed.values() for key in keys if _of_conflict(key)}
        quiet = self.silenced | settled
        return tuple(alert for key, alert in self.alerts.items() if key not in quiet)

    @property
    def about_alerts(self) -> tuple[int, ...]:
        """What a person said of alerts and the monitor has not taken yet, by journal id."""
        return tuple(id for id, each in self.issued.items() if each.action.of_alerts)

    @property
    def stranded(self) -> Escalation | None:
        """An answered escalation whose intervention will never have an outcome."""
        asked = self.escalation
        if asked is None or asked.state is not EscalationState.ANSWERED:
            return None
        waiting = [each for each in self.issued.values() if each.escalation == asked.id]
        return None if waiting or self.trials else asked

    @property
    def split(self) -> int | None:
        """The delivered split that ended this attempt and was not judged yet, by journal id."""
        for id, (intervention, outcome) in self.done.items():
            if intervention.action is Action.SPLIT and outcome is None:
                return id
        return None

    @property
    def begun_anew(self) -> bool:
        """Whether a restart made this attempt."""
        return any(each.action is Action.RESTART for each, _ in self.done.values())

    @property
    def restart(self) -> tuple[int, Intervention] | None:
        """The delivered restart that ended this attempt and waits for the next one's outcome."""
        for id, (intervention, outcome) in self.done.items():
            if intervention.action is Action.RESTART and outcome is None and id not in self.trials:
                return id, intervention
        return None


def _of_conflict(key: AlertKey) -> bool:
    return key.rule == "workspace_conflict"
