"""The state of an intervention from its proposal to its outcome, folded from the journal. Pure."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.records import (
    BY_TIMEOUT,
    Action,
    Actor,
    AlertKey,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Outcome,
    OutcomeReport,
    PermissionRequest,
    PlanCheck,
    Record,
    Ruling,
)

Petition = PlanCheck | BudgetRequest
"""A request that anybody may answer: to approve a revised plan, or to raise the budget."""
WorkerRequest = Petition | PermissionRequest
"""A request of a worker. Only a person may grant a permission."""


def worker_request(record: Record) -> WorkerRequest | None:
    """Return the request that a record makes, or `None`."""
    match record:
        case BudgetRequest() | PermissionRequest() | PlanCheck(ruling=Ruling.PENDING):
            return record
        case _:
            return None


class InterventionStatus(StrEnum):
    """How far an intervention has got, as one word for several journal entries."""

    ISSUED = "issued"
    HELD = "held"
    """Waits for an operator's approval."""
    APPROVED = "approved"
    REJECTED = "rejected"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    """Its attempt ended before it was delivered."""

    @property
    def on_its_way(self) -> bool:
        """Whether it will be delivered without any further approval."""
        return self in {InterventionStatus.ISSUED, InterventionStatus.APPROVED}

    @property
    def under_way(self) -> bool:
        """Whether it can still be delivered."""
        return self.on_its_way or self is InterventionStatus.HELD


def said_by_person(record: Record) -> bool:
    """Return whether a record is a person's act, which shows nothing about the worker."""
    match record:
        case Intervention():
            return record.by is Actor.OPERATOR
        case Delivery():
            return record.state in {DeliveryState.APPROVED, DeliveryState.REJECTED}
        case _:
            return False


@dataclass(slots=True, kw_only=True)
class InterventionState:
    """An intervention, where it was issued, and what happened to it."""

    id: int
    """Journal id of its entry."""
    task: int
    attempt: int | None
    """The attempt that it was issued on; a restart is judged on the next one."""
    intervention: Intervention
    issued_at: datetime
    issued_step: int = 0
    """The attempt's last step when it was issued; set by a reader that knows it."""
    after_end: bool = False
    """Whether the attempt was already over when it was issued; set by a reader that knows it."""
    status: InterventionStatus
    stamp: Delivery | None = None
    """The newest delivery."""
    settled: Delivery | None = None
    """The delivery that approved or rejected it."""
    stamped_at: datetime | None = None
    ignored_at: datetime | None = None
    """When it had been delivered and the worker did not heed it; `None` if it did."""
    report: OutcomeReport | None = None

    @classmethod
    def begin(
        cls, entry: Entry, issued: Intervention, *, step: int = 0, after_end: bool = False
    ) -> "InterventionState":
        """Return the state of an intervention that `entry` has just issued."""
        held = issued.needs_approval
        return cls(
            id=entry.id,
            task=entry.task,
            attempt=entry.attempt,
            intervention=issued,
            issued_at=entry.at,
            issued_step=step,
            after_end=after_end,
            status=InterventionStatus.HELD if held else InterventionStatus.ISSUED,
        )

    def fold(self, at: datetime, news: Delivery | OutcomeReport) -> None:
        """Take in a delivery or an outcome. Delivered, rejected and expired are final.

        A second delivery says that the worker does not heed the first.
        """
        if isinstance(news, OutcomeReport):
            self.report = news
        elif self.delivered and news.state is DeliveryState.DELIVERED:
            self.ignored_at = self.ignored_at or at
        elif self.status.under_way:
            self.status = InterventionStatus(news.state.value)
            self.stamp, self.stamped_at = news, at
            if said_by_person(news):
                self.settled = news

    @property
    def action(self) -> Action:
        """Its action."""
        return self.intervention.action

    @property
    def outcome(self) -> Outcome | None:
        """The monitor's verdict; `None` until it is judged."""
        return self.report.outcome if self.report else None

    @property
    def reason(self) -> str:
        """Reason for the outcome; empty until it is judged."""
        return self.report.reason if self.report else ""

    @property
    def needs_approval(self) -> bool:
        """Whether it waits for an operator's approval."""
        return self.status is InterventionStatus.HELD

    @property
    def delivered(self) -> bool:
        """Whether it was delivered."""
        return self.status is InterventionStatus.DELIVERED

    @property
    def lost(self) -> bool:
        """Whether it was rejected or has expired."""
        return self.status in {InterventionStatus.REJECTED, InterventionStatus.EXPIRED}

    @property
    def rejected(self) -> bool:
        """Whether an operator, or the time limit for approvals, rejected it."""
        return self.status is InterventionStatus.REJECTED

    @property
    def approved_by_person(self) -> bool:
        """Whether a person approved it, not just the time limit for approvals."""
        if self.settled is None or self.settled.state is not DeliveryState.APPROVED:
            return False
        return self.settled.author != BY_TIMEOUT

    @property
    def rejection(self) -> str | None:
        """Who rejected it and why; `None` if nobody did."""
        if self.stamp is None or self.stamp.state is not DeliveryState.REJECTED:
            return None
        return ": ".join(filter(None, (self.stamp.author, self.stamp.comment)))

    @property
    def delivered_step(self) -> int | None:
        """The attempt's last step when it was delivered; `None` until then."""
        return self.stamp.step if self.stamp is not None and self.delivered else None

    @property
    def begins_waiting(self) -> bool:
        """Whether an attempt that receives it waits for a person."""
        return self.action in {Action.ASK_OPERATOR, Action.PAUSE}

    @property
    def ends_waiting(self) -> bool:
        """Whether it lets an attempt that waits for a person continue.

        Only a person can answer, but the policy resumes the attempt if nobody does in time.
        """
        if self.action is Action.RESUME and not self.intervention.permits:
            return self.intervention.by in {Actor.OPERATOR, Actor.POLICY}
        answers = self.action in {Action.NUDGE, Action.REPLAN}
        return answers and self.intervention.by is Actor.OPERATOR


