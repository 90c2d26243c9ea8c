"""The interventions of one attempt: which are due, and what they change on delivery."""

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
from midwatch_tools.plan_change import plan_change, share_requests, with_remaining

Numbered = tuple[int, Intervention]
"""An intervention's journal id and the intervention."""

WAITS = frozenset({Action.ASK_OPERATOR, Action.PAUSE})
"""Actions that make an attempt wait until a person answers."""


class Inbox:
    """Interventions issued for an attempt and not yet delivered.

    It reads the journal, so interventions from another process arrive without a bus; the bus only
    makes them arrive sooner.
    """

    def __init__(self, journal: Journal, bus: Bus, attempt: int, *, poll_seconds: float) -> None:
        self._journal = journal
        self._bus = bus
        self._attempt = attempt
        self._poll_seconds = poll_seconds
        self._after = 0
        self.interventions = Interventions()
        """All interventions issued up to the last read."""

    async def due(self) -> tuple[Numbered, ...]:
        """Return the interventions to deliver now, oldest first."""
        while page := await self._journal.entries(
            self._after, attempt=self._attempt, kinds=(Intervention, Delivery, PermissionRequest)
        ):
            for entry in page:
                self.interventions.fold(entry)
            self._after = page[-1].id
        return tuple((each.id, each.intervention) for each in self.interventions.on_their_way)

    @property
    def answered(self) -> bool:
        """Whether something that ends the wait had been issued by the last read."""
        return self.interventions.ends_waiting

    @property
    def held(self) -> tuple[Numbered, ...]:
        """The interventions that were waiting for approval at the last read."""
        return tuple((each.id, each.intervention) for each in self.interventions.held)

    async def wait(self) -> tuple[Numbered, ...]:
        """Wait until a person's message or decision ends the wait, and return all that is due then.

        Messages issued before the pause do not end it.
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
    """Return the records for delivered interventions, in their order.

    Args:
        interventions: Those that are now in the history.
        plan: The current plan.
        budget: The budget used so far.
        model: The name of the model that now answers in place of the worker's own; empty if none.
        step: The attempt's last step.
        least: The smallest number of requests that a plan step gets.
    """
    records: list[Record] = []
    for id, each in interventions:
        records.append(stamp(id, step))
        if each.action is Action.REPLAN:
            plan = with_remaining(plan, each.plan or plan.open_titles, ordered=True)
            plan = share_requests(plan, budget.requests, least=least)
            records += [plan, plan_change(plan)]
        elif each.action is Action.GRANT_BUDGET:
            budget = raise_limits(budget, [each.terms.grant])
            plan, more = with_more_requests(plan, each.terms.grant.requests)
            records += [*more, Change(budget=budget, plan_step_requests=_step_requests(plan))]
        elif each.action is Action.SWITCH_MODEL and model and each.terms.model == model:
            records.append(Change(model=model))
    return tuple(records)


def with_more_requests(plan: Plan, requests: int) -> tuple[Plan, tuple[Plan, ...]]:
    """Add requests to the current plan step; return the plan, and the plan as a record if it
    changed.
    """
    in_hand = plan.in_hand
    if not requests or in_hand is None or in_hand.requests is None:
        return plan, ()
    steps = list(plan.steps)
    steps[plan.current - 1] = replace(in_hand, requests=in_hand.requests + requests)
    plan = replace(plan, steps=tuple(steps))
    return plan, (plan,)


def _step_requests(plan: Plan) -> int | None:
    return None if plan.in_hand is None else plan.in_hand.requests


def expiry_stamp(id: int, step: int) -> Delivery:
    """Return the stamp on an intervention that came too late."""
    why = "the alerts that it answers were over before it arrived"
    return Delivery(intervention=id, state=DeliveryState.EXPIRED, step=step, comment=why)


def stamp(id: int, step: int) -> Delivery:
    """Return the stamp on an intervention that was delivered."""
    return Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step)


_GUIDES = frozenset({Action.NUDGE, Action.REPLAN})


def may_be_late(intervention: Intervention) -> bool:
    """Whether guidance is dropped once its alerts are over; a person's message never is."""
    machine = intervention.by is not Actor.OPERATOR and not intervention.needs_approval
    asked = intervention.action in _GUIDES and intervention.petition is None
    return machine and asked and bool(intervention.answers)


def too_late(id: int, intervention: Intervention, alerts: Iterable[Entry]) -> bool:
    """Whether all alerts that an intervention answers were cleared after it was issued.

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
    """Return what is due, without guidance whose alerts are already over.

    Such guidance is out of date and might undo a repair. Interventions in `told` are kept. Raises
    JournalError.
    """
    if not any(may_be_late(each) and id not in told for id, each in due):
        return tuple(due)
    found = recorder.journal.all_entries(attempt=recorder.attempt.id, kinds=(Alert,))
    alerts = [entry async for entry in found]
    late = {id for id, each in due if id not in told and too_late(id, each, alerts)}
    if late:
        await recorder.record(*(expiry_stamp(id, recorder.last_step) for id in sorted(late)))
    return tuple(each for each in due if each[0] not in late)
