"""One watched run of an agent: what it did goes to the recorder, what is due comes in.

The capability `Watch` forwards pydantic-ai's hooks to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.tools import RunContext

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import BudgetSpentError
from midwatch_monitor.recorder import Recorder, working
from midwatch_monitor.words import (
    Action,
    Activity,
    AttemptState,
    Budget,
    Change,
    Delivery,
    DeliveryState,
    Intervention,
    Lifecycle,
    Message,
    Record,
    Step,
    StepKind,
)
from midwatch_tools.cadence import next_interval, reminder_due, steady
from midwatch_tools.guidance import marked, reminder, spoken
from midwatch_tools.inbox import WAITS, Inbox
from midwatch_tools.observation import act_words, cut
from midwatch_tools.revision import change, with_remaining
from midwatch_tools.spending import exhausted, spend

_MAX_DOING = 200
"""Characters; what is being done is only shown."""


class Session:
    """The worker's side of the watch, for one run of one attempt."""

    def __init__(
        self,
        *,
        recorder: Recorder,
        inbox: Inbox,
        settings: Settings,
        saved: int,
        requests: int,
        seconds: Callable[[], float],
    ) -> None:
        self.recorder = recorder
        self.settings = settings
        self._inbox = inbox
        self.requests = requests
        """Model requests of this attempt that were answered, before a crash too."""
        self._saved = saved
        self._seconds = seconds
        self._mark = seconds()
        self._told: dict[int, Intervention] = {}
        self._running = 0

    # -- before a model request ------------------------------------------------------------

    async def before_request(self, ctx: RunContext[Any]) -> None:
        """Stop at a spent budget, wait where a person was asked, and say what is to be said."""
        if gone := exhausted(self.budget()):
            raise BudgetSpentError(f"out of budget: {gone}")
        due = await self._inbox.due()
        while (waits := _waits(due)) or self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED:
            due = await self._park(waits)
        for id, intervention in due:
            if intervention.action.spoken and id not in self._told:
                self._told[id] = intervention
                ctx.enqueue(spoken(id, intervention), priority="asap")
        self._remind(ctx)

    async def _park(
        self, waits: Sequence[tuple[int, Intervention]]
    ) -> tuple[tuple[int, Intervention], ...]:
        """Wait for a person; that time costs nothing and no rule counts it."""
        if waits:
            await self.recorder.record(
                *(self._delivered(id) for id, _ in waits),
                Change(
                    lifecycle=Lifecycle.INPUT_REQUIRED,
                    activity=Activity.WAITING,
                    budget=self.budget(),
                ),
                AttemptState(lifecycle=Lifecycle.INPUT_REQUIRED, reason=waits[-1][1].message),
            )
        due = await self._inbox.wait()
        await self.recorder.record(
            Change(lifecycle=Lifecycle.WORKING, activity=Activity.MODEL), working("answered")
        )
        self._mark = self._seconds()
        return due

    def _remind(self, ctx: RunContext[Any]) -> None:
        reported = [step.request for step, _ in self.recorder.checkpoints]
        if len(reported) >= self.settings.reflect.max_reflections:
            return  # `reflect` would refuse it
        last = max([self.recorder.plan_step_began, *reported])
        if reminder_due(self.requests + 1, last, self.interval):
            ctx.enqueue(reminder(self.requests - last), priority="asap")

    async def paused(self, seconds: float) -> None:
        """The provider lets the attempt wait; what follows says when that is over."""
        doing = f"asks again in {seconds:.0f} s"
        await self.recorder.record(Change(activity=Activity.RATE_LIMITED, doing=doing))

    # -- after a model request -------------------------------------------------------------

    async def after_request(self, messages: Sequence[ModelMessage]) -> None:
        """Append the history, with the stamps of what arrived in it and what it cost."""
        fresh = list(messages[self._saved :])
        if not fresh:
            return
        response = fresh[-1] if fresh and isinstance(fresh[-1], ModelResponse) else None
        records: list[Record] = self._arrived(fresh)
        if response is not None:
            self.requests += 1
            records += self._billed(response)
            if not response.tool_calls:
                records.append(self._said(response))
        await self._append(fresh, records)

    async def bring_along(self, messages: Sequence[ModelMessage]) -> None:
        """Store a conversation from before this attempt: nothing in it counts or costs here."""
        await self._append(messages[self._saved :], ())

    async def _append(self, fresh: Sequence[ModelMessage], records: Sequence[Record]) -> None:
        bodies = [
            Message(index=self._saved + n, body=ModelMessagesTypeAdapter.dump_json([message]))
            for n, message in enumerate(fresh)
        ]
        await self.recorder.record(*records, messages=bodies)
        self._saved += len(fresh)

    def _arrived(self, fresh: Sequence[ModelMessage]) -> list[Record]:
        records: list[Record] = []
        plan = self.recorder.plan
        for id in _marks(fresh):
            intervention = self._told.pop(id, None)
            if intervention is None:
                continue
            records.append(self._delivered(id))
            if intervention.action is Action.REPLAN:
                plan = with_remaining(plan, intervention.plan or plan.open_titles)
                records += [plan, change(plan)]
        return records

    def _billed(self, response: ModelResponse) -> list[Record]:
        budget = spend(
            self.budget(),
            requests=1,
            tokens=response.usage.total_tokens,
            cost_usd=cost(response),
        )
        self._mark = self._seconds()
        self._running = len(response.tool_calls)
        activity = Activity.COMMAND if response.tool_calls else Activity.IDLE
        doing = cut(", ".join(act_words(call) for call in response.tool_calls), _MAX_DOING)
        return [Change(budget=budget, activity=activity, doing=doing)]

    def act_ended(self) -> tuple[Change, ...]:
        """One tool call of the turn is over; with the last one the model is asked again."""
        self._running -= 1
        return () if self._running > 0 else (Change(activity=Activity.MODEL),)

    def _said(self, response: ModelResponse) -> Step:
        return Step(
            number=0,
            kind=StepKind.MESSAGE,
            request=self.requests,
            text=response.text or "",
            tokens=response.usage.total_tokens,
            cost_usd=cost(response),
        )

    def _delivered(self, id: int) -> Delivery:
        return Delivery(
            intervention=id, state=DeliveryState.DELIVERED, step=self.recorder.last_step
        )

    # -- time and cadence ------------------------------------------------------------------

    def budget(self) -> Budget:
        """What is used by this moment; waiting for a person is not work."""
        waiting = self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED
        minutes = 0.0 if waiting else (self._seconds() - self._mark) / 60
        return spend(self.recorder.budget, minutes=minutes)

    def pace(self) -> tuple[Change, ...]:
        """A change of the reminder interval after a checkpoint, if there is one."""
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
        """Requests between two reminders, as it is now."""
        said = self.recorder.reflect_every
        return self.settings.reflect.remind_every if said is None else said


def _waits(due: Sequence[tuple[int, Intervention]]) -> list[tuple[int, Intervention]]:
    return [(id, each) for id, each in due if each.action in WAITS]


def said_with(messages: Sequence[ModelMessage], call: ToolCallPart) -> ModelResponse | None:
    """The response that a call belongs to, if it is the first call in it: its text goes there."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            first = next(iter(message.tool_calls), None)
            same = first is not None and first.tool_call_id == call.tool_call_id
            return message if same else None
    return None


def cost(response: ModelResponse) -> float:
    """US dollars by the published prices; 0 for a model without one."""
    try:
        return float(response.cost().total_price)
    except (LookupError, AssertionError, ValueError):
        return 0.0


def _marks(messages: Sequence[ModelMessage]) -> list[int]:
    """The ids of the interventions whose text stands in the history now."""
    ids: list[int] = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                texts = [part.content] if isinstance(part.content, str) else part.content
                found = [marked(text) for text in texts if isinstance(text, str)]
                ids += [id for id in found if id is not None]
    return ids
