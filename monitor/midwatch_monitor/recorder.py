"""Records what is observed about an attempt: numbers, judges, commits and announces it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Self

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Alert,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Commit,
    Draft,
    Entry,
    Health,
    Lifecycle,
    Message,
    Outage,
    Plan,
    Record,
    Result,
    Step,
    StepKind,
)

Before = Callable[[Sequence[Record], Sequence[Result]], Awaitable[None]]
"""Awaited with the records and results that are about to be committed."""

_SOON_SECONDS = 0.5
"""How long a record that is not urgent waits, at most, to be committed with others."""


class Recorder:
    """The only writer of an attempt's current incarnation.

    It alone assigns `seq` and step numbers, and writes the alerts of event rules. It judges before
    it awaits anything, so that parallel calls in one turn keep their order.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        bus: Bus,
        attempt: Attempt,
        incarnation: int,
        judge: Judge | None,
        clock: Clock,
    ) -> None:
        self.attempt = attempt
        self.journal = journal
        self.bus = bus
        self.clock = clock
        self.plan = Plan(steps=())
        self.budget = Budget()
        self.lifecycle = Lifecycle.SUBMITTED
        self.outage: Outage | None = None
        """The provider's outage that the attempt is waiting out, or `None`."""
        self.last_step = 0
        self.last_request = 0
        self.reflect_every: int | None = None
        """The reminder interval in force; `None` until one is recorded."""
        self.plan_step_began = 0
        """The last model request before the current plan step."""
        self.checkpoints: list[tuple[Step, Checkpoint]] = []
        """Checkpoints of the current plan step, oldest first."""
        self.listeners: list[Callable[[Sequence[Entry]], None]] = []
        """Called with the entries of every commit, in the order of the journal."""
        self.before: Before | None = None
        """Awaited before every commit; in a fleet it saves the attempt's files first."""
        self._judge = judge
        self.incarnation = incarnation
        """Incarnation of its commits; refused once another process has claimed the attempt."""
        self._seq = 0
        self._calls: set[tuple[int, str]] = set()
        self._waiting: tuple[Draft, ...] = ()
        """Drafts that are judged and numbered, but not committed yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._failed: JournalError | StaleIncarnationError | None = None
        self._masked = journal.masker.record

    @classmethod
    async def claim(
        cls,
        *,
        journal: Journal,
        bus: Bus,
        attempt: Attempt,
        settings: Settings,
        holder: str,
        clock: Clock,
    ) -> Self:
        """Claim an attempt under a new incarnation, and rebuild its state from the journal."""
        incarnation = await journal.claim(attempt.id, holder=holder, at=clock())
        judge = None if settings.mode is Mode.OFF else Judge(settings.rules, worker=attempt.worker)
        recorder = cls(
            journal=journal,
            bus=bus,
            attempt=attempt,
            incarnation=incarnation,
            judge=judge,
            clock=clock,
        )
        await recorder._rebuild()
        return recorder

    async def _rebuild(self) -> None:
        async for entry in self.journal.all_entries(attempt=self.attempt.id):
            self._seq = max(self._seq, entry.seq or 0)
            self._restore_record(entry.record)

    def _restore_record(self, record: Record) -> None:
        if isinstance(record, Step):
            self._take_step(record)
        elif isinstance(record, Change):
            self._take_change(record)
        else:
            self._take_state(record)
            return
        if self._judge is not None:
            self._judge.observe(record)

    def _take_state(self, record: Record) -> None:
        if isinstance(record, Plan):
            self.plan = record
        elif isinstance(record, AttemptTransition):
            self.lifecycle = record.lifecycle

    @property
    def firing(self) -> tuple[Alert, ...]:
        """Alerts that fire now."""
        return () if self._judge is None else self._judge.firing

    @property
    def health(self) -> Health:
        """Health of the attempt, by its alerts."""
        return Health.NOT_JUDGED if self._judge is None else self._judge.health

    def knows(self, call: str, *, request: int) -> bool:
        """Return whether a call of a model request was recorded, by any incarnation.

        Some providers reuse the ids of calls in later turns.
        """
        return bool(call) and (request, call) in self._calls

    async def record(
        self,
        *records: Record,
        at: datetime | None = None,
        messages: Sequence[Message] = (),
        results: Sequence[Result] = (),
    ) -> tuple[Entry, ...]:
        """Judge the events among the records, and commit everything in one commit.

        Steps are numbered here. Entries have the time `at` (default: now), but events of the past
        have their own. Raises StaleIncarnationError if another process has taken the
        attempt over, and JournalError if the journal cannot be written.
        """
        if self.before is not None:
            await self.before(records, results)
        drafts = (*self._take_waiting(), *self._drafts(records, at or self.clock()))
        entries = await self.journal.commit(
            Commit(
                drafts=drafts,
                attempt=self.attempt.id,
                incarnation=self.incarnation,
                messages=tuple(messages),
                results=tuple(results),
            )
        )
        for listener in self.listeners:
            listener(entries)
        publish = self.bus.publish
        for entry in entries:
            publish(hint_of(entry))
        return entries

    def record_soon(self, *records: Record) -> bool:
        """Judge records now, and commit them with the next ones or after half a second.

        Only for an attempt that cannot be resumed: a crash may lose the records. Returns whether
        there is an alert among them. Raises the error of an earlier delayed commit.
        """
        if self._failed is not None:
            raise self._failed
        drafts = self._drafts(records, self.clock())
        self._waiting += drafts
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_SOON_SECONDS, self._begin_to_commit)
        return any(isinstance(draft.record, Alert) for draft in drafts)

    def _begin_to_commit(self) -> None:
        self._committing = asyncio.ensure_future(self._commit_waiting())

    async def _commit_waiting(self) -> None:
        if not self._waiting:
            return
        try:
            await self.record()
        except (JournalError, StaleIncarnationError) as error:  # `record_soon` raises it later
            self._failed = error

    def _take_waiting(self) -> tuple[Draft, ...]:
        """Return the waiting drafts, and cancel their timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._waiting = self._waiting, ()
        return taken

    async def end(
        self, state: AttemptTransition, *more: Record, at: datetime | None = None
    ) -> None:
        """Close the attempt, by default now, and resolve its open alerts."""
        at = at or self.clock()
        alerts = () if self._judge is None else self._judge.end(at).alerts
        await self.record(*alerts, *more, state, at=at)

    def _drafts(self, records: Sequence[Record], now: datetime) -> tuple[Draft, ...]:
        """Return the records in order, each followed by the alerts and faults of the rules."""
        task, attempt = self.attempt.task, self.attempt.id
        drafts: list[Draft] = []
        for record in records:
            at = record.at if isinstance(record, Step | Change) else None
            at = now if at is None or at > now else at
            for each in self._judge_record(record, now):
                self._seq += 1
                drafts.append(Draft(record=each, at=at, task=task, attempt=attempt, seq=self._seq))
        return tuple(drafts)

    def _judge_record(self, record: Record, now: datetime) -> tuple[Record, ...]:
        """Return the record, masked and numbered, with the alerts and faults of the rules."""
        record = self._masked(record)
        if isinstance(record, Step):
            event = self._number_step(record, now)
            self._take_step(event)
        elif isinstance(record, Change):
            event = record if record.at is not None else replace(record, at=now)
            self._take_change(event)
        else:
            self._take_state(record)
            return (record,)
        if self._judge is None:
            return (event,)
        judgement = self._judge.observe(event)
        if judgement.alerts or judgement.faults:
            return (event, *judgement.alerts, *judgement.faults)
        return (event,)

    def _number_step(self, step: Step, now: datetime) -> Step:
        number, at = self.last_step + 1, step.at or now
        if step.number == number and step.at is at:
            return step  # copying is expensive
        return replace(step, number=number, at=at)

    def _take_step(self, step: Step) -> None:
        self.last_step = step.number
        self.last_request = max(self.last_request, step.request)
        if step.call:
            self._calls.add((step.request, step.call))
        if step.kind is StepKind.CHECKPOINT and step.checkpoint is not None:
            self.checkpoints.append((step, step.checkpoint))

    def _take_change(self, change: Change) -> None:
        self.budget = change.budget or self.budget
        if change.outage is not None:
            self.outage = None if change.outage.over else change.outage
        if change.reflect_every is not None:
            self.reflect_every = change.reflect_every
        if change.plan_step is not None or change.revision is not None:
            self.checkpoints.clear()
            self.plan_step_began = self.last_request


def working_transition(reason: str = "") -> AttemptTransition:
    """Return the transition of an attempt that begins or continues."""
    return AttemptTransition(lifecycle=Lifecycle.WORKING, reason=reason)
