"""One attempt from its start to its end: the worker works, and whoever may end it is heard."""

import asyncio
import logging
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from midwatch_agents.leftovers import end_leftovers
from midwatch_agents.prompt import Past, opening
from midwatch_agents.sandbox import MARK, place
from midwatch_agents.worker import Station, Worker
from midwatch_monitor.errors import (
    BudgetSpentError,
    MidwatchError,
    StaleIncarnationError,
    WorkerError,
)
from midwatch_monitor.recorder import Recorder, working
from midwatch_monitor.words import (
    Acceptance,
    Action,
    Activity,
    Attempt,
    AttemptState,
    Budget,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Fault,
    Intervention,
    Lifecycle,
    Meter,
    Plan,
    PlanStep,
    Record,
)
from midwatch_supervisor.acceptance import check_all, summary
from midwatch_supervisor.assignment import Assignment
from midwatch_supervisor.deck import Deck
from midwatch_supervisor.workspace import Ground, keep
from midwatch_tools import Watch
from midwatch_tools.guidance import outline
from midwatch_tools.inbox import Inbox
from midwatch_tools.spending import exhausted

log = logging.getLogger(__name__)

_LIFECYCLES = {
    Ending.DONE: Lifecycle.COMPLETED,
    Ending.CANCELED: Lifecycle.CANCELED,
}
"""All other endings are failures of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended."""

    ending: Ending
    reason: str
    checks: tuple[Acceptance, ...] = ()
    stamps: tuple[Delivery, ...] = ()
    """Of the interventions that ended it."""

    @property
    def lifecycle(self) -> Lifecycle:
        """The attempt's lifecycle with this ending."""
        return _LIFECYCLES.get(self.ending, Lifecycle.FAILED)

    @property
    def passed(self) -> int:
        """How many acceptance checks passed."""
        return sum(check.passed for check in self.checks)


