"""The monitor's loop: what only time and the whole attempt can show.

It follows the journal, opens escalations, lets alarms join them, and judges outcomes. It wakes on
hints, asks the journal by itself, and looks at everything on its tick.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.escalation import joining, question
from midwatch_monitor.journal import Journal
from midwatch_monitor.standing import Standing
from midwatch_monitor.words import (
    AlertKey,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Hint,
    Lifecycle,
    OutcomeReport,
    Record,
)

log = logging.getLogger(__name__)


class Monitor:
    """Looks after the attempts of one run until it is told to stop."""

    def __init__(
        self,
        *,
        journal: Journal,
        bus: Bus,
        settings: Settings,
        run: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._clock = clock
        self._after = 0
        self._standings: dict[int, Standing] = {}
        self._looking = asyncio.Lock()
        self.fault: Fault | None = None
        """The last failure of the monitor itself; the work goes on without it."""

    def standing(self, attempt: int) -> Standing | None:
        """Where an attempt stands, as far as the journal has been read."""
        return self._standings.get(attempt)

    async def run(self) -> None:
        """Look whenever the journal may have grown, until cancelled."""
        loop = asyncio.get_running_loop()
        last_tick = loop.time()
        async with self._bus.subscribe() as hints:
            while True:
                full = loop.time() - last_tick >= self._settings.monitor.tick_seconds
                last_tick = loop.time() if full else last_tick
                try:
                    await self.look(everything=full)
                except Exception as error:  # the watch may fail; the work must not
                    self.fault = Fault(part="monitor", error=f"{type(error).__name__}: {error}")
                    log.exception("the monitor failed and tries again")
                await hints.wait(self._settings.monitor.poll_seconds)

    async def look(self, *, everything: bool = False) -> None:
        """Read what is new and act on it, until nothing new is left."""
        async with self._looking:
            touched: set[int] = set(self._standings) if everything else set()
            while True:
                touched |= await self._read()
                if not touched:
                    return
                for attempt in sorted(touched):
                    await self._review(self._standings[attempt])
                touched.clear()

    async def _read(self) -> set[int]:
        touched: set[int] = set()
        while page := await self._journal.entries(self._after, run=self._run):
            for entry in page:
                if entry.attempt is not None:
                    self._fold(entry, entry.attempt)
                    touched.add(entry.attempt)
            self._after = page[-1].id
        return touched

    def _fold(self, entry: Entry, attempt: int) -> None:
        standing = self._standings.get(attempt)
        if standing is None:
            standing = Standing(attempt=attempt, task=entry.task)
            self._standings[attempt] = standing
            self._hand_over(standing)
        standing.fold(entry)

    def _hand_over(self, successor: Standing) -> None:
        """A restart is judged on the attempt that it made."""
        for standing in self._standings.values():
            if standing.task != successor.task or standing is successor:
                continue
            if standing.restart is not None:
                id, intervention = standing.restart
                successor.done[id] = (intervention, None)
                successor.begin_trial(id, intervention.answers, fresh=True)
                del standing.done[id]

    async def _review(self, standing: Standing) -> None:
        reports = standing.due_outcomes(after=self._settings.monitor.outcome_after)
        if reports:
            await self._write(standing, *reports, *self._closing(standing, reports))
        elif standing.over:
            await self._tidy(standing)
        elif standing.stranded is not None:
            await self._write(standing, _closed(standing.stranded, "its intervention was refused"))
        else:
            await self._escalate(standing)

    def _closing(
        self, standing: Standing, reports: tuple[OutcomeReport, ...]
    ) -> tuple[Escalation, ...]:
        """The escalation ends with the outcome of the intervention that answered it."""
        open_one = standing.escalation
        if open_one is None or open_one.state is not EscalationState.ANSWERED:
            return ()
        judged = {report.intervention for report in reports}
        answers = {id for id, (each, _) in standing.done.items() if each.escalation == open_one.id}
        return (_closed(open_one, reports[-1].reason),) if judged & answers else ()

    async def _tidy(self, standing: Standing) -> None:
        """After an attempt's end nothing stays open."""
        late = [
            Delivery(intervention=id, state=DeliveryState.EXPIRED, step=standing.last_step)
            for id in standing.issued
        ]
        open_one = standing.escalation
        closing = [] if open_one is None else [_closed(open_one, "the attempt is over")]
        if late or closing:
            await self._write(standing, *late, *closing)

    async def _escalate(self, standing: Standing) -> None:
        if self._settings.mode is Mode.OFF or standing.lifecycle is not Lifecycle.WORKING:
            return
        alerts = standing.alerts.values()
        if standing.escalation is not None:
            more = joining(alerts, standing.escalation.alerts)
            if more and standing.escalation.state is EscalationState.OPEN:
                await self._write(standing, _joined(standing.escalation, more))
            return
        keys = question(
            alerts,
            standing.quiet,
            step=standing.last_step,
            cooldown=self._settings.supervisor.cooldown,
            cap=self._settings.policy.max_escalations,
        )
        if not keys:
            return
        opened = await self._journal.open_escalation(
            attempt=standing.attempt,
            task=standing.task,
            alerts=keys,
            reason=", ".join(key.rule for key in keys),
            at=self._clock(),
        )
        if opened is not None:
            self._hint(standing, opened)

    async def _write(self, standing: Standing, *records: Record) -> None:
        now = self._clock()
        await self._journal.commit(
            Commit(
                drafts=tuple(
                    Draft(record=record, at=now, task=standing.task, attempt=standing.attempt)
                    for record in records
                )
            )
        )
        for record in records:
            self._hint(standing, record)

    def _hint(self, standing: Standing, record: Record) -> None:
        self._bus.publish(
            Hint(
                entry=self._after,
                kind=type(record).__name__.lower(),
                task=standing.task,
                attempt=standing.attempt,
            )
        )


def _closed(escalation: Escalation, reason: str) -> Escalation:
    return replace(escalation, state=EscalationState.CLOSED, reason=reason)


def _joined(escalation: Escalation, more: tuple[AlertKey, ...]) -> Escalation:
    return replace(escalation, alerts=(*escalation.alerts, *more))
