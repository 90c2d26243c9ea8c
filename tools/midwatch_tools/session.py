"""Watches one run of an agent: records what it does, and delivers what is due.

The capability `Watch` forwards pydantic-ai's hooks to it.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_ai import UserPromptNode
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    repair_messages,
)
from pydantic_ai.tools import RunContext

from midwatch_monitor.budget import raise_limits, spend
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import BudgetSpentError
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    AttemptTransition,
    Budget,
    Change,
    Entry,
    Intervention,
    Lifecycle,
    Message,
    Plan,
    Record,
    Result,
    Step,
    StepKind,
)
from midwatch_tools.inbox import (
    WAITS,
    Inbox,
    Numbered,
    arrival_records,
    grants,
    stamp,
    timely,
)
from midwatch_tools.instructions import (
    budget_line,
    exhausted_limits,
    intervention_id,
    intervention_text,
    next_interval,
    permission_text,
    reminder,
    reminder_due,
    steady,
    without_reminders,
)
from midwatch_tools.model_switch import Switch
from midwatch_tools.observation import act_words, cost, cut, prompt_texts
from midwatch_tools.pauses import Pause, pause_records
from midwatch_tools.plan_change import is_written, share_requests
from midwatch_tools.workspace_checks import WorkspaceChecks

log = logging.getLogger(__name__)

MAX_DOING = 200
"""Longest text of the current activity, in characters: it is only displayed."""


Hold = Callable[[], Awaitable[None]]


UNCOUNTED = "midwatch_uncounted"
"""Metadata key of a response that did not come from a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchScope:
    """How much a watch does; by default everything, as for an attempt that a runner owns."""

    tools: Literal["all", "reflect", "none"] = "all"
    """The tools offered to the worker."""
    gated: bool = True
    """Whether calls may be refused until a failure is analysed or a plan step checked."""
    steered: bool = True
    """Whether messages are sent to the worker."""
    resumable: bool = True
    """Whether the history is kept, so that the attempt can be resumed."""
    foreign: bool = False
    """Whether the worker is an agent that runs its own tools; every change then is its work."""
    rest_seconds: float = 0.0
    """Seconds before the inbox is read again: requests may be milliseconds apart."""


