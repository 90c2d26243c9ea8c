"""Answers what is open in a run: escalations, what workers ask for, and questions left too long."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.guards import Guards, Unguarded
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.records import hint_of, kind_of
from midwatch_monitor.words import (
    Action,
    Alert,
    AlertKey,
    AttemptState,
    Commit,
    Decision,
    Delivery,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Intervention,
    Record,
    Spending,
    Task,
)
from midwatch_supervisor.agenda import KINDS, Agenda
from midwatch_supervisor.brief import Brief
from midwatch_supervisor.calibrator import Calibrator
from midwatch_supervisor.deadlines import Due, overdue
from midwatch_supervisor.decide import Supervisor
from midwatch_supervisor.dossier import Dossier
from midwatch_supervisor.history import History
from midwatch_supervisor.lookup import wanted_in
from midwatch_supervisor.petition import petition_in
from midwatch_supervisor.petitions import Plea, Ruled, by_policy
from midwatch_supervisor.policy import approval_needed

log = logging.getLogger(__name__)

_Answering = Callable[[Entry, int | None], Coroutine[Any, Any, None]]
"""Answers a question under a guard."""

_OVER = "the attempt is over"
_CLOSED = "the question is closed"
_RESOLVED = "what it answers has resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """Where things stand once a decision is made."""

    asked: Escalation
    over: bool
    """Whether the attempt has ended."""
    resolved: bool
    """Whether none of the alerts fires any more that the decision is about."""


class Supervision:
    """Follows what is open in one run until it is told to stop.

    What was stored is answered: what is still open after a crash is found again. It follows all of
    the run, and answers what its guards let it; what is answered after they have changed is refused
    by the journal, so that two who thought about one question give one answer.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        bus: Bus,
        settings: Settings,
        run: int,
        tasks: Mapping[int, TaskSpec],
        supervisors: Mapping[int, Supervisor],
        clock: Callable[[], datetime],
        guards: Guards | None = None,
        hire: Callable[[Task], Supervisor] | None = None,
        calibrator: Calibrator | None = None,
    ) -> None:
        """Decide with `supervisors`, by task, or with whom `hire` finds; else by the policy.

        Without guards, everything of the run is answered.
        """
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._tasks = tasks
        self._supervisors = supervisors
        self._clock = clock
        self._guards = guards or Unguarded()
        self._hire = hire
        self._hired: dict[int, Supervisor] = {}
        self._calibrator = calibrator or Calibrator(journal)
        self._after = 0
        self._began = clock()
        self._agenda = Agenda()
        self._answering: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._trouble = ""
        """Why it could not look the last time."""

    async def run(self) -> None:
        """Answer whatever is open, until cancelled."""
        try:
            async with self._bus.subscribe() as hints:
                while True:
                    await self._try_to_look()
                    await hints.wait(self._settings.monitor.poll_seconds)
        finally:
            for task in self._answering.values():
                task.cancel()
            await asyncio.gather(*self._answering.values(), return_exceptions=True)

    async def _try_to_look(self) -> None:
        try:
            await self._look()
        except Exception as error:  # the watch may fail; the work must not
            if str(error) != self._trouble:  # it tries twice a second, and an outage lasts
                known = isinstance(error, JournalError)
                log.warning(
                    "the supervisor failed to look and tries again: %s", error, exc_info=not known
                )
            self._trouble = str(error)
        else:
            self._trouble = ""

    async def settle(self) -> None:
        """Answer what is open now; each question is tried once."""
        await self._look()
        await asyncio.gather(*self._answering.values(), return_exceptions=True)

    async def _look(self) -> None:
        guards = self._guards.now()
        while page := await self._journal.entries(self._after, run=self._run, kinds=KINDS):
            for entry in page:
                self._agenda.take(entry)
            self._after = page[-1].id
        person = self._settings.policy.person
        for due in overdue(self._agenda, person, self._clock(), began=self._began):
            if guards.holds(due.attempt):
                late = self._in_time(due, guards.guard_of(due.attempt))
                await self._tried(("what is late of attempt", due.attempt), late)
        for id, entry in self._agenda.escalations.items():
            self._begin(("escalation", id), entry, self._decide, guards)
        for id, entry in self._agenda.petitions.items():
            self._begin(("petition", id), entry, self._rule, guards)
        for key in [key for key, task in self._answering.items() if task.done()]:
            del self._answering[key]

    def _begin(
        self, key: tuple[str, int], entry: Entry, answer: _Answering, guards: Guards
    ) -> None:
        if key in self._answering or entry.attempt is None or not guards.holds(entry.attempt):
            return
        work = answer(entry, guards.guard_of(entry.attempt))
        self._answering[key] = asyncio.create_task(self._tried(key, work))

    async def _tried(self, key: tuple[str, int], work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StaleIncarnationError as error:
            log.info("somebody else was first: %s", error)
        except Exception:  # the question stays open, and the next look asks again
            log.exception("%s %d is not answered yet", *key)

    async def _brief(self, task: int, attempt: int) -> Brief:
        """What is known of an attempt; tasks that came later are found in the journal."""
        spec = self._tasks.get(task) or wanted_in(await self._journal.task(task))
        return await Brief.read(
            self._journal, await self._journal.attempt(attempt), spec, self._settings
        )

    async def _supervisor(self, task: int) -> Supervisor:
        found = self._supervisors.get(task) or self._hired.get(task)
        if found is None and self._hire is not None:
            found = self._hired[task] = self._hire(await self._journal.task(task))
        return Supervisor(None, self._settings.supervisor) if found is None else found

    # -- escalations -----------------------------------------------------------------------

    async def _decide(self, entry: Entry, guard: int | None) -> None:
        escalation = entry.record
        if not isinstance(escalation, Escalation):
            return
        brief = await self._brief(entry.task, escalation.attempt)
        standing = brief.standing(escalation.id, escalation.alerts)
        model = brief.dossier.model
        case = await brief.case(standing, await self._calibrator.calibration(model))
        supervisor = await self._supervisor(entry.task)
        decided = await supervisor.decide(case, brief.dossier, standing)
        answer = await self._answered(escalation, decided.decision)
        extra = _extra(decided.spending, decided.fault)
        await self._write(entry.task, escalation.attempt, (*answer, *extra), guard)

    async def _answered(self, escalation: Escalation, decision: Decision) -> tuple[Record, ...]:
        """What becomes of a decision, by the state of the attempt now that it is made."""
        now = await self._state_of(escalation)
        asked, wide_open = now.asked, now.asked.state is EscalationState.OPEN
        why = _refusal(now)
        if why:
            refused = replace(decision, refused=why)
            closed = replace(asked, state=EscalationState.CLOSED, reason=why)
            return (refused, closed) if wide_open else (refused,)
        if decision.action is Action.OBSERVE:
            return decision, replace(asked, state=EscalationState.CLOSED, reason="observed")
        intervention = Intervention(
            action=decision.action,
            by=decision.by,
            author=decision.author,
            message=decision.message,
            plan=decision.plan,
            terms=decision.terms,
            diagnosis=decision.diagnosis,
            escalation=escalation.id,
            answers=escalation.alerts,
            needs_approval=approval_needed(
                decision.action, self._settings.mode, self._settings.policy
            ),
        )
        return decision, intervention, replace(asked, state=EscalationState.ANSWERED)

    async def _state_of(self, escalation: Escalation) -> _Now:
        """Where the attempt and the escalation stand; alarms may have joined it meanwhile."""
        asked, over = escalation, False
        firing: set[AlertKey] = set()
        for record in await self._told(escalation.attempt, AttemptState, Escalation, Alert):
            if isinstance(record, AttemptState):
                over = record.lifecycle.over
            elif isinstance(record, Alert):
                (firing.add if record.firing else firing.discard)(record.key)
            elif isinstance(record, Escalation) and record.id == escalation.id:
                asked = record
        # What joined meanwhile was not before the model: it is asked about next.
        resolved = not asked.silent and not firing.intersection(escalation.alerts)
        return _Now(asked=asked, over=over, resolved=resolved)

    async def _told(self, attempt: int, *kinds: type[Record]) -> list[Record]:
        """All that the journal says of an attempt, of some kinds."""
        records: list[Record] = []
        after = 0
        while page := await self._journal.entries(after, attempt=attempt, kinds=kinds):
            records += [entry.record for entry in page]
            after = page[-1].id
        return records

    # -- what workers ask for --------------------------------------------------------------

    async def _rule(self, entry: Entry, guard: int | None) -> None:
        petition = petition_in(entry.record)
        if petition is None or entry.attempt is None:
            return
        brief = await self._brief(entry.task, entry.attempt)
        if brief.dossier.view.over or brief.history.answered(entry.id):
            return
        standing = brief.standing(0, (alert.key for alert in brief.firing))
        plea = brief.plea(entry.id, petition)
        ruled = by_policy(plea, standing)
        if self._settings.mode is not Mode.OFF:
            case = await brief.case(standing)
            supervisor = await self._supervisor(entry.task)
            ruled = await supervisor.rule(plea, case, brief.dossier, standing)
        extra = _extra(ruled.spending, ruled.fault)
        if await self._settled(entry):  # by an operator or its end, while the model thought
            await self._write(entry.task, entry.attempt, extra, guard)
            return
        act = ruled.intervention(plea, needs_approval=self._held(plea, ruled))
        await self._write(entry.task, entry.attempt, (act, *extra), guard)

    async def _settled(self, entry: Entry) -> bool:
        """Whether a petition needs no answer any more."""
        later = await History.read(self._journal, entry.task)
        states = await self._told(entry.attempt or 0, AttemptState)
        ended = any(isinstance(each, AttemptState) and each.lifecycle.over for each in states)
        return ended or later.answered(entry.id)

    def _held(self, plea: Plea, ruled: Ruled) -> bool:
        """Whether a person must approve an answer; not one that follows from their own refusal."""
        if plea.turned_down is not None or self._settings.mode is Mode.OFF:
            return False
        action = ruled.intervention(plea, needs_approval=False).action
        return approval_needed(action, self._settings.mode, self._settings.policy)

    # -- what nobody answered in time ------------------------------------------------------

    async def _in_time(self, due: Due, guard: int | None) -> None:
        record = due.record
        if isinstance(record, Delivery):
            dossier = await Dossier.read(self._journal, await self._journal.attempt(due.attempt))
            record = replace(record, step=dossier.view.last_step)
        await self._write(due.task, due.attempt, (record,), guard)
        log.info("attempt %d: %s", due.attempt, kind_of(type(record)))

    async def _write(
        self, task: int, attempt: int, records: tuple[Record, ...], guard: int | None
    ) -> None:
        if not records:
            return
        now = self._clock()
        entries = await self._journal.commit(
            Commit(
                drafts=tuple(
                    Draft(record=record, at=now, task=task, attempt=attempt) for record in records
                ),
                guard=guard,
            )
        )
        for entry in entries:
            self._bus.publish(hint_of(entry))


def _refusal(now: _Now) -> str:
    """Why a decision comes too late; empty where it does not."""
    if now.over:
        return _OVER
    if now.asked.state is not EscalationState.OPEN:
        return _CLOSED
    return _RESOLVED if now.resolved else ""


def _extra(spending: Spending | None, fault: Fault | None) -> tuple[Record, ...]:
    """What stands beside an answer: what it took, and what was wrong with it."""
    return tuple(record for record in (spending, fault) if record is not None)
