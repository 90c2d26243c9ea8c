"""The lines of a run, made of its journal in order. Pure: entries in, lines out."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict

from midwatch_monitor.records import (
    Alert,
    AlertKey,
    Attempt,
    AttemptTransition,
    Change,
    Checkpoint,
    Completion,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Entry,
    Escalation,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Step,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.intervention import Interventions, InterventionState
from midwatch_monitor.state.task import reservations
from midwatch_supervisor.present.line import (
    AlertLine,
    AttemptLine,
    CheckpointLine,
    Checks,
    DecisionLine,
    DoneLine,
    EscalationLine,
    InterventionLine,
    Line,
    StepLine,
    TaskLine,
    TaskSum,
)
from midwatch_supervisor.present.spelling import terms_words
from midwatch_tools.data_blocks import cut

MAX_TEXT = 500
"""Characters of an output, an argument or a text that a line shows; the journal has it all."""


class _Subject(TypedDict):
    """What every line begins with."""

    at: datetime
    task: str
    attempt: int | None
    number: int | None


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What `done` says of one task."""

    status: Lifecycle = Lifecycle.SUBMITTED
    checks: Checks = field(default_factory=Checks)
    attempts: set[int] = field(default_factory=set[int])
    firing: set[tuple[int | None, AlertKey]] = field(
        default_factory=set[tuple[int | None, AlertKey]]
    )
    alerts: int = 0
    interventions: int = 0
    recovered: int = 0
    reservations: tuple[str, ...] = ()