class Session:
    """The worker's side of the watch, for one run of one attempt."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        inbox: Inbox | None,
        settings: Settings,
        code: str,
        saved: int,
        requests: int,
        seconds: Callable[[], float],
        site: WorkspaceChecks,
        switch: Switch,
        reach: WatchScope,
        prompt: bool,
        hold: Hold | None,
        call_person: Callable[[str], None] | None,
    ) -> None:
        """Watch the run of the recorder's attempt.

        Without an `inbox`, the worker gets no messages. If `prompt`, each act is stored before the
        work continues, even if the attempt is not resumable. `hold` pauses a worker that would
        otherwise continue while its work waits for a person. With `call_person`, which gets the
        questions of a supervisor to a person, the work does not wait for answers, nor for decisions
        about proposals.
        """
        self.recorder = recorder
        self.resumable = reach.resumable
        self._loses_nothing = reach.resumable or prompt
        self._rest_seconds = reach.rest_seconds
        self._hold = hold
        self._call_person = call_person
        self._rests_until = -math.inf
        self.settings = settings
        self.code = code
        """Marks Midwatch's messages, so that no other text can pass for one."""
        self.site = site
        self.switch = switch
        self.masked = recorder.journal.masker.text
        """Masks secrets in text that is cut before it is stored."""
        self.inbox = inbox
        """Interventions for the worker, and answers to its requests."""
        self.requests = requests
        """Number of answered model requests of this attempt, including those before a crash."""
        self._saved = saved
        self._seen = saved  # an index into the run's own list: see `after_node`
        self._seconds = seconds
        self._mark = seconds()
        self._stopped: float | None = None
        self._told: dict[int, Intervention] = {}
        self._due: tuple[Numbered, ...] = ()
        self._running = 0
        self._priced: tuple[ModelResponse, float] | None = None
        self._proposed: dict[int, int] = {}
        """The number of requests when each proposal was first seen, by proposal id."""
        self._let_by: set[int] = set()
        """Proposals that were still undecided when a person let the attempt continue."""
        self.forgets = saved > 0
        """Whether reminders in the history are removed before the next request."""

    # -- before a model request ------------------------------------------------------------

    async def before_request(self, ctx: RunContext[Any]) -> None:
        """Stop if the budget is spent, wait if a person was asked, and deliver what is due."""
        if self.inbox is None:
            return
        due, goes_on = self._due, self._saved > 0 and math.isinf(self._rests_until)
        if self._seconds() >= self._rests_until:
            due = self._due = await timely(self.recorder, await self.inbox.due(), told=self._told)
            self._rests_until = self._seconds() + self._rest_seconds
        if gone := exhausted_limits(self.allowed_budget()):
            raise BudgetSpentError(f"out of budget: {gone}")
        while (
            (waits := self._waiting_interventions(due))
            or self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED
            or (self._undecided_proposals(self.inbox) and not self.inbox.answered)
        ):
            due = self._due = await self._await_person(self.inbox, waits)
        await self._pass_on_questions(due)
        for id, intervention in due:
            if intervention.action.spoken and not intervention.permits and id not in self._told:
                self._told[id] = intervention
                text = intervention_text(
                    self.code, id, intervention, plans=is_written(self.recorder.plan)
                )
                ctx.enqueue(text, priority="asap")
                if intervention.action is Action.SWITCH_MODEL:
                    await self._turn_to(intervention.terms.model)
        if goes_on:
            self._tell_permissions(ctx, self.inbox, due)
        self._queue_reminder(ctx)
        if self.forgets:
            self._drop_reminders(ctx.messages)

    def _tell_permissions(
        self, ctx: RunContext[Any], inbox: Inbox, due: Sequence[Numbered]
    ) -> None:
        # A worker that was not interrupted gets them as the answers to its questions.
        for _, each in due:
            asked = inbox.interventions.permissions.get(each.petition or 0)
            if each.permits and asked is not None:
                ctx.enqueue(permission_text(self.code, asked.what), priority="asap")

    async def _turn_to(self, model: str) -> None:
        """Switch to another model from this request on; the current one may be the problem."""
        fault = self.switch.turn_to(model)
        if fault is not None:
            await self.recorder.record(fault)

    def _undecided_proposals(self, inbox: Inbox) -> list[Numbered]:
        """Return the proposals that have waited for a decision for as many requests as the policy
        allows.
        """
        after = self.settings.policy.person.hold_after if self._call_person is None else 0
        held = [each for each in inbox.held if after and each[0] not in self._let_by]
        since = {id: self._proposed.setdefault(id, self.requests) for id, _ in held}
        return [each for each in held if self.requests - since[each[0]] >= after]

    def _waiting_interventions(self, due: Sequence[Numbered]) -> list[Numbered]:
        """Return the interventions that make the attempt wait."""
        return [
            (id, each)
            for id, each in due
            if each.action in WAITS and (self._call_person is None or each.by is Actor.OPERATOR)
        ]

    async def _pass_on_questions(self, due: Sequence[Numbered]) -> None:
        """Pass on the questions to a person for which the work does not wait."""
        for id, each in due:
            if each.action is Action.ASK_OPERATOR and self._call_person is not None:
                self._call_person(each.message)
                await self.recorder.record(stamp(id, self.recorder.last_step))
                self._drop_due({id})

    async def _await_person(self, inbox: Inbox, waits: Sequence[Numbered]) -> tuple[Numbered, ...]:
        """Wait for a person; the time costs nothing, and no rule counts it."""
        undecided = self._undecided_proposals(inbox)
        if self._hold is not None:
            await self._hold()
        if self.recorder.lifecycle is not Lifecycle.INPUT_REQUIRED or waits:
            why = waits[-1][1].message if waits else "a proposal is waiting for approval"
            await self.stand_still(why, *(stamp(id, self.recorder.last_step) for id, _ in waits))
        due = await inbox.wait()
        self._let_by |= {id for id, _ in undecided}
        await self.go_on(Activity.MODEL)
        return due

    async def stand_still(self, why: str, *records: Record) -> None:
        """Store that the attempt is waiting for a person, after the records that led to this."""
        waiting = Lifecycle.INPUT_REQUIRED
        await self.recorder.record(
            *records,
            Change(lifecycle=waiting, activity=Activity.WAITING, budget=self.budget()),
            AttemptTransition(lifecycle=waiting, reason=why),
        )

    async def go_on(self, activity: Activity, *records: Record, why: str = "") -> None:
        """Store that the wait is over; its time costs nothing."""
        change = Change(lifecycle=Lifecycle.WORKING, activity=activity)
        await self.recorder.record(*records, change, working_transition(why))
        self._mark = self._seconds()

    def _queue_reminder(self, ctx: RunContext[Any]) -> None:
        reported = [step.request for step, _ in self.recorder.checkpoints]
        if len(reported) >= self.settings.reflect.max_reflections:
            return  # `reflect` would refuse it
        last = max([self.recorder.plan_step_began, *reported])
        if reminder_due(self.requests + 1, last, self.interval):
            asked = reminder(self.code, self.requests - last, self.budget_line())
            self.forgets = True
            ctx.enqueue(asked, priority="asap")

    def _drop_reminders(self, messages: list[ModelMessage]) -> None:
        """Remove older reminders from the run's history: one is enough."""
        kept = without_reminders(messages)
        self._seen -= len(messages) - len(kept)
        messages[:] = kept

    async def note_pause(self, pause: Pause | None) -> None:
        """Record that the provider makes the attempt wait or, with `None`, that it has answered.

        The budget's minutes stand still until it answers: an outage of hours is not work.
        """
        recorder, budget = self.recorder, self.budget()
        if pause is not None and pause.asked is None:
            self._mark = self._stopped = self._seconds()
        if records := pause_records(recorder.outage, pause, recorder.clock(), budget):
            await recorder.record(*records)

    def stop_clock(self) -> None:
        """Stop counting minutes: the run is over."""
        if self._stopped is None:
            self._stopped = self._seconds()

    # -- after a model request -------------------------------------------------------------

    async def after_node(self, node: object, messages: Sequence[ModelMessage]) -> None:
        """Append the messages that a node of the run has added to the history."""
        if isinstance(node, UserPromptNode):
            # pydantic-ai has normalised the messages that were brought along: it merges consecutive
            # requests, which a message to the worker causes.
            self._seen = len(repair_messages(messages, repair_last_response=False))
        else:
            await self._after_request(messages)

    async def _after_request(self, messages: Sequence[ModelMessage]) -> None:
        """Append new messages, with their cost and stamps for the interventions among them."""
        fresh = list(messages[self._seen :])
        if not fresh:
            return
        response = fresh[-1] if fresh and isinstance(fresh[-1], ModelResponse) else None
        budget, here = self.budget(), self._take_arrived(fresh)
        records: list[Record] = list(
            arrival_records(
                here,
                plan=self.recorder.plan,
                budget=budget,
                model=self.switch.name,
                step=self.recorder.last_step,
                least=self.settings.plan.min_requests,
            )
        )
        if response is not None and UNCOUNTED not in (response.metadata or ()):
            self.requests += 1
            records += self._spend_response(response, raise_limits(budget, grants(here)))
            if not response.tool_calls:
                records.append(self._message_step(response))
        if self.resumable:
            await self._append(fresh, records)
            return
        self._seen += len(fresh)
        if here:  # at once: what the journal has as undelivered is delivered again
            await self.recorder.record(*records)
        else:
            await self.record(*records)

    async def record(self, *records: Record, results: Sequence[Result] = ()) -> None:
        """Store records: before the work continues if nothing may be lost, otherwise soon.

        Records that make an alert fire are stored at once, so that it is announced at once.
        """
        if self._loses_nothing:
            await self.recorder.record(*records, results=results)
        elif self.recorder.record_soon(*records):
            await self.recorder.record()

    async def bring_along(self, messages: Sequence[ModelMessage]) -> None:
        """Store a conversation from before this attempt; none of it counts or costs here."""
        if self.resumable:
            await self._append(messages[self._seen :], ())
        else:
            self._seen = len(messages)

    async def _append(self, fresh: Sequence[ModelMessage], records: Sequence[Record]) -> None:
        bodies = [
            Message(index=self._saved + n, body=ModelMessagesTypeAdapter.dump_json([message]))
            for n, message in enumerate(fresh)
        ]
        await self.recorder.record(*records, messages=bodies)
        self._saved += len(fresh)
        self._seen += len(fresh)

    def _take_arrived(self, fresh: Sequence[ModelMessage]) -> list[Numbered]:
        """Return the interventions whose text is in these messages, and drop them from the list."""
        ids = dict.fromkeys(map(intervention_id, prompt_texts(fresh)))
        here = [(id, self._told.pop(id)) for id in ids if id in self._told]
        self._drop_due({id for id, _ in here})
        return here

    def _drop_due(self, ids: Container[int]) -> None:
        self._due = tuple(each for each in self._due if each[0] not in ids)

    def _spend_response(self, response: ModelResponse, budget: Budget) -> list[Record]:
        budget = spend(
            budget,
            requests=1,
            tokens=response.usage.total_tokens,
            cost_usd=self.cost_of(response),
        )
        self._mark, self._stopped = self._seconds(), None
        self._running = len(response.tool_calls)
        activity = Activity.COMMAND if response.tool_calls else Activity.IDLE
        doing = self.masked(", ".join(act_words(call) for call in response.tool_calls))
        return [Change(budget=budget, activity=activity, doing=cut(doing, MAX_DOING))]

    def cost_of(self, response: ModelResponse) -> float:
        """Return the cost in US dollars by published prices; cached, because the lookup is slow."""
        if self._priced is None or self._priced[0] is not response:
            self._priced = response, cost(response)
        return self._priced[1]

    def act_ended(self) -> tuple[Change, ...]:
        """Note that a tool call of the turn is over; after the last one, the model continues."""
        self._running -= 1
        return () if self._running > 0 else (Change(activity=Activity.MODEL),)

    def _message_step(self, response: ModelResponse) -> Step:
        return Step(
            number=0,
            kind=StepKind.MESSAGE,
            request=self.requests,
            text=response.text or "",
            tokens=response.usage.total_tokens,
            cost_usd=self.cost_of(response),
        )

    # -- time and cadence ------------------------------------------------------------------

    def budget(self) -> Budget:
        """Return the budget used so far; waiting for a person does not count."""
        waiting = self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED
        now = self._seconds() if self._stopped is None else self._stopped
        minutes = 0.0 if waiting else (now - self._mark) / 60
        return spend(self.recorder.budget, minutes=minutes)

    def allowed_budget(self) -> Budget:
        """Return the budget with grants that are on their way to the worker."""
        return raise_limits(self.budget(), grants(self._due))

    def share_requests(self, plan: Plan) -> Plan:
        """Return the plan with the remaining requests newly shared among its open plan steps."""
        least = self.settings.plan.min_requests
        return share_requests(plan, self.recorder.budget.requests, least=least)

    def budget_line(self, plan: Plan | None = None, within: int | None = None) -> str:
        """Return what the worker is told about its budget: the numbers that the rules see.

        Args:
            plan: The plan as it is about to be, if it changes.
            within: The progress of the plan step in percent, if it is now being reported.
        """
        anew = plan is not None and plan.current != self.recorder.plan.current
        if within is None and not anew and self.recorder.checkpoints:
            within = self.recorder.checkpoints[-1][1].progress_percent
        return budget_line(
            self.recorder.budget,
            plan or self.recorder.plan,
            within,
            made=0 if anew else self.requests - self.recorder.plan_step_began,
            slack=self.settings.rules.budget_burn.slack,
        )

    async def all_of(self, kinds: Sequence[type[Record]]) -> list[Entry]:
        """Return all records of these kinds that the journal has for this attempt."""
        attempt = self.recorder.attempt.id
        found = self.recorder.journal.all_entries(attempt=attempt, kinds=kinds)
        return [entry async for entry in found]

    def pace(self) -> tuple[Change, ...]:
        """Return a change of the reminder interval after a checkpoint, if there is one."""
        before = self.interval
        interval = next_interval(
            before,
            is_steady=steady(
                [checkpoint for _, checkpoint in self.recorder.checkpoints],
                firing=bool(self.recorder.firing),
                min_gain=self.settings.rules.stalled_progress.min_gain,
                settings=self.settings.reflect,
            ),
            settings=self.settings.reflect,
        )
        return () if interval == before else (Change(reflect_every=interval),)

    @property
    def interval(self) -> int:
        """The current number of requests between two reminders."""
        said = self.recorder.reflect_every
        return self.settings.reflect.remind_every if said is None else said
