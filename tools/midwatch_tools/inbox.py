"""The interventions of one attempt: those that are due, and what they change on arrival."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from midwatch_monitor.budget import raise_limits
from midwatch_monitor.bus import Bus
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    Budget,
    Change,
    Delivery,
    DeliveryState,
    Entry,
    Grant,
    Intervention,
    PermissionRequest,
    Plan,
    Record,
    Resolution,
)
from midwatch_monitor.state.intervention import Interventions
from midwatch_tools.plan_change import change, share_requests, with_remaining

Numbered = tuple[int, Intervention]
"""An intervention with its journal id."""

WAITS = frozenset({Action.ASK_OPERATOR, Action.PAUSE})
"""What an attempt waits at until a person speaks."""


class Inbox:
    """What has been issued for an attempt and not yet arrived.

    It reads the journal, so an act of another process arrives without any bus; the bus only makes
    it sooner.
    """

    def __init__(self, journal: Journal, bus: Bus, attempt: int, *, poll_seconds: float) -> None:
        self._journal = journal
        self._bus = bus
        self._attempt = attempt
        self._poll_seconds = poll_seconds
        self._after = 0
        self.interventions = Interventions()
        """All that was issued, by what was last read."""

    async def due(self) -> tuple[Numbered, ...]:
        """The interventions to deliver now, by journal id, oldest first."""
        while page := await self._journal.entries(
            self._after, attempt=self._attempt, kinds=(Intervention, Delivery, PermissionRequest)
        ):
            for entry in page:
                self.interventions.fold(entry)
            self._after = page[-1].id
        return tuple((each.id, each.intervention) for each in self.interventions.on_their_way)

    @property
    def answered(self) -> bool:
        """Whether what ends the waiting has been said, by what was last read."""
        return self.interventions.ends_waiting

    @property
    def held(self) -> tuple[Numbered, ...]:
        """The interventions that wait for approval, by what was last read."""
        return tuple((each.id, each.intervention) for each in self.interventions.held)

    async def wait(self) -> tuple[Numbered, ...]:
        """Wait until a person's word or decision ends the waiting, and return all that is due then.

        What was said before the pause does not end it.
        """
        async with self._bus.subscribe(self._attempt) as hints:
            while True:
                due = await self.due()
                if self.answered:
                    return due
                await hints.wait(self._poll_seconds)


def grants(interventions: Sequence[Numbered]) -> list[Grant]:
    return [each.terms.grant for _, each in interventions if each.action is Action.GRANT_BUDGET]


def arrival_records(
    interventions: Sequence[Numbered],
    *,
    plan: Plan,
    budget: Budget,
    model: str,
    step: int,
    least: int,
) -> tuple[Record, ...]:
    """What to record of interventions that have arrived, in their order.

    Args:
        interventions: Those that now stand in the history.
        plan: The plan as it stands.
        budget: What is used by this moment.
        model: The name of the other model that answers now; empty for the worker's own.
        step: The attempt's last step.
        least: The least share of the requests that a plan step is given.
    """
    records: list[Record] = []
    for id, each in interventions:
        records.append(stamp(id, step))
        if each.action is Action.REPLAN:
            plan = with_remaining(plan, each.plan or plan.open_titles, ordered=True)
            plan = share_requests(plan, budget.requests, least=least)
            records += [plan, change(plan)]
        elif each.action is Action.GRANT_BUDGET:
            budget = raise_limits(budget, [each.terms.grant])
            plan, more = with_more(plan, each.terms.grant.requests)
            records += [*more, Change(budget=budget, plan_step_requests=_share(plan))]
        elif each.action is Action.SWITCH_MODEL and model and each.terms.model == model:
            records.append(Change(model=model))
    return tuple(records)


def with_more(plan: Plan, requests: int) -> tuple[Plan, tuple[Plan, ...]]:
    """The plan once the plan step in hand has so many requests more, and whether that is news."""
    in_hand = plan.in_hand
    if not requests or in_hand is None or in_hand.requests is None:
        return plan, ()
    steps = list(plan.steps)
    steps[plan.current - 1] = replace(in_hand, requests=in_hand.requests + requests)
    plan = replace(plan, steps=tuple(steps))
    return plan, (plan,)


def _share(plan: Plan) -> int | None:
    return None if plan.in_hand is None else plan.in_hand.requests


def expiry_stamp(id: int, step: int) -> Delivery:
    """The stamp on an intervention that comes too late."""
    why = "what it answers was over before it arrived"
    return Delivery(intervention=id, state=DeliveryState.EXPIRED, step=step, comment=why)


def stamp(id: int, step: int) -> Delivery:
    """The stamp on an intervention that has arrived."""
    return Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step)


_GUIDES = frozenset({Action.NUDGE, Action.REPLAN})


def may_be_late(intervention: Intervention) -> bool:
    """Whether guidance falls away once what it answers is over; a person's word never does."""
    machine = intervention.by is not Actor.OPERATOR and not intervention.needs_approval
    asked = intervention.action in _GUIDES and intervention.petition is None
    return machine and asked and bool(intervention.answers)


def too_late(id: int, intervention: Intervention, alerts: Iterable[Entry]) -> bool:
    """Whether all that an intervention answers was cleared after it was issued.

    `alerts` are the entries of the attempt's alerts, in order.
    """
    cleared: set[AlertKey] = set()
    for entry in alerts:
        if not isinstance(entry.record, Alert) or entry.id < id:
            continue
        if entry.record.resolution is Resolution.CLEARED:
            cleared.add(entry.record.key)
        else:
            cleared.discard(entry.record.key)
    return may_be_late(intervention) and cleared.issuperset(intervention.answers)


async def timely(
    recorder: Recorder, due: Sequence[Numbered], *, told: Container[int] = ()
) -> tuple[Numbered, ...]:
    """What is due, without guidance that would come after what it answers was over.

    What it says to do is then wrong, and may undo what was put right meanwhile. What was `told` is
    kept. Raises JournalError.
    """
    if not any(may_be_late(each) and id not in told for id, each in due):
        return tuple(due)
    found = recorder.journal.all_entries(attempt=recorder.attempt.id, kinds=(Alert,))
    alerts = [entry async for entry in found]
    late = {id for id, each in due if id not in told and too_late(id, each, alerts)}
    if late:
        await recorder.record(*(expiry_stamp(id, recorder.last_step) for id in sorted(late)))
    return tuple(each for each in due if each[0] not in late)
