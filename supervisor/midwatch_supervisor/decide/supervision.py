"""Answers the open questions of a run: escalations, worker requests, and those to persons."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from midwatch_agents.consultation import spent_before
from midwatch_monitor.bus import Bus, Subscription
from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.guards import Guards, Unguarded
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import commit_unmoved
from midwatch_monitor.journal.core.encoding import hint_of, kind_of
from midwatch_monitor.loop import AGAIN_SECONDS, PAGE
from midwatch_monitor.records import (
    BY_TIMEOUT,
    Action,
    Actor,
    Alert,
    AttemptTransition,
    Commit,
    Decision,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Escalation,
    EscalationState,
    Fault,
    Hint,
    Intervention,
    Record,
    Spending,
    Task,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import Petition, worker_request
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS, Question, RunState
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.decide.history import AttemptEvidence, History
from midwatch_supervisor.decide.policy import approval_needed
from midwatch_supervisor.decide.reading import AttemptReading
from midwatch_supervisor.decide.worker_requests import OpenRequest, RequestRuling, by_policy
from midwatch_supervisor.present.lookup import specification_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DueQuestions:
    """A record to write because a person is late, and the attempt it is about."""

    task: int
    attempt: int
    record: Delivery | Intervention


def overdue(
    run: RunState, person: PersonSettings, now: datetime, *, began: datetime
) -> tuple[DueQuestions, ...]:
    """Return the records that the policy writes for a late person; none without a time limit.

    Time before this process `began` does not count: no process could receive an answer.
    The `step` of a delivery is 0, because the attempt's steps are not known here.
    """
    if not person.timeout_minutes:
        return ()
    limit = timedelta(minutes=person.timeout_minutes)
    late = f"nobody answered within {person.timeout_minutes:g} minutes"
    approvals = [
        DueQuestions(
            task=held.task, attempt=held.attempt, record=_delivery_by_timeout(held.id, person, late)
        )
        for held in run.held
        if held.attempt is not None and now - max(held.issued_at, began) >= limit
    ]
    questions = [
        DueQuestions(
            task=each.task, attempt=each.attempt, record=_answer_by_timeout(each, person, late)
        )
        for each in run.questions
        if now - max(each.since, began) >= limit
    ]
    return (*approvals, *questions)


def _delivery_by_timeout(intervention: int, person: PersonSettings, late: str) -> Delivery:
    approved = person.approval is Unapproved.APPROVE
    state = DeliveryState.APPROVED if approved else DeliveryState.REJECTED
    return Delivery(intervention=intervention, state=state, author=BY_TIMEOUT, comment=late)


def _answer_by_timeout(asked: Question, person: PersonSettings, late: str) -> Intervention:
    action, message = Action.STOP, f"{late}: {asked.text}"
    if asked.petition is not None:
        action, message = Action.NUDGE, f"Refused: {late}. You may not {asked.text}."
    elif person.question is Unanswered.RESUME:
        action = Action.RESUME
        message += " Go on without an answer, with the safest way that you know."
    return Intervention(
        action=action, by=Actor.POLICY, author=BY_TIMEOUT, message=message, petition=asked.petition
    )


log = logging.getLogger(__name__)

_Key = tuple[str, int]
"""A question: its kind and number."""
_Answer = Callable[[Entry, int | None], Coroutine[Any, Any, None]]
"""Answers a question under a guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering:
    """A question that is being answered, and its guard."""

    task: asyncio.Task[None]
    guard: int | None


