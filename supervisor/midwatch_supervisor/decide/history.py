"""What was done in a task, over all its attempts, and what came of it. Folded from the journal."""

from dataclasses import dataclass, field
from functools import reduce

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    Delivery,
    Entry,
    Grant,
    Intervention,
    Outcome,
    OutcomeReport,
    PlanCheck,
    Record,
    Ruling,
    Spending,
)
from midwatch_monitor.state.intervention import Interventions
from midwatch_supervisor.decide.context import PastIntervention, past_intervention
from midwatch_supervisor.decide.grants import together
from midwatch_supervisor.decide.policy import ACTIONS
from midwatch_supervisor.workspaces.snapshot_store import SNAPSHOT_AUTHOR

KINDS: tuple[type[Record], ...] = (
    Intervention,
    Delivery,
    OutcomeReport,
    PlanCheck,
    Spending,
    Alert,
)
"""The records that a history is folded from."""


@dataclass(slots=True, kw_only=True)
class History:
    """What was done in one task."""

    interventions: Interventions = field(default_factory=Interventions)
    revisions: int = 0
    """Revisions of the plan that workers proposed and that were approved."""
    alerts: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    """As they last stood, in whichever attempt."""
    _asked: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    async def read(cls, journal: Journal, task: int) -> "History":
        """Fold what the journal says of the task."""
        history = cls()
        async for entry in journal.all_entries(task=task, kinds=KINDS):
            history.take(entry)
        return history

    def take(self, entry: Entry) -> None:
        """Take in the task's next entry. Kinds that do not matter here are passed over."""
        attempt = entry.attempt or 0
        self.interventions.fold(entry)
        match entry.record:
            case PlanCheck(ruling=Ruling.GRANTED, proposed=proposed) if proposed:
                self.revisions += 1
            case Alert() as alert:
                self.alerts[alert.key] = alert
            case Spending(role="supervisor", requests=requests):
                self._asked[attempt] = self.requests_spent(attempt) + requests
            case _:
                pass

    def earlier(
        self, *, attempt: int | None = None, before: int | None = None
    ) -> tuple[PastIntervention, ...]:
        """The delivered acts of one attempt, or of those before one, oldest first.

        Answers to what a worker asked for are none, nor is a pause, nor what a worker is told of
        its own files when it goes on elsewhere.
        """
        return tuple(
            past_intervention(act)
            for act in self.interventions
            if act.delivered
            and act.intervention.petition is None
            and act.intervention.author != SNAPSHOT_AUTHOR
            and act.intervention.action in ACTIONS
            and attempt in (None, act.attempt)
            and (before is None or (act.attempt or 0) < before)
        )

    def rejected_actions(self, attempt: int) -> frozenset[Action]:
        """What a person, or the time, did not let happen in an attempt since it last recovered.

        What a person issued in other words did happen.
        """
        found: set[Action] = set()
        reworded = {
            (act.intervention.escalation, act.action)
            for act in self.interventions
            if act.intervention.by is Actor.OPERATOR and act.intervention.escalation is not None
        }
        for act in self.interventions:
            if act.attempt != attempt or act.intervention.petition is not None:
                continue
            if act.rejection is not None:
                if (act.intervention.escalation, act.action) in reworded:
                    continue
                found.add(act.intervention.action)
            elif act.outcome is Outcome.RECOVERED:
                found.clear()
        return frozenset(found)

    def answered(self, petition: int) -> bool:
        """Whether something that a worker asked for has its answer; a rejected one is none."""
        return self.interventions.answer(petition) is not None

    def turned_down(self, petition: int) -> str | None:
        """Who rejected the answer to what a worker asked for, and why; `None` if nobody did."""
        found = [act for act in self.interventions if act.intervention.petition == petition]
        return found[-1].rejection if found else None

    def requests_spent(self, attempt: int) -> int:
        """Model requests that the supervisor took for one attempt."""
        return self._asked.get(attempt, 0)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What was granted without a person, or is on its way."""
        return tuple(
            act.intervention.terms.grant
            for act in self.interventions
            if act.intervention.action is Action.GRANT_BUDGET
            and act.intervention.by is not Actor.OPERATOR
            and not act.lost
        )

    @property
    def granted(self) -> Grant:
        """All of that together."""
        return reduce(together, self.grants, Grant())

    @property
    def approved(self) -> int:
        """Revisions of the plan that workers proposed and that stand, or are on their way."""
        return self.revisions + sum(
            act.intervention.petition is not None
            and act.intervention.action is Action.REPLAN
            and not act.lost
            for act in self.interventions
        )

    @property
    def models(self) -> frozenset[str]:
        """The models that the task was switched to, or is about to be."""
        acts = (act for act in self.interventions if not act.lost)
        return frozenset(act.intervention.terms.model for act in acts) - {""}
