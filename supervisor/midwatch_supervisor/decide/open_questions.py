"""What of a run waits for the supervisor or for a person, folded from the journal. Pure."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    PlanCheck,
    Record,
    TaskTransition,
)
from midwatch_supervisor.decide.worker_request import petition_in

KINDS: tuple[type[Record], ...] = (
    TaskTransition,
    AttemptTransition,
    Escalation,
    BudgetRequest,
    PlanCheck,
    Intervention,
    Delivery,
)
"""What is read for an agenda: all that it is folded from, or that shows that a task has moved."""

_WAITS = frozenset({Action.ASK_OPERATOR, Action.PAUSE})
_GOES_ON = frozenset({Action.NUDGE, Action.REPLAN, Action.RESUME})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """An attempt that waits for a person's answer."""

    task: int
    since: datetime
    question: str


@dataclass(slots=True, kw_only=True)
class OpenQuestions:
    """What is open in one run. Takes its entries in order."""

    escalations: dict[int, Entry] = field(default_factory=dict[int, Entry])
    """Questions without a decision, by their own id."""
    petitions: dict[int, Entry] = field(default_factory=dict[int, Entry])
    """What workers asked for and nobody answered, by journal id."""
    held: dict[int, Entry] = field(default_factory=dict[int, Entry])
    """Interventions that wait for approval, by journal id."""
    parked: dict[int, Parked] = field(default_factory=dict[int, Parked])
    """Attempts with a question that nobody answered, by id. One that a person paused is none."""
    over: set[int] = field(default_factory=set[int])
    """The attempts that have ended."""
    _asked: dict[int, Entry] = field(default_factory=dict[int, Entry])
    _issued: dict[int, Intervention] = field(default_factory=dict[int, Intervention])
    _waits: dict[int, list[Intervention]] = field(
        default_factory=lambda: defaultdict[int, list[Intervention]](list)
    )

    def take(self, entry: Entry) -> None:
        """Take in the next entry. Kinds that do not matter here are passed over."""
        match entry.record:
            case Escalation() as escalation:
                self._take_escalation(entry, escalation)
            case Intervention() as intervention:
                self._take_intervention(entry, intervention)
            case Delivery() as delivery:
                self._take_delivery(entry, delivery)
            case AttemptTransition() as state:
                self._take_state(entry, state)
            case record if petition_in(record) is not None:
                self._asked[entry.id] = self.petitions[entry.id] = entry
            case _:
                pass

    def _take_escalation(self, entry: Entry, escalation: Escalation) -> None:
        if escalation.state is EscalationState.OPEN:
            self.escalations[escalation.id] = entry
        else:
            self.escalations.pop(escalation.id, None)

    def _take_intervention(self, entry: Entry, issued: Intervention) -> None:
        self._issued[entry.id] = issued
        if issued.petition is not None:
            self.petitions.pop(issued.petition, None)
        if issued.needs_approval:
            self.held[entry.id] = entry
        elif entry.attempt is not None and _answers(issued):
            self.parked.pop(entry.attempt, None)

    def _take_delivery(self, entry: Entry, delivery: Delivery) -> None:
        self.held.pop(delivery.intervention, None)
        issued = self._issued.get(delivery.intervention)
        if issued is None:
            return
        rejected = delivery.state is DeliveryState.REJECTED and entry.attempt not in self.over
        if rejected and issued.petition in self._asked:
            # The worker must hear that, so its question is open again.
            self.petitions[issued.petition] = self._asked[issued.petition]
        if delivery.state is not DeliveryState.APPROVED:
            del self._issued[delivery.intervention]
        if delivery.state is DeliveryState.DELIVERED and entry.attempt is not None:
            self._waits[entry.attempt] += [issued] if issued.action in _WAITS else []

    def _take_state(self, entry: Entry, state: AttemptTransition) -> None:
        if entry.attempt is None:
            return
        waits = self._waits.pop(entry.attempt, [])
        self.parked.pop(entry.attempt, None)
        if state.lifecycle.over:
            self._close(entry.attempt)
        elif state.lifecycle is Lifecycle.INPUT_REQUIRED:
            asked = [each for each in waits if each.action is Action.ASK_OPERATOR]
            if asked and len(asked) == len(waits):
                parked = Parked(task=entry.task, since=entry.at, question=asked[-1].message)
                self.parked[entry.attempt] = parked

    def _close(self, attempt: int) -> None:
        self.over.add(attempt)
        for open_ones in (self.petitions, self.held):
            for id in [id for id, entry in open_ones.items() if entry.attempt == attempt]:
                del open_ones[id]


def _answers(issued: Intervention) -> bool:
    """Whether a parked attempt goes on with it, or ends."""
    if issued.action in {Action.STOP, Action.RESTART, Action.SPLIT}:
        return True
    by_person = issued.by is Actor.OPERATOR and issued.action in _GOES_ON
    return by_person or issued.action is Action.RESUME
