"""The monitor's loop: judges what only time or the whole attempt can show.

It follows the journal, opens escalations, adds alarms to them, and judges outcomes. It wakes up on
hints, polls the journal, and reviews every attempt on each tick.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from midwatch_monitor.alerts import Moment
from midwatch_monitor.bus import Bus
from midwatch_monitor.cancellation import finish_before_cancel
from midwatch_monitor.concurrent_attempts import ConcurrentAttempts, project_of
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.escalation import alerts_to_join, audible
from midwatch_monitor.guards import Guards, Unguarded
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AttemptTransition,
    Change,
    Commit,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Hint,
    Lifecycle,
    OutcomeReport,
    Plan,
    Record,
    Step,
    TaskTransition,
)
from midwatch_monitor.rules.overrides import for_worker
from midwatch_monitor.silence import SilenceAlerts
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.watched_attempt import WatchedAttempt

log = logging.getLogger(__name__)

PAGE = 1_000
"""Entries read at a time."""
_ROUNDS = 10
"""Maximum rounds of reading and acting in one look; its own entries take three or four."""
AGAIN_SECONDS = 1.0
"""Seconds after which a failed look is repeated without a hint."""


class Monitor:
    """Monitors the attempts of one run until canceled.

    It follows all of them, and acts on those that its guards allow.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        bus: Bus,
        settings: Settings,
        run: int,
        clock: Callable[[], datetime],
        guards: Guards | None = None,
    ) -> None:
        """Monitor a run; without guards, act on all of its attempts."""
        self._guards = guards or Unguarded()
        self._held = self._guards.now()
        """Guards taken before the last read: the attempts that may be acted on."""
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._clock = clock
        self._after = 0
        self._read_at: datetime | None = None
        """All entries written before this time have been read."""
        self._views: dict[int, WatchedAttempt] = {}
        self._over: dict[int, TaskTransition] = {}
        """The final transition of each task that has ended, by task id."""
        self._touched: set[int] = set()
        self._refused: set[int] = set()
        """Attempts whose last write was refused because another monitor wrote first."""
        self._concurrent = ConcurrentAttempts(settings.rules.workspace_conflict)
        self._looking = asyncio.Lock()
        self._began: datetime | None = None
        self.fault: Fault | None = None
        """The last failure of the monitor itself, which does not stop the work."""

    def view(self, attempt: int) -> WatchedAttempt | None:
        """Return an attempt as far as the journal has been read, or `None` if it is unknown."""
        return self._views.get(attempt)

    def due(self, since: datetime, now: datetime) -> bool:
        """Return whether a silence became due between two times, in an attempt it may act on."""
        for view in self._views.values():
            at = None if view.over else view.silence.due_at
            if at is not None and since < at <= now and self._guards.holds(view.id):
                return True
        return False

    @property
    def attempts(self) -> frozenset[int]:
        """All attempts read so far."""
        return frozenset(self._views)

    @property
    def unfinished(self) -> frozenset[int]:
        """Attempts that are not over, or not fully judged yet."""
        return frozenset(id for id, view in self._views.items() if not self._is_finished(view))

    @property
    def finished(self) -> frozenset[int]:
        """Attempts for which nothing is left to do."""
        return frozenset(self._views.keys() - self.unfinished)

    def ended(self, task: int) -> bool:
        """Return whether a task is over, as far as the journal has been read."""
        return task in self._over

    def touch(self, attempts: Collection[int]) -> None:
        """Have the next look review attempts that may be acted on from now on."""
        self._touched |= self._views.keys() & set(attempts)

    async def run(self) -> None:
        """Look whenever the journal may have grown, until canceled."""
        loop = asyncio.get_running_loop()
        last_tick = loop.time()
        async with self._bus.subscribe() as hints:
            while True:
                full = loop.time() - last_tick >= self._settings.monitor.tick_seconds
                last_tick = loop.time() if full else last_tick
                done = await finish_before_cancel(self.try_to_look(everything=full))
                await hints.wait(self._pause(done=done))

    def _pause(self, *, done: bool) -> float:
        """Return the seconds to wait for a hint after a look."""
        if done and self._touched:  # `look` stopped after `_ROUNDS`
            return 0.0
        seconds = self._settings.monitor.poll_seconds
        return seconds if done else min(seconds, AGAIN_SECONDS)

    async def try_to_look(self, *, everything: bool = False) -> bool:
        """Look, and return whether that succeeded; after a failure the next look tries again."""
        try:
            await self.look(everything=everything)
        except Exception as error:  # the monitor may fail; the work must not
            fault = Fault(part="monitor", error=f"{type(error).__name__}: {error}")
            if fault != self.fault:  # log once: an outage may last an hour
                known = isinstance(error, JournalError)
                log.warning("the monitor failed, trying again: %s", error, exc_info=not known)
            self.fault = fault
            return False
        return True

    async def look(self, *, everything: bool = False) -> None:
        """Read new entries and act on them until there are none, or for `_ROUNDS` rounds.

        With many running attempts there is always something new, but silent ones must be noticed
        too.
        """
        async with self._looking:
            now = self._clock()
            self._began = self._began or now
            self._touched |= {id for id, view in self._views.items() if view.silence.due(now)}
            # Review refused attempts again, now that the other monitor's entries will be read.
            self._touched.update(self._views if everything else self._refused)
            self._refused.clear()
            for _ in range(_ROUNDS):
                self._held = self._guards.now()
                await self._read_journal()
                if not self._touched:
                    break
                await self._review_touched()

    async def _review_touched(self) -> None:
        """Review the touched attempts that it may act on."""
        for attempt in sorted(self._touched):
            if self._held.holds(attempt):
                # Discarded before the review: a touch during the review asks for another one.
                self._touched.discard(attempt)
                await self._review_or_keep(attempt)
            elif not self._guards.holds(attempt):  # otherwise its lease is new: keep the touch
                self._touched.discard(attempt)

    async def _review_or_keep(self, attempt: int) -> None:
        """Review one attempt; if that fails, keep it for a later look."""
        try:
            await self._review_attempt(self._views[attempt])
        except StaleIncarnationError as error:
            log.info("another monitor wrote first: %s", error)
            self._refused.add(attempt)
        except Exception:
            self._touched.add(attempt)
            raise

    async def _read_journal(self) -> None:
        """Read to the end of the journal, at least up to now, even while entries are written."""
        full, now = True, self._clock()
        while full:
            page = await self._journal.entries(self._after, run=self._run, limit=PAGE)
            full = len(page) == PAGE
            for entry in page:
                if entry.attempt is not None:
                    await self._fold_entry(entry, entry.attempt)
                    self._touched.add(entry.attempt)
                if isinstance(entry.record, TaskTransition):
                    self._fold_task(entry.task, entry.record)
                self._after = entry.id  # after each: an entry folded twice would count twice
        self._read_at = now

    def _fold_task(self, task: int, state: TaskTransition) -> None:
        if state.lifecycle.over:
            self._over[task] = state
            self._touched |= {id for id, view in self._views.items() if view.task == task}
        else:
            self._over.pop(task, None)  # a person may begin the task again

    async def _fold_entry(self, entry: Entry, attempt: int) -> None:
        view = self._views.get(attempt)
        if view is None:
            view = self._views[attempt] = await self._watch_attempt(attempt, entry.task)
            self._hand_over(view)
        view.fold(entry)
        if isinstance(entry.record, Step | Change | Plan):
            self._touched.update(self._concurrent.observe(attempt, entry.record))
        elif isinstance(entry.record, AttemptTransition) and view.over:
            self._touched.update(self._concurrent.end(attempt))

    async def _watch_attempt(self, attempt: int, task: int) -> WatchedAttempt:
        found = await self._journal.attempt(attempt)
        of = await self._journal.task(task)
        self._concurrent.join(attempt, project_of(of), f"task {of.name}")
        silence = SilenceAlerts(for_worker(self._settings.rules, found.worker), began=self._began)
        after = self._settings.monitor.outcome_after
        state = AttemptState(attempt=found, detailed=False)
        return WatchedAttempt(state=state, silence=silence, outcome_after=after)

    def _hand_over(self, successor: WatchedAttempt) -> None:
        """Move the judging of a restart to the attempt that it made."""
        for view in self._views.values():
            if view.task == successor.task and view is not successor:
                view.hand_over(successor)

    async def _review_attempt(self, view: WatchedAttempt) -> None:
        if timely := self._timely_alerts(view):
            await self._write_records(view, *timely)
            await self._read_journal()
        reports = (*view.due_outcomes(), *view.judge_split(self._over.get(view.task)))
        if taken := view.alert_acts():
            await self._write_records(view, *taken)
        elif reports:
            await self._write_records(view, *reports, *self._close_answered(view, reports))
        elif view.over:
            await self._close_open_items(view)
        elif view.stranded is not None:
            await self._write_records(
                view, _close_escalation(view.stranded, "its intervention was refused")
            )
        else:
            await self._escalate(view)

    def _timely_alerts(self, view: WatchedAttempt) -> tuple[Alert, ...]:
        """Return the alerts of a running attempt that time or other attempts have changed."""
        if self._settings.mode is Mode.OFF or view.over:
            return ()
        now = Moment(step=view.state.last_step, at=self._clock())
        concurrent = self._concurrent.look(view.id, view.state.alerts, now)
        # During a long look, the journal may get newer signs of life than those read.
        known = replace(now, at=self._read_at)
        return (*view.silence.look(known, view.state.alerts), *concurrent)

    def _close_answered(
        self, view: WatchedAttempt, reports: tuple[OutcomeReport, ...]
    ) -> tuple[Escalation, ...]:
        """Return the escalation as closed by the outcome of the intervention that answered it."""
        open_one = view.state.escalation
        if open_one is None or open_one.state is not EscalationState.ANSWERED:
            return ()
        judged = {report.intervention for report in reports}
        answers = {
            each.id
            for each in view.state.interventions.delivered
            if each.intervention.escalation == open_one.id
        }
        return (_close_escalation(open_one, reports[-1].reason),) if judged & answers else ()

    async def _close_open_items(self, view: WatchedAttempt) -> None:
        """Close everything that is still open after an attempt's end."""
        open_one = view.state.escalation
        closing = [] if open_one is None else [_close_escalation(open_one, "the attempt is over")]
        if records := (*view.expire_undelivered(), *closing, *view.end_alerts(self._clock())):
            await self._write_records(view, *records)

    async def _escalate(self, view: WatchedAttempt) -> None:
        if self._settings.mode is Mode.OFF or view.state.lifecycle is not Lifecycle.WORKING:
            return
        asked = view.state.escalation
        if asked is not None:
            more = alerts_to_join(view.alerts_to_escalate, asked.alerts)
            if more and asked.state is EscalationState.OPEN:
                await self._write_records(view, replace(asked, alerts=(*asked.alerts, *more)))
            elif asked.state is EscalationState.ANSWERED and view.outweighs(asked):
                await self._write_records(view, *view.close_superseded(asked))
            return
        cooldown, cap = self._settings.supervisor.cooldown, self._settings.policy.max_escalations
        if not view.may_escalate(cooldown=cooldown, cap=cap):
            return
        firing = tuple(alert.key for alert in audible(view.alerts_to_escalate))
        keys = firing or self._overdue_alerts(view)
        if not keys:
            return
        opened = await self._journal.open_escalation(
            attempt=view.id,
            task=view.task,
            alerts=keys,
            reason=", ".join(key.rule for key in keys),
            silent=not firing,
            at=self._clock(),
            guard=self._held.guard_of(view.id),
        )
        if opened is not None:
            self._publish_hint(view, opened)

    def _overdue_alerts(self, view: WatchedAttempt) -> tuple[AlertKey, ...]:
        """Return the silent alerts to escalate again, before the budget runs out.

        The intervention against them did not help, and no check has shown anything new since. An
        alert also falls silent if its window is emptied or the work slows down.
        """
        limit = self._settings.policy.hand_over_at  # 1 means never
        # After a restart only a person is left to ask; otherwise leave time for one more
        # intervention before that.
        rungs = 1 if view.begun_anew else 2
        ahead = rungs * self._settings.monitor.outcome_after
        if limit >= 1 or view.state.then_used(ahead) <= limit:
            return ()
        return tuple(key for key in view.unhelped if key not in view.state.silenced)

    async def _write_records(self, view: WatchedAttempt, *records: Record) -> None:
        now = self._clock()
        drafts = tuple(
            Draft(record=record, at=now, task=view.task, attempt=view.id) for record in records
        )
        await self._journal.commit(Commit(drafts=drafts, guard=self._held.guard_of(view.id)))
        for record in records:
            self._publish_hint(view, record)

    def _is_finished(self, view: WatchedAttempt) -> bool:
        """Return whether nothing is left to do about an attempt."""
        state = view.state
        if not view.over or state.escalation or state.interventions.under_way or view.trials:
            return False
        # A restart is judged on the next attempt, a split by the end of the whole task.
        waits = view.restart is not None or view.split is not None
        return not (waits and view.task not in self._over) and not view.open_alerts

    def _publish_hint(self, view: WatchedAttempt, record: Record) -> None:
        kind = kind_of(type(record))
        self._bus.publish(Hint(entry=self._after, kind=kind, task=view.task, attempt=view.id))


def _close_escalation(escalation: Escalation, reason: str) -> Escalation:
    return replace(escalation, state=EscalationState.CLOSED, reason=reason)