class Supervision:
    """Answers the open questions of one run, until it is canceled.

    It reads everything from the journal, so it finds what is still open after a crash. It follows
    the whole run but answers only where its guards allow. The journal refuses an answer whose guard
    has changed meanwhile, so two processes never answer the same question.
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
        hire: Callable[[Task], Supervisor] | None = None,
        calibrator: Calibrator | None = None,
    ) -> None:
        """Decide with the supervisor that `hire` returns for a task; without `hire`, by the policy.

        Without guards, everything in the run is answered.
        """
        self._journal = journal
        self._bus = bus
        self._settings = settings
        self._run = run
        self._clock = clock
        self._guards = guards or Unguarded()
        self._hire = hire
        self._hired: dict[int, Supervisor] = {}
        self._calibrator = calibrator or Calibrator(journal)
        self._after = 0
        self._began = clock()
        self._state = RunState()
        self._answering: dict[_Key, _Answering] = {}
        self._refused: dict[_Key, int] = {}
        """Guard under which the journal refused an answer; no other is tried until it changes."""
        self._hints: Subscription | None = None
        self._trouble = ""
        """Error of the last look; empty if it succeeded."""

    async def run(self) -> None:
        """Answer open questions until canceled."""
        try:
            async with self._bus.subscribe() as self._hints:
                while True:
                    done = await self._try_to_look()
                    pause = self._settings.monitor.poll_seconds
                    await self._hints.wait(pause if done else min(pause, AGAIN_SECONDS))
        finally:
            for each in self._answering.values():
                each.task.cancel()
            await self._answered_all()

    def _wake_loop(self) -> None:
        """Make the loop look soon, for a reason that causes no hint."""
        if self._hints is not None:
            self._hints.offer([Hint(entry=0, kind="answer")])

    async def _answered_all(self) -> None:
        tasks = [each.task for each in self._answering.values()]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _try_to_look(self) -> bool:
        """Look, and return whether that succeeded."""
        try:
            await self._answer_open_questions()
        except Exception as error:  # a failure here must not stop the work
            if str(error) != self._trouble:  # log an outage once, not at every try
                known = isinstance(error, JournalError)
                log.warning(
                    "the supervisor failed and will try again: %s", error, exc_info=not known
                )
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    async def settle(self) -> None:
        """Answer the questions open now, trying each once."""
        await self._answer_open_questions()
        await self._answered_all()

    async def _answer_open_questions(self) -> None:
        guards = self._guards.now()
        # Noted before reading: an answer stored meanwhile may be missing from what is read.
        answered = [key for key, each in self._answering.items() if each.task.done()]
        await self._read_new_entries()
        person = self._settings.policy.person
        read = self._after
        for due in overdue(self._state, person, self._clock(), began=self._began):
            key, guard = ("overdue questions of attempt", due.attempt), guards.guard_of(due.attempt)
            if guards.holds(due.attempt) and self._may_answer(key, guard):
                await self._run_answer(key, self._in_time(due, guard, after=read), guard)
        for key in answered:
            del self._answering[key]
        for id, entry in self._state.escalations.items():
            self._start_answer(("escalation", id), entry, self._decide_escalation, guards)
        for id, entry in self._state.requests.items():
            self._start_answer(("petition", id), entry, self._answer_request, guards)

    async def _read_new_entries(self) -> None:
        full = True
        while full:
            page = await self._journal.entries(
                self._after, run=self._run, kinds=OPEN_QUESTION_KINDS, limit=PAGE
            )
            full = len(page) == PAGE
            for entry in page:
                self._state.fold(entry)
                self._after = entry.id

    def _start_answer(self, key: _Key, entry: Entry, answer: _Answer, guards: Guards) -> None:
        """Start to answer a question, unless an answer is under way already."""
        if entry.attempt is None or not guards.holds(entry.attempt):
            return
        guard = guards.guard_of(entry.attempt)
        if (before := self._answering.get(key)) is not None:
            if before.guard != guard and not before.task.cancelling():
                before.task.cancel()  # its result would be refused; the question is asked again
        elif self._may_answer(key, guard):
            work = self._answer_question(entry, entry.attempt, answer, guard)
            task = asyncio.create_task(self._run_answer(key, work, guard))
            self._answering[key] = _Answering(task=task, guard=guard)

    async def _answer_question(
        self, entry: Entry, attempt: int, answer: _Answer, guard: int | None
    ) -> None:
        """Answer a question; if that is canceled, store what it cost until then."""
        try:
            await answer(entry, guard)
        except asyncio.CancelledError as canceled:
            # Without the guard: the money is spent, whoever answers in the end.
            await self._write_records(entry.task, attempt, spent_before(canceled), None)
            raise

    def _may_answer(self, key: _Key, guard: int | None) -> bool:
        return guard is None or self._refused.get(key) != guard

    async def _run_answer(
        self, key: _Key, work: Coroutine[Any, Any, None], guard: int | None
    ) -> None:
        """Do the work, then wake the loop to check whether it must be repeated."""
        seconds = 0.0
        try:
            await work
        except StaleIncarnationError as error:
            log.info("somebody else answered first: %s", error)
            if guard is None:  # without a guard the next look finds the other answer
                seconds = AGAIN_SECONDS
            else:
                self._refused[key] = guard
        except Exception:  # the question stays open
            log.exception("failed to answer %s %d; will try again", *key)
            seconds = AGAIN_SECONDS
        finally:
            asyncio.get_running_loop().call_later(seconds, self._wake_loop)

    async def _reading_of(self, task: int, attempt: int) -> AttemptReading:
        spec = specification_of(await self._journal.task(task))
        return await AttemptReading.read(
            self._journal, await self._journal.attempt(attempt), spec, self._settings
        )

    async def _supervisor(self, task: int) -> Supervisor:
        found = self._hired.get(task)
        if found is None and self._hire is not None:
            found = self._hired[task] = self._hire(await self._journal.task(task))
        return Supervisor(None, self._settings.supervisor) if found is None else found

    # -- escalations -----------------------------------------------------------------------

    async def _decide_escalation(self, entry: Entry, guard: int | None) -> None:
        escalation = entry.record
        if not isinstance(escalation, Escalation):
            return
        reading = await self._reading_of(entry.task, escalation.attempt)
        calibration = await self._calibrator.calibration(reading.evidence.state.model)
        context = reading.context(escalation.alerts, escalation=escalation.id)
        supervisor = await self._supervisor(entry.task)
        decided = await supervisor.decide(
            replace(context, calibration=calibration), reading.evidence
        )
        acts = reading.evidence.state.acts
        answer = await self._carry_out(escalation, decided.decision, acts)
        extra = _cost_and_fault(decided.spending, decided.fault)
        await self._write_records(entry.task, escalation.attempt, (*answer, *extra), guard)

    async def _carry_out(
        self, escalation: Escalation, decision: Decision, acts: tuple[Action, ...] | None
    ) -> tuple[Record, ...]:
        """Return the records of a decision, given the state of the attempt after it was made."""
        asked, why = await self._state_of(escalation)
        if why:
            refused = replace(decision, refused=why)
            closed = replace(asked, state=EscalationState.CLOSED, reason=why)
            return (refused, closed) if asked.state is EscalationState.OPEN else (refused,)
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
                decision.action, self._settings.mode, self._settings.policy, acts=acts
            ),
        )
        return decision, intervention, replace(asked, state=EscalationState.ANSWERED)

    async def _state_of(self, escalation: Escalation) -> tuple[Escalation, str]:
        """Return the escalation as it is now, and why a decision about it is too late.

        It includes alerts that have joined meanwhile. The reason is empty if it is not too late.
        """
        now = await self._attempt_now(escalation.attempt)
        asked = now.escalations.get(escalation.id, escalation)
        if now.over:
            return asked, "the attempt is over"
        if asked.state is not EscalationState.OPEN:
            return asked, "the question is closed"
        # The model did not see alerts that joined meanwhile; they are asked about next.
        firing = {alert.key for alert in now.firing}
        resolved = not asked.silent and not firing.intersection(escalation.alerts)
        return asked, "its alerts have resolved" if resolved else ""

    async def _attempt_now(self, id: int) -> AttemptState:
        """Return whether an attempt is over now, its alerts and its escalations; nothing else."""
        state = AttemptState(attempt=await self._journal.attempt(id))
        kinds = (AttemptTransition, Escalation, Alert)
        async for entry in self._journal.all_entries(attempt=id, kinds=kinds):
            state.fold(entry)
        return state

    # -- worker requests -------------------------------------------------------------------

    async def _answer_request(self, entry: Entry, guard: int | None) -> None:
        request = worker_request(entry.record)
        if not isinstance(request, Petition) or entry.attempt is None:
            return
        reading = await self._reading_of(entry.task, entry.attempt)
        state = reading.evidence.state
        if state.over or reading.history.answered(entry.id):
            return
        context = reading.context(alert.key for alert in state.firing)
        asked = reading.open_request(entry.id, request, context.done)
        if self._settings.mode is Mode.OFF:
            ruled = by_policy(asked, context)
        else:
            supervisor = await self._supervisor(entry.task)
            ruled = await supervisor.rule(asked, context, reading.evidence)
        extra = _cost_and_fault(ruled.spending, ruled.fault)
        # An operator may have answered, or the attempt ended, while the model ran.
        later = await History.read(self._journal, entry.task)
        if later.answered(entry.id) or (await self._attempt_now(entry.attempt)).over:
            await self._write_records(entry.task, entry.attempt, extra, guard)
            return
        act = ruled.intervention(asked, needs_approval=self._needs_approval(asked, ruled))
        if not await self._write_records(entry.task, entry.attempt, (act, *extra), guard):
            await self._write_records(entry.task, entry.attempt, extra, guard)

    def _needs_approval(self, asked: OpenRequest, ruled: RequestRuling) -> bool:
        """Whether a person must approve an answer; not if it repeats their own rejection."""
        if asked.turned_down is not None or self._settings.mode is Mode.OFF:
            return False
        action = ruled.intervention(asked, needs_approval=False).action
        return approval_needed(action, self._settings.mode, self._settings.policy)

    # -- overdue questions -----------------------------------------------------------------

    async def _in_time(self, due: DueQuestions, guard: int | None, *, after: int) -> None:
        record = due.record
        if isinstance(record, Delivery):
            attempt = await self._journal.attempt(due.attempt)
            evidence = await AttemptEvidence.read(self._journal, attempt)
            record = replace(record, step=evidence.state.last_step)
        what = self._commit(due.task, due.attempt, (record,), guard)
        # The person may have answered just now; then nothing is stored, and the next look reads it.
        entries = await self._journal.write(commit_unmoved, what, task=due.task, after=after)
        self._publish_hints(entries or ())
        if entries:
            log.info("attempt %d: %s", due.attempt, kind_of(type(record)))

    async def _write_records(
        self, task: int, attempt: int, records: tuple[Record, ...], guard: int | None
    ) -> bool:
        """Store these records together; return whether nobody else had answered before."""
        if not records:
            return True
        entries = await self._journal.answer(self._commit(task, attempt, records, guard))
        self._publish_hints(entries or ())
        return entries is not None

    def _commit(
        self, task: int, attempt: int, records: tuple[Record, ...], guard: int | None
    ) -> Commit:
        now = self._clock()
        drafts = (Draft(record=each, at=now, task=task, attempt=attempt) for each in records)
        return Commit(drafts=tuple(drafts), guard=guard)

    def _publish_hints(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            self._bus.publish(hint_of(entry))


def _cost_and_fault(spending: Spending | None, fault: Fault | None) -> tuple[Record, ...]:
    """Return the cost of an answer, and the fault of its model, if any."""
    return tuple(record for record in (spending, fault) if record is not None)
