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
from midwatch_monitor.errors import StaleIncarnationError
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
)
from midwatch_supervisor.agenda import KINDS, Agenda
from midwatch_supervisor.brief import Brief
from midwatch_supervisor.calibrator import Calibrator
from midwatch_supervisor.deadlines import Due, overdue
from midwatch_supervisor.decide import Supervisor
from midwatch_supervisor.dossier import Dossier
from midwatch_supervisor.history import History
from midwatch_supervisor.lookup import assignment_of
from midwatch_supervisor.petition import petition_in
from midwatch_supervisor.petitions import Plea, Ruled, by_policy
from midwatch_supervisor.policy import approval_needed

log = logging.getLogger(__name__)

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

    What was stored is answered: what is still open after a crash is found again.
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
    ) -> None:
        """Decide with `supervisors`, by task; without one of its own, by the policy."""
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._tasks = tasks
        self._supervisors = supervisors
        self._clock = clock
        self._calibrator = Calibrator(journal)
        self._after = 0
        self._began = clock()
        self._agenda = Agenda()
        self._answering: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Answer whatever is open, until cancelled."""
        try:
            async with self._bus.subscribe() as hints:
                while True:
                    try:
                        await self._look()
                    except Exception:  # the watch may fail; the work must not
                        log.exception("the supervisor failed to look and tries again")
                    await hints.wait(self._settings.monitor.poll_seconds)
        finally:
            for task in self._answering.values():
                task.cancel()
            await asyncio.gather(*self._answering.values(), return_exceptions=True)

    async def _look(self) -> None:
        while page := await self._journal.entries(self._after, run=self._run, kinds=KINDS):
            for entry in page:
                self._agenda.take(entry)
            self._after = page[-1].id
        person = self._settings.policy.person
        for due in overdue(self._agenda, person, self._clock(), began=self._began):
            await self._in_time(due)
        for id, entry in self._agenda.escalations.items():
            self._begin(("escalation", id), entry, self._decide)
        for id, entry in self._agenda.petitions.items():
            self._begin(("petition", id), entry, self._rule)
        for key in [key for key, task in self._answering.items() if task.done()]:
            del self._answering[key]

    def _begin(
        self,
        key: tuple[str, int],
        entry: Entry,
        answer: Callable[[Entry], Coroutine[Any, Any, None]],
    ) -> None:
        if key not in self._answering:
            self._answering[key] = asyncio.create_task(self._tried(key, entry, answer))

    async def _tried(
        self,
        key: tuple[str, int],
        entry: Entry,
        answer: Callable[[Entry], Coroutine[Any, Any, None]],
    ) -> None:
        try:
            await answer(entry)
        except StaleIncarnationError as error:
            log.info("somebody else was first: %s", error)
        except Exception:  # the question stays open, and the next look asks again
            log.exception("%s %d is not answered yet", *key)

    async def _brief(self, task: int, attempt: int) -> Brief:
        """What is known of an attempt; tasks that came later are found in the journal."""
        spec = self._tasks.get(task)
        if spec is None:
            assignment = assignment_of(await self._journal.task(task))
            if assignment is None:
                raise LookupError(f"nothing says what task {task} wants")
            spec = assignment.task
        return await Brief.read(
            self._journal, await self._journal.attempt(attempt), spec, self._settings
        )

    def _supervisor(self, task: int) -> Supervisor:
        found = self._supervisors.get(task)
        return Supervisor(None, self._settings.supervisor) if found is None else found

    # -- escalations -----------------------------------------------------------------------

    async def _decide(self, entry: Entry) -> None:
        escalation = entry.record
        if not isinstance(escalation, Escalation):
            return
        brief = await self._brief(entry.task, escalation.attempt)
        standing = brief.standing(escalation.id, escalation.alerts)
        model = brief.dossier.model
        case = await brief.case(standing, await self._calibrator.calibration(model))
        decided = await self._supervisor(entry.task).decide(case, brief.dossier, standing)
        answer = await self._answered(escalation, decided.decision)
        extra = _extra(decided.spending, decided.fault)
        await self._write(entry.task, escalation.attempt, (*answer, *extra))

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

    async def _rule(self, entry: Entry) -> None:
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
            supervisor = self._supervisor(entry.task)
            ruled = await supervisor.rule(plea, case, brief.dossier, standing)
        extra = _extra(ruled.spending, ruled.fault)
        if await self._settled(entry):  # by an operator or its end, while the model thought
            await self._write(entry.task, entry.attempt, extra)
            return
        act = ruled.intervention(plea, needs_approval=self._held(plea, ruled))
        await self._write(entry.task, entry.attempt, (act, *extra))

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

    async def _in_time(self, due: Due) -> None:
        record = due.record
        if isinstance(record, Delivery):
            dossier = await Dossier.read(self._journal, await self._journal.attempt(due.attempt))
            record = replace(record, step=dossier.view.last_step)
        await self._write(due.task, due.attempt, (record,))
        log.info("attempt %d: %s", due.attempt, kind_of(type(record)))

    async def _write(self, task: int, attempt: int, records: tuple[Record, ...]) -> None:
        if not records:
            return
        now = self._clock()
        entries = await self._journal.commit(
            Commit(
                drafts=tuple(
                    Draft(record=record, at=now, task=task, attempt=attempt) for record in records
                )
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