class Transcript:
    """What a run has said so far. Takes the run's entries in order, from its first."""

    def __init__(self, tasks: Iterable[Task], attempts: Iterable[Attempt] = ()) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._attempts = {attempt.id: attempt for attempt in attempts}
        self._tallies = {id: _Tally() for id in self._tasks}
        self._interventions = Interventions()
        self._models: dict[int, str] = {}
        """What attempts were switched to."""

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's attempt began later and must be met first."""
        return entry.attempt is not None and entry.attempt not in self._attempts

    def meet(self, attempt: Attempt) -> None:
        """Learn of an attempt that began after the first entries were taken."""
        self._attempts[attempt.id] = attempt

    def lacks_task(self, entry: Entry) -> bool:
        """Whether the entry's task was made while the run was under way, and must be met first."""
        return entry.task not in self._tasks

    def meet_task(self, task: Task) -> None:
        """Learn of a task that a split made."""
        self._tasks[task.id] = task
        self._tallies[task.id] = _Tally()

    def line(self, entry: Entry) -> Line | None:
        """Take in the run's next entry; its line, or `None` for what has none.

        An attempt that was not met has a line without its worker and number.
        """
        self._count(entry)
        subject = self._subject(entry)
        match entry.record:
            case TaskTransition() as state:
                return TaskLine(
                    **subject,
                    status=state.lifecycle,
                    title=self._tasks[entry.task].title,
                    reason=state.reason,
                    acceptance=Checks(passed=state.passed, total=state.total),
                )
            case AttemptTransition() as state:
                return self._attempt(subject, state)
            case Change(model=str() as model) if entry.attempt is not None:
                self._models[entry.attempt] = model
                return None
            case Step() as step:
                return _step(subject, step)
            case Alert() as alert:
                return _alert(subject, alert)
            case Escalation() | Decision() as asked:
                return _asked(subject, asked)
            case Intervention() | Delivery() | OutcomeReport():
                state = self._interventions.fold(entry)
                return None if state is None else _intervention(subject, state)
            case _:
                return None

    def intervention(self, id: int) -> InterventionState | None:
        """How the intervention with that journal id has fared; `None` if there is none."""
        return self._interventions.get(id)

    def done(self, *, exit_code: int, at: datetime) -> DoneLine:
        """The run's last line."""
        return DoneLine(
            at=at,
            exit_code=exit_code,
            tasks=tuple(self.sum(task) for task in self._tasks),
        )

    def sum(self, task: int) -> TaskSum:
        """What came of one task so far, by its journal id."""
        tally = self._tallies[task]
        return TaskSum(
            id=self._tasks[task].name,
            status=tally.status,
            attempts=len(tally.attempts),
            alerts=tally.alerts,
            interventions=tally.interventions,
            recovered=tally.recovered,
            acceptance=tally.checks,
        )

    @property
    def reserved(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The tasks that are completed with reservations, by name, each with them."""
        return tuple(
            (self._tasks[id].name, tally.reservations)
            for id, tally in self._tallies.items()
            if tally.status is Lifecycle.COMPLETED and tally.reservations
        )

    def _subject(self, entry: Entry) -> _Subject:
        attempt = self._attempts.get(entry.attempt or 0)
        return _Subject(
            at=entry.at,
            task=self._tasks[entry.task].name,
            attempt=entry.attempt,
            number=attempt.number if attempt else None,
        )

    def _count(self, entry: Entry) -> None:
        tally = self._tallies[entry.task]
        match entry.record:
            case TaskTransition() as state:
                tally.status = state.lifecycle
                if state.total:
                    tally.checks = Checks(passed=state.passed, total=state.total)
            case AttemptTransition() if entry.attempt is not None:
                tally.attempts.add(entry.attempt)
            case Alert() as alert:
                key = (entry.attempt, alert.key)
                tally.alerts += alert.firing and key not in tally.firing
                (tally.firing.add if alert.firing else tally.firing.discard)(key)
            case Delivery(state=DeliveryState.DELIVERED):
                tally.interventions += 1
            case OutcomeReport(outcome=Outcome.RECOVERED):
                tally.recovered += 1
            case Completion(plan_step=0) as done:
                tally.reservations = reservations(done)
            case _:
                pass

    def _attempt(self, subject: _Subject, state: AttemptTransition) -> AttemptLine:
        id = subject["attempt"] or 0
        attempt = self._attempts.get(id)
        return AttemptLine(
            **subject,
            id=subject["attempt"],
            status=state.lifecycle,
            worker=attempt.worker if attempt else "",
            model=self._models.get(id, attempt.model if attempt else ""),
            reason=state.reason,
            ending=state.ending,
        )


def _step(subject: _Subject, step: Step) -> StepLine | CheckpointLine:
    if step.checkpoint is not None:
        return _checkpoint(subject, step.number, step.checkpoint)
    return StepLine(
        **subject,
        step=step.number,
        kind=step.kind,
        tool=step.tool,
        args=cut(step.args, MAX_TEXT),
        ok=step.ok,
        exit_code=step.exit_code,
        output=cut(step.output, MAX_TEXT),
        text=cut(step.text, MAX_TEXT),
        edits=tuple(edit.path for edit in step.edits),
        tokens=step.tokens,
    )


def _checkpoint(subject: _Subject, step: int, told: Checkpoint) -> CheckpointLine:
    return CheckpointLine(
        **subject,
        step=step,
        progress_percent=told.progress_percent,
        confidence=told.confidence,
        decision=told.decision,
        blockers=told.blockers,
        files_done=told.files_done,
        notes=told.notes,
        estimated_steps_left=told.estimated_steps_left,
        plan_step=told.plan_step,
    )


def _alert(subject: _Subject, alert: Alert) -> AlertLine:
    return AlertLine(
        **subject,
        rule=alert.key.rule,
        subject=alert.key.subject,
        state=alert.state,
        severity=alert.severity,
        step=alert.step,
        value=_number(alert.value),
        summary=alert.summary,
        evidence=alert.evidence,
        resolution=alert.resolution,
    )


def _number(value: float) -> int | float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _asked(subject: _Subject, asked: Escalation | Decision) -> EscalationLine | DecisionLine:
    if isinstance(asked, Escalation):
        return EscalationLine(
            **subject,
            id=asked.id,
            state=asked.state,
            rules=_rules(asked.alerts),
            reason=asked.reason,
        )
    return DecisionLine(
        **subject,
        escalation=asked.escalation,
        action=asked.action,
        diagnosis=asked.diagnosis,
        by=asked.by,
        author=asked.author,
        message=asked.message,
        rationale=asked.rationale,
        steps=asked.steps,
        terms=terms_words(asked.terms),
        refused=asked.refused,
    )


def _intervention(subject: _Subject, about: InterventionState) -> InterventionLine:
    what = about.intervention
    return InterventionLine(
        **subject,
        id=about.id,
        action=what.action,
        by=what.by,
        author=what.author,
        message=what.message,
        state=about.status,
        outcome=about.outcome,
        reason=about.reason,
        answers=_rules(what.answers),
        diagnosis=None if what.diagnosis is Diagnosis.UNKNOWN else what.diagnosis,
        terms=terms_words(what.terms),
    )


def _rules(keys: Iterable[AlertKey]) -> tuple[str, ...]:
    """The rules of some alerts, none twice: two files may be about the same rule."""
    return tuple(dict.fromkeys(key.rule for key in keys))