@dataclass(slots=True, kw_only=True)
class Interventions:
    """Interventions of one attempt, task or run by journal id, in the order of issue."""

    by_id: dict[int, InterventionState] = field(default_factory=dict[int, InterventionState])
    permissions: dict[int, PermissionRequest] = field(default_factory=dict[int, PermissionRequest])
    """Permission requests of the worker by journal id, newest last."""

    def __iter__(self) -> Iterator[InterventionState]:
        return iter(self.by_id.values())

    def __contains__(self, id: object) -> bool:
        return id in self.by_id

    def __bool__(self) -> bool:
        return bool(self.by_id)

    def get(self, id: int) -> InterventionState | None:
        """Return the intervention with that journal id, or `None`."""
        return self.by_id.get(id)

    def fold(
        self, entry: Entry, *, step: int = 0, after_end: bool = False
    ) -> InterventionState | None:
        """Take in the next entry, and return the intervention that it is about, or `None`.

        Args:
            entry: Of the attempt, task or run; other kinds and unknown interventions are ignored.
            step: The attempt's last step.
            after_end: Whether the attempt is over.
        """
        match entry.record:
            case Intervention() as issued:
                state = InterventionState.begin(entry, issued, step=step, after_end=after_end)
                self.by_id[entry.id] = state
                return state
            case Delivery() | OutcomeReport() as news:
                known = self.by_id.get(news.intervention)
                if known is not None:
                    known.fold(entry.at, news)
                return known
            case PermissionRequest() as asked:
                self.permissions[entry.id] = asked
                return None
            case _:
                return None

    @property
    def held(self) -> tuple[InterventionState, ...]:
        """Interventions that wait for approval."""
        return tuple([each for each in self.by_id.values() if each.needs_approval])

    @property
    def on_their_way(self) -> tuple[InterventionState, ...]:
        """Interventions that will be delivered without any further approval."""
        return tuple(each for each in self if each.status.on_its_way)

    @property
    def under_way(self) -> tuple[InterventionState, ...]:
        """Interventions that can still be delivered."""
        return tuple(each for each in self if each.status.under_way)

    @property
    def delivered(self) -> tuple[InterventionState, ...]:
        """Delivered interventions."""
        return tuple(each for each in self if each.delivered)

    @property
    def stop(self) -> InterventionState | None:
        """The first stop that was delivered, or `None`."""
        return next((each for each in self.delivered if each.action is Action.STOP), None)

    @property
    def ignored_stop(self) -> InterventionState | None:
        """That stop, if the worker does not heed it; else `None`."""
        return self.stop if self.stop is not None and self.stop.ignored_at is not None else None

    def in_vain(self, escalation: int) -> bool:
        """Return whether an intervention answered an escalation and did not help."""
        return any(
            each.outcome in {Outcome.NO_EFFECT, Outcome.MADE_WORSE}
            for each in self
            if each.intervention.escalation == escalation
        )

    def answer(self, request: int) -> InterventionState | None:
        """Return the newest answer to a worker's request that was not rejected, or `None`."""
        for each in reversed(self.by_id.values()):
            if each.intervention.petition == request and not each.rejected:
                return each
        return None

    def allowance(self, wanted: PermissionRequest) -> InterventionState | None:
        """Return the unused permission for what the worker wants to do, or `None`."""
        for id, asked in self.permissions.items():
            if (asked.tool, asked.what) == (wanted.tool, wanted.what):
                given = self.answer(id)
                if given is not None and given.intervention.permits and given.status.on_its_way:
                    return given
        return None

    @property
    def permission(self) -> int:
        """Journal id of the newest permission request; 0 if there is none."""
        return next(reversed(self.permissions), 0)

    @property
    def ends_waiting(self) -> bool:
        """Whether an attempt that waits for a person may continue.

        An intervention issued before the question or pause does not answer it, and a permission
        request needs its own answer. An attempt without a question waits for approval, and
        continues once nothing is left to approve.
        """
        asked = max((e.id for e in self if e.begins_waiting and not e.status.under_way), default=0)
        if self.permission > asked:
            given = self.answer(self.permission)
            if given is None or given.status.on_its_way:
                return given is not None
        if any(each.id > asked and each.ends_waiting for each in self.on_their_way):
            return True
        answered = any(each.id > asked and each.ends_waiting for each in self.delivered)
        proposed = any(each.intervention.needs_approval for each in self)
        return proposed and not self.held and (answered or not asked)

    @property
    def begin_again(self) -> bool:
        """Whether a person restarted the task after the attempt's end."""
        return any(each.after_end and each.action is Action.RESTART for each in self.delivered)

    @property
    def ends_attempt(self) -> bool:
        """Whether an intervention that ends it is on its way, or its worker was told to stop."""
        return self.stop is not None or any(each.action.at_once for each in self.on_their_way)


def open_question(
    asked: Sequence[InterventionState], interventions: Interventions, unseen: Set[AlertKey]
) -> InterventionState | None:
    """Return the newest question to a person that was `asked` or is on its way, or `None`.

    A question is no longer open once its alerts are gone or a person has seen them.
    """
    coming = (e for e in interventions.on_their_way if e.action is Action.ASK_OPERATOR)
    for each in reversed([*asked, *coming]):
        if not each.intervention.answers or unseen & {*each.intervention.answers}:
            return each
    return None
