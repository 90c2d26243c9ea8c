"""The state of one attempt, folded from its entries and used by everything that shows it. Pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from midwatch_monitor.alerts import health
from midwatch_monitor.budget import forecast
from midwatch_monitor.records import (
    Action,
    Activity,
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Completion,
    Decision,
    Delivery,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Feedback,
    Health,
    Intervention,
    Lifecycle,
    Outage,
    OutcomeReport,
    PermissionRequest,
    Plan,
    Record,
    Resolution,
    Step,
)
from midwatch_monitor.records.verdict import weight
from midwatch_monitor.state.attempt_details import (
    ENDED_AS,
    AlertStatus,
    AttemptDetails,
    AttemptStatus,
    Awaited,
    coming_change,
    coming_status,
)
from midwatch_monitor.state.intervention import (
    Interventions,
    InterventionState,
    WorkerRequest,
    open_question,
    said_by_person,
    worker_request,
)

TREND = 12
"""Number of stated confidences kept."""

_NO_BUDGET = Budget()
_NO_PLAN = Plan(steps=())
_SUBMITTED = AttemptTransition(lifecycle=Lifecycle.SUBMITTED)


@dataclass(slots=True, kw_only=True)
class AttemptState:
    """The state of one attempt.

    It keeps no steps, so that ten thousand attempts fit into memory. With `detailed` off, `details`
    stays empty too.
    """

    attempt: Attempt
    detailed: bool = True
    judged: bool = True
    """Whether the rules judge it; false in a run whose mode is `off`."""
    transition: AttemptTransition = _SUBMITTED
    """The newest transition."""
    lifecycle: Lifecycle = Lifecycle.SUBMITTED
    """Lifecycle of the newest transition or change."""
    last_step: int = 0
    last_at: datetime | None = None
    """Time of the newest entry that is not a person's act; `None` before the first entry."""
    edited_step: int = 0
    """The newest step that changed a file; 0 for none."""
    activity: Activity = Activity.IDLE
    doing: str = ""
    """The commands or tools being run, as text for people."""
    outage: Outage | None = None
    """The lasting outage of its provider that it is waiting out, or `None`."""
    plan: Plan = _NO_PLAN
    plan_step: int = 0
    """The first open plan step, from 1; one past the end when all are closed; 0 without a plan."""
    plan_steps: int = 0
    checkpoint: Checkpoint | None = None
    """The newest checkpoint."""
    reported_progress: int | None = None
    """Percent of the current plan step; `None` before the first report on it."""
    confidences: deque[int] = field(default_factory=lambda: deque[int](maxlen=TREND))
    """The last stated confidences in percent, oldest first."""
    confidence_counts: bool = True
    budget: Budget = _NO_BUDGET
    first_budget: Budget | None = None
    """The first budget recorded in this attempt."""
    switched: str = ""
    """The model that it was switched to; empty if it was not."""
    moves: list[str] = field(default_factory=list[str])
    """The nodes that continued it after its first node, oldest first."""
    sandbox: str = ""
    """The sandbox of its commands; empty if not recorded."""
    acts: tuple[Action, ...] | None = None
    """The actions possible on a worker that somebody else started; `None` if all are."""
    alerts: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    """The newest record of each alert, in the order in which they were first seen."""
    left: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    """Alerts that fired when the attempt ended, as they were before that."""
    last_firing: tuple[Alert, ...] = ()
    """Alerts that fire now, or that still fired when the attempt ended, however it ended."""
    acknowledged: set[AlertKey] = field(default_factory=set[AlertKey])
    """Firing alerts that a person has acknowledged."""
    silenced: set[AlertKey] = field(default_factory=set[AlertKey])
    """Alerts that a person does not want escalated again."""
    escalations: dict[int, Escalation] = field(default_factory=dict[int, Escalation])
    """The newest record of each escalation, by escalation id."""
    escalation: Escalation | None = None
    """The escalation that is not closed, or `None`."""
    raised: int = 0
    """Number of escalations so far."""
    closed_at_step: int | None = None
    """Step at which the last escalation was closed; `None` if its intervention did not help."""
    observed: dict[int, tuple[AlertKey, ...]] = field(
        default_factory=dict[int, tuple[AlertKey, ...]]
    )
    """Alerts that a decision chose only to observe, by the decision's journal id."""
    interventions: Interventions = field(default_factory=Interventions)
    waits: list[InterventionState] = field(default_factory=list[InterventionState])
    """Delivered questions and pauses that nobody has answered yet."""
    parked_since: datetime | None = None
    """When it began to wait for a person, or `None`."""
    asked: dict[int, tuple[datetime, WorkerRequest]] = field(
        default_factory=dict[int, tuple[datetime, WorkerRequest]]
    )
    """All requests of the worker, answered or not, with their times, by journal id."""
    completion: Completion | None = None
    """The assessment of the whole work when the worker last said that it was done."""
    verdict: Feedback | None = None
    """The verdict on its result that counts: a person's takes precedence over an implied one."""
    details: AttemptDetails = field(default_factory=AttemptDetails)

    # -- identity ------------------------------------------------------------------------------

    @property
    def id(self) -> int:
        """Journal id of the attempt."""
        return self.attempt.id

    @property
    def task(self) -> int:
        """Journal id of its task."""
        return self.attempt.task

    @property
    def model(self) -> str:
        """The model now in use."""
        return self.switched or self.attempt.model

    @property
    def node(self) -> str:
        """The node that works on it, or did last."""
        return self.moves[-1] if self.moves else self.attempt.node

    # -- status --------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self.lifecycle.over

    @property
    def rejected(self) -> bool:
        """Whether it has ended with a result that was not accepted."""
        return self.over and self.verdict is not None and not self.verdict.accepted

    @property
    def split(self) -> bool:
        """Whether smaller tasks replaced it."""
        return self.transition.ending is Ending.SPLIT

    @property
    def parked(self) -> bool:
        """Whether it waits for a person, because of a question, a permission or a pause."""
        return self.lifecycle is Lifecycle.INPUT_REQUIRED and not self.idle

    @property
    def idle(self) -> bool:
        """Whether its worker has ended a turn and waits for a prompt from elsewhere."""
        return self._runs_elsewhere and self.lifecycle is Lifecycle.INPUT_REQUIRED

    @property
    def _runs_elsewhere(self) -> bool:
        return self.acts is not None and Action.PAUSE not in self.acts  # it cannot be paused

    @property
    def asks_beside(self) -> InterventionState | None:
        """The newest question to a person while a worker that cannot be paused continues."""
        unseen = {alert.key for alert in self.unseen}
        beside = self._runs_elsewhere and not (self.over or self.interventions.ends_attempt)
        return open_question(self.waits, self.interventions, unseen) if beside else None

    @property
    def ignored_stop(self) -> InterventionState | None:
        """The stop that its worker was told of and does not heed, or `None`."""
        return None if self.over else self.interventions.ignored_stop

    @property
    def paused(self) -> bool:
        """Whether it is paused until a person resumes it."""
        return self.parked and any(each.action is Action.PAUSE for each in self.waits)

    @property
    def question(self) -> InterventionState | None:
        """The question to a person that it waits for; `None` without one, and while paused."""
        return self.waits[-1] if self.parked and self.waits and not self.paused else None

    @property
    def permission(self) -> PermissionRequest | None:
        """The permission request that its worker waits for, or `None`."""
        asked = self.open_requests.get(self.interventions.permission)
        waits = self.parked and not self.waits
        return asked if waits and isinstance(asked, PermissionRequest) else None

    @property
    def goes_on(self) -> bool:
        """Whether it waits for a person, but the intervention that ends the wait is on its way."""
        coming = self.interventions
        return self.parked and (coming.ends_waiting or coming.ends_attempt)

    @property
    def status(self) -> AttemptStatus:
        """Its status as a word for people."""
        if self.over and (ended := ENDED_AS.get(self.transition.ending or Ending.DONE)):
            return ended
        if not self.over and (coming := coming_status(self.interventions)) is not None:
            return coming
        if self.idle:
            return AttemptStatus.IDLE
        if self.goes_on:
            return AttemptStatus.RESUMING
        if self.parked:
            return AttemptStatus.PAUSED if self.paused else AttemptStatus.WAITING
        return AttemptStatus(self.lifecycle.value)

    @property
    def awaited(self) -> tuple[Awaited, InterventionState | None]:
        """What it waits for, with the intervention concerned, if any."""
        ignored = self.ignored_stop
        if self.over or ignored is not None:
            return (Awaited.NOTHING, None) if ignored is None else (Awaited.END, ignored)
        if (held := self.interventions.held) and not self.interventions.ends_attempt:
            return Awaited.APPROVAL, held[0]
        change = coming_change(self.interventions)  # the status shows it too
        coming = (change,) if change is not None else self.interventions.on_their_way
        if self.goes_on:
            return (Awaited.DELIVERY, coming[0]) if coming else (Awaited.NOTHING, None)
        if self.permission is not None:
            return Awaited.PERMISSION, None
        if self.parked:
            kinds = {Action.ASK_OPERATOR: Awaited.ANSWER, Action.PAUSE: Awaited.RESUME}
            pauses = [each for each in self.waits if each.action is Action.PAUSE]
            last = (pauses or self.waits)[-1:]
            return (kinds[last[0].action], last[0]) if last else (Awaited.PERSON, None)
        if (asked := self.asks_beside) is not None:
            return Awaited.ANSWER, asked
        if self.outage is not None:
            return Awaited.PROVIDER, None
        if self.escalation is not None and self.escalation.state is EscalationState.OPEN:
            return Awaited.DECISION, None
        if coming:
            return Awaited.DELIVERY, coming[0]
        return Awaited.NOTHING, None

    @property
    def needed_since(self) -> datetime | None:
        """When it began to wait for a person's answer or approval; `None` if it does not.

        An answered question no longer counts, even if the answer is not delivered yet.
        """
        ignored = self.ignored_stop
        if self.over or self.interventions.ends_attempt:
            return ignored and ignored.ignored_at
        asked = self.asks_beside
        since = [each.issued_at for each in (*self.interventions.held, *([asked] if asked else ()))]
        parked = [self.parked_since] if self.parked_since and not self.goes_on else []
        return min([*since, *parked], default=None)

    # -- health --------------------------------------------------------------------------------

    @property
    def firing(self) -> tuple[Alert, ...]:
        """Alerts that fire now, in the order in which they were first seen."""
        return () if self.over else self.last_firing

    @property
    def unresolved(self) -> tuple[Alert, ...]:
        """Alerts that fire now, or that fired at its end and may explain it.

        None if the result passed its checks, unless somebody rejected it.
        """
        passed = self.over and self.transition.ending is Ending.DONE and not self.rejected
        return () if passed else self.last_firing

    @property
    def unseen(self) -> tuple[Alert, ...]:
        """Firing alerts that no person has acknowledged or silenced."""
        seen = self.acknowledged | self.silenced
        return tuple(each for each in self.firing if each.key not in seen)

    @property
    def health(self) -> Health:
        """Health, now or at its end.

        Never ok while an alert fires; unknown instead of ok or notice during an outage.
        """
        if not self.judged and not self.alerts:
            return Health.NOT_JUDGED
        found = health(self.unresolved)
        away = self.outage is not None and not self.over
        return Health.UNKNOWN if away and found in {Health.OK, Health.NOTICE} else found

    def alert_status(self, key: AlertKey) -> AlertStatus:
        """Return the status of an alert. Raises KeyError if it was never recorded."""
        alert = self.alerts[key]
        if alert.state is AlertState.RESOLVED:
            ended = alert.resolution is Resolution.ENDED
            return AlertStatus.ENDED if ended else AlertStatus.RESOLVED
        if self.over:
            return AlertStatus.ENDED
        if alert.firing and key in self.silenced:
            return AlertStatus.SILENCED
        if alert.firing and key in self.acknowledged:
            return AlertStatus.ACKNOWLEDGED
        return AlertStatus(alert.state.value)

    @property
    def progress(self) -> int | None:
        """Percent of the current plan step, 100 once completed; `None` if nobody reported it."""
        return 100 if self.status is AttemptStatus.COMPLETED else self.reported_progress

    @property
    def confidence(self) -> int | None:
        """The last stated confidence in percent; `None` if none was stated."""
        return self.confidences[-1] if self.confidences else None

    def then_used(self, ahead: int) -> float:
        """Return the share of the tightest limit that will be used `ahead` steps from now."""
        began = self.first_budget or self.budget
        return forecast(began, self.budget, steps=self.last_step, ahead=ahead)

    # -- requests and answers ------------------------------------------------------------------

    @property
    def open_requests(self) -> Mapping[int, WorkerRequest]:
        """Unanswered requests of the worker, by journal id."""
        if self.over:
            return {}
        answered = {each.intervention.petition for each in self.interventions if not each.rejected}
        return {id: request for id, (_, request) in self.asked.items() if id not in answered}

    def answer(self, request: int) -> Intervention | None:
        """Return the answer to a worker's request, or `None` if there is none yet.

        The answer's `needs_approval` says whether it still waits for approval.
        """
        found = self.interventions.answer(request)
        return found and replace(found.intervention, needs_approval=found.needs_approval)

    @property
    def asked_since(self) -> datetime | None:
        """When the oldest open request was made, or `None`."""
        return min((self.asked[id][0] for id in self.open_requests), default=None)

    # -- folding -------------------------------------------------------------------------------

    def fold(self, entry: Entry) -> None:
        """Take in the next entry of this attempt; kinds that do not matter are ignored."""
        record = entry.record
        self.last_at = self.last_at if said_by_person(record) else entry.at
        if self.detailed:
            self.details.fold(entry.id, record)
        match record:
            case Step():
                self._fold_step(record)
            case Change():
                self._fold_change(record, entry.at)
            case AttemptTransition():
                self.transition = record
                self._enter_lifecycle(record.lifecycle, entry.at)
            case Plan():
                self.plan, self.plan_step = record, record.current
                self.plan_steps = len(record.steps)
            case Alert():
                self._fold_alert(record)
            case Escalation():
                self._fold_escalation(record)
            case Intervention() | Delivery() | OutcomeReport():
                self.follow(entry)
            case _:
                self._fold_word(entry, record)

    def _fold_alert(self, alert: Alert) -> None:
        before = self.alerts.get(alert.key)
        self.alerts[alert.key] = alert
        if alert.resolution is Resolution.ENDED and before is not None and before.firing:
            self.left[alert.key] = before
        known = (self.left.get(key, each) for key, each in self.alerts.items())
        self.last_firing = tuple(each for each in known if each.firing)
        if not alert.firing:
            self.acknowledged.discard(alert.key)

    def follow(self, entry: Entry) -> None:
        """Take in news of an intervention on this attempt, whichever attempt it is recorded on.

        A restart is issued on one attempt and judged on the next.
        """
        state = self.interventions.fold(entry, step=self.last_step, after_end=self.over)
        if state is None or not state.delivered or state.stamp is not entry.record:
            return
        keys = state.intervention.answers
        if state.action is Action.SILENCE:
            self.silenced.update(keys)
        elif state.action is Action.ACKNOWLEDGE:
            self.acknowledged.update(keys)
        elif state.begins_waiting:
            self.waits.append(state)
        elif state.ends_waiting:
            self.waits.clear()

    def _fold_word(self, entry: Entry, record: Record) -> None:
        if (request := worker_request(record)) is not None:
            self.asked[entry.id] = (entry.at, request)
            self.interventions.fold(entry)
        match record:
            case Completion(plan_step=0):
                self.completion = record
            case Feedback():
                # A person's verdict outweighs an implied one; of two equal ones the newer counts.
                if self.verdict is None or weight(record.origin) >= weight(self.verdict.origin):
                    self.verdict = record
            case Decision(action=Action.OBSERVE, refused="") if self.escalation is not None:
                self.observed[entry.id] = self.escalation.alerts
            case _:
                pass

    def _fold_step(self, step: Step) -> None:
        self.last_step = step.number
        self.edited_step = step.number if step.edits else self.edited_step
        if step.checkpoint is not None:
            self.checkpoint = step.checkpoint
            self.reported_progress = step.checkpoint.progress_percent
            self.confidences.append(step.checkpoint.confidence)

    def _fold_change(self, change: Change, at: datetime) -> None:
        if change.activity is not None:
            self.activity, self.doing = change.activity, change.doing
        if change.outage is not None:
            away = change.outage.lasting and not change.outage.over
            self.outage = change.outage if away else None
        self.budget = change.budget or self.budget
        self.first_budget = self.first_budget or change.budget
        self.switched = change.model or self.switched
        if change.model or change.confidence_counts is not None:
            self.confidence_counts = change.confidence_counts is not False
        self.sandbox = change.sandbox or self.sandbox
        self.acts = self.acts if change.acts is None else change.acts
        if change.plan_step is not None:
            self.plan_step, self.reported_progress = change.plan_step, None
            self.plan_steps = change.plan_steps or self.plan_steps
        if change.node is not None and change.node != self.node:
            self.moves.append(change.node)
        if change.lifecycle is not None:
            self._enter_lifecycle(change.lifecycle, at)

    def _enter_lifecycle(self, lifecycle: Lifecycle, at: datetime) -> None:
        self.lifecycle = lifecycle
        self.parked_since = (self.parked_since or at) if self.parked else None
        if lifecycle.over:
            self.activity, self.doing = Activity.IDLE, ""

    def _fold_escalation(self, escalation: Escalation) -> None:
        self.escalations[escalation.id] = escalation
        if escalation.state is EscalationState.CLOSED:
            self.escalation = None
            # After an intervention that did not help, the next one must not wait for a cooldown.
            in_vain = self.interventions.in_vain(escalation.id)
            self.closed_at_step = None if in_vain else self.last_step
            return
        if self.escalation is None:
            self.raised += 1
        self.escalation = escalation