@dataclass(slots=True, kw_only=True)
class Attendance:
    """Attends one attempt. It holds the worker's task and the means to cancel it."""

    deck: Deck
    assignment: Assignment
    attempt: Attempt
    ground: Ground
    worker: Worker
    past: tuple[Past, ...] = ()
    spent: Budget = field(default_factory=Budget)
    """What earlier attempts of the task used."""
    recorder: Recorder | None = None
    """The attempt's voice, once it is attended."""
    inbox: Inbox | None = None

    @property
    def parked(self) -> bool:
        """Whether the attempt waits for a person who has not spoken yet."""
        if self.recorder is None or self.inbox is None or self.inbox.answered:
            return False
        return self.recorder.lifecycle is Lifecycle.INPUT_REQUIRED

    async def attend(self) -> Ended:
        """Run the attempt, or go on with it, until it has ended; the end is in the journal.

        Cancelling this leaves the attempt as it is, to be resumed.
        """
        recorder = self.recorder = await self._claim()
        await end_leftovers(self._mark)  # of a process that was killed
        if recorder.lifecycle is Lifecycle.SUBMITTED:
            await recorder.record(*self._beginning())
        elif recorder.lifecycle is Lifecycle.WORKING:
            # It goes on after a break: that time was no silence.
            await recorder.record(Change(lifecycle=Lifecycle.WORKING))
        watch = Watch(
            root=self.ground.folder,
            settings=self.deck.settings,
            recorder=recorder,
            bus=self.deck.bus,
            clock=self.deck.clock,
        )
        work = asyncio.create_task(self._work(watch, outline(recorder.plan)))
        try:
            ended = await self._until_ended(work, watch, recorder)
        except StaleIncarnationError:
            await self._gone(work)  # and what bears the mark now is the other process's
            raise
        except BaseException:
            await self._gone(work)
            await end_leftovers(self._mark)
            raise
        abandoned = not await self._gone(work)
        await end_leftovers(self._mark)
        await self._close(ended, recorder, abandoned=abandoned)
        return ended

    @property
    def _mark(self) -> str:
        # Numbers would be the same for the first attempt of every journal on the machine.
        return str(self.ground.folder)

    async def _claim(self) -> Recorder:
        return await Recorder.claim(
            journal=self.deck.journal,
            bus=self.deck.bus,
            attempt=self.attempt,
            settings=self.deck.settings,
            holder=self.deck.holder,
            clock=self.deck.clock,
        )

    def _beginning(self) -> tuple[Record, ...]:
        task = self.assignment.task
        titles = [each.title for each in task.plan if not isinstance(each, str)] or [task.label]
        plan = Plan(steps=tuple(PlanStep(title=title) for title in titles))
        limits = task.budget
        budget = Budget(
            requests=Meter(used=self.spent.requests.used, limit=limits.requests),
            tokens=Meter(used=self.spent.tokens.used, limit=limits.tokens),
            cost_usd=Meter(used=self.spent.cost_usd.used, limit=limits.cost_usd),
            minutes=Meter(used=self.spent.minutes.used, limit=limits.minutes),
        )
        circumstances = Change(
            reflect=True,
            reflect_every=self.deck.settings.reflect.remind_every,
            plan_step=plan.current,
            plan_steps=len(plan.steps),
            revision=0,
            lifecycle=Lifecycle.WORKING,
            budget=budget,
        )
        return working(), plan, circumstances

    async def _work(self, watch: Watch, plan: str) -> Ended:
        """The worker's work and the acceptance checks after it."""
        try:
            await self.worker.run(
                opening(
                    self.assignment.task,
                    plan,
                    number=self.attempt.number,
                    past=self.past,
                ),
                station=Station(
                    folder=self.ground.folder,
                    walls=self.deck.walls,
                    network=self.deck.settings.run.network,
                    mark=self._mark,
                ),
                watch=watch,
                history=await self._history(),
            )
        except BudgetSpentError as error:
            return Ended(ending=Ending.OUT_OF_BUDGET, reason=str(error))
        except WorkerError as error:
            return Ended(ending=Ending.ERROR, reason=str(error))
        return await self._accept()

    async def _history(self) -> list[ModelMessage]:
        messages = await self.deck.journal.messages(self.attempt.id)
        return [
            message
            for each in messages
            for message in ModelMessagesTypeAdapter.validate_json(each.body)
        ]

    async def _accept(self) -> Ended:
        settings = self.deck.settings.run
        if self.recorder is not None:
            doing = "the acceptance checks"
            await self.recorder.record(Change(activity=Activity.COMMAND, doing=doing))
        workspace = place(
            self.ground.folder,
            self.deck.walls,
            network=settings.network,
            env={MARK: self._mark},
        )
        checks = await check_all(
            self.assignment.task.acceptance, workspace, seconds=settings.check_seconds
        )
        failing = summary(checks)
        if failing:
            return Ended(
                ending=Ending.UNACCEPTED, reason=f"acceptance failed: {failing}", checks=checks
            )
        return Ended(ending=Ending.DONE, reason="every acceptance check passed", checks=checks)

    async def _until_ended(
        self, work: "asyncio.Task[Ended]", watch: Watch, recorder: Recorder
    ) -> Ended:
        """Wait for the work, or for what ends it at once."""
        inbox = Inbox(
            self.deck.journal,
            self.deck.bus,
            self.attempt.id,
            poll_seconds=self.deck.settings.monitor.poll_seconds,
        )
        async with self.deck.bus.subscribe() as hints:
            while True:
                ended = _ordered_end(await inbox.due(), recorder.last_step)
                self.inbox = inbox
                ended = ended or _overtime(watch.budget())
                if ended is not None:
                    return ended
                heard = asyncio.create_task(hints.wait(self.deck.settings.monitor.poll_seconds))
                await asyncio.wait({work, heard}, return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                if work.done():
                    return _result(work)
                if not heard.result():
                    await recorder.record()  # refused if another process has taken it over

    async def _gone(self, work: "asyncio.Task[Ended]") -> bool:
        """Cancel the work if it still runs; answers whether it has really ended."""
        if work.done():
            return True
        work.cancel()
        _, pending = await asyncio.wait({work}, timeout=self.deck.settings.run.grace_seconds)
        return not pending

    async def _close(self, ended: Ended, recorder: Recorder, *, abandoned: bool) -> None:
        """Store the end. A worker that does not let go loses its voice first."""
        more: tuple[Record, ...] = (*ended.checks, *ended.stamps)
        if abandoned:
            recorder = await self._claim()
            more = (*more, Fault(part="worker", error="it did not end when it was cancelled"))
        if ended.ending is Ending.DONE:
            await self._keep()
        state = AttemptState(lifecycle=ended.lifecycle, reason=ended.reason, ending=ended.ending)
        await recorder.end(state, *more)

    async def _keep(self) -> None:
        try:
            await keep(
                self.ground,
                f"{self.assignment.task.label}\n\nBy Midwatch, attempt "
                f"{self.attempt.number} of {self.assignment.task.id}.",
            )
        except MidwatchError:
            log.exception("the work stays uncommitted in %s", self.ground.folder)


def _result(work: "asyncio.Task[Ended]") -> Ended:
    """What the work came to; an error that nobody expected is a reason too.

    Raises StaleIncarnationError where the work was refused: then the end is another's to store.
    """
    if work.cancelled():
        return Ended(ending=Ending.ERROR, reason="the worker's task was cancelled from within")
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, StaleIncarnationError):
        raise error
    log.error("an attempt failed", exc_info=error)
    return Ended(ending=Ending.ERROR, reason=f"{type(error).__name__}: {error}")


def _ordered_end(due: tuple[tuple[int, Intervention], ...], step: int) -> Ended | None:
    """The end that an intervention asks for; the strongest wins, and all are stamped."""
    orders = [(id, each) for id, each in due if each.action.at_once]
    if not orders:
        return None
    stop = next((each for _, each in orders if each.action is Action.STOP), None)
    chosen = stop or orders[-1][1]
    ending = Ending.STUCK if stop else Ending.RESTARTED
    return Ended(
        ending=ending,
        reason=f"{chosen.action} by {chosen.by}" + (chosen.message and f": {chosen.message}"),
        stamps=tuple(
            Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step) for id, _ in orders
        ),
    )


def _overtime(budget: Budget | None) -> Ended | None:
    """The end of an attempt that hangs beyond its minutes."""
    if budget is None or not budget.minutes.spent:
        return None
    gone = exhausted(Budget(minutes=budget.minutes))
    return Ended(ending=Ending.OUT_OF_BUDGET, reason=f"out of budget: {gone}")
