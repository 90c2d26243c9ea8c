"""How interventions fare, and with what reservations a task is completed. Pure."""

from dataclasses import dataclass

from midwatch_monitor.records import Completion, Delivery, Intervention, Outcome, OutcomeReport
from midwatch_supervisor.present.line import InterventionState


@dataclass(slots=True, kw_only=True)
class Fate:
    """How one intervention has fared so far."""

    intervention: Intervention
    state: InterventionState
    outcome: Outcome | None = None
    reason: str = ""
    """Of the outcome."""

    def fold(self, news: Delivery | OutcomeReport) -> None:
        """Take in what became of it."""
        if isinstance(news, Delivery):
            self.state = InterventionState(news.state.value)
        else:
            self.outcome, self.reason = news.outcome, news.reason


def fate_of(intervention: Intervention) -> Fate:
    """The fate of an intervention that was just issued."""
    held = intervention.needs_approval
    state = InterventionState.HELD if held else InterventionState.ISSUED
    return Fate(intervention=intervention, state=state)


def reservations(done: Completion) -> tuple[str, ...]:
    """With what reservations a task counts as done; none for a plan step, or for what does not."""
    if done.plan_step or not done.accepted:
        return ()
    return tuple(dict.fromkeys(filter(None, (done.flag, *done.doubts))))
