"""Answers the open escalations of a run: each becomes one decision and at most one intervention."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.records import kind_of
from midwatch_monitor.words import (
    Action,
    Commit,
    Decision,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Hint,
    Intervention,
    Record,
)
from midwatch_supervisor.calibrator import Calibrator
from midwatch_supervisor.decide import Supervisor
from midwatch_supervisor.dossier import Dossier
from midwatch_supervisor.policy import Standing, approval_needed

log = logging.getLogger(__name__)


class Supervision:
    """Follows the escalations of one run until it is told to stop.

    A question that was stored is answered: what is still open after a crash is found again.
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
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._tasks = tasks
        self._supervisors = supervisors
        self._clock = clock
        self._calibrator = Calibrator(journal)
        self._after = 0
        self._open: dict[int, Entry] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}

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
        while page := await self._journal.entries(self._after, run=self._run, kinds=(Escalation,)):
            for entry in page:
                self._sort(entry)
            self._after = page[-1].id
        for id, entry in self._open.items():
            if id not in self._answering:
                self._answering[id] = asyncio.create_task(self._answer(entry))
        for id in [id for id, task in self._answering.items() if task.done()]:
            del self._answering[id]

    def _sort(self, entry: Entry) -> None:
        if not isinstance(entry.record, Escalation):
            return
        if entry.record.state is EscalationState.OPEN:
            self._open[entry.record.id] = entry
        else:
            self._open.pop(entry.record.id, None)

    async def _answer(self, entry: Entry) -> None:
        escalation = entry.record
        if not isinstance(escalation, Escalation):
            return
        try:
            await self._decide(escalation, entry.task)
        except StaleIncarnationError as error:
            log.info("somebody else was first: %s", error)
        except Exception:  # the question stays open, and the next look asks again
            log.exception("escalation %d is not answered yet", escalation.id)

    async def _decide(self, escalation: Escalation, task: int) -> None:
        attempt = await self._journal.attempt(escalation.attempt)
        dossier = await Dossier.read(self._journal, attempt)
        spec = self._tasks[task]
        standing = self._standing(escalation, dossier, spec)
        case = await dossier.case(spec, await self._calibrator.calibration(attempt.model))
        decision = await self._supervisors[task].decide(case, dossier, standing)
        await self._write(task, attempt.id, self._answered(escalation, decision))

    def _standing(self, escalation: Escalation, dossier: Dossier, spec: TaskSpec) -> Standing:
        view = dossier.view
        asked = set(escalation.alerts)
        alerts = tuple(alert for key, alert in view.alerts.items() if key in asked)
        return Standing(
            escalation=escalation.id,
            alerts=alerts,
            interventions=dossier.tried,
            escalations=view.raised - 1,
            replans=sum(each.action is Action.REPLAN for each in dossier.tried),
            attempts_left=spec.max_attempts - dossier.attempt.number,
            policy=self._settings.policy,
        )

    def _answered(self, escalation: Escalation, decision: Decision) -> tuple[Record, ...]:
        if decision.action is Action.OBSERVE:
            closed = replace(escalation, state=EscalationState.CLOSED, reason="observed")
            return decision, closed
        intervention = Intervention(
            action=decision.action,
            by=decision.by,
            author=decision.author,
            message=decision.message,
            plan=decision.plan,
            escalation=escalation.id,
            answers=escalation.alerts,
            needs_approval=approval_needed(
                decision.action, self._settings.mode, self._settings.policy
            ),
        )
        return decision, intervention, replace(escalation, state=EscalationState.ANSWERED)

    async def _write(self, task: int, attempt: int, records: tuple[Record, ...]) -> None:
        now = self._clock()
        entries = await self._journal.commit(
            Commit(
                drafts=tuple(
                    Draft(record=record, at=now, task=task, attempt=attempt) for record in records
                )
            )
        )
        for entry in entries:
            self._bus.publish(
                Hint(
                    entry=entry.id,
                    kind=kind_of(type(entry.record)),
                    task=task,
                    attempt=attempt,
                )
            )
