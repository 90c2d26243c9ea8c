"""Reads the context of a decision about an attempt from the journal."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath

from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Alert,
    AlertKey,
    Attempt,
    AttemptTransition,
    Change,
    Plan,
    Step,
    Writer,
)
from midwatch_monitor.state.intervention import Petition
from midwatch_supervisor.decide.context import ConcurrentEdit, DecisionContext, Means
from midwatch_supervisor.decide.diagnosis import diagnose
from midwatch_supervisor.decide.history import AttemptEvidence, History
from midwatch_supervisor.decide.policy import grant_room
from midwatch_supervisor.decide.worker_requests import OpenRequest
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.lookup import assignment_of

_RECENT = 30
"""Number of newest steps shown for a decision; the model can ask for the others."""
_LAG = 4
"""Steps from a decision to its delivery, and from its outcome to the next action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReading:
    """One attempt with its task, as they were when the journal was read."""

    task: TaskSpec
    evidence: AttemptEvidence
    history: History
    means: Means
    concurrent: tuple[ConcurrentEdit, ...]
    settings: Settings

    @classmethod
    async def read(
        cls, journal: Journal, attempt: Attempt, task: TaskSpec, settings: Settings
    ) -> "AttemptReading":
        """Read the attempt and its task from the journal."""
        evidence = await AttemptEvidence.read(journal, attempt)
        history = await History.read(journal, attempt.task)
        attempts = await journal.attempts(attempt.task)
        means = means_of(
            task,
            assignment_of(evidence.task),
            [each for each in attempts if each.id <= attempt.id],
            history,
            model=evidence.state.model,
            policy=settings.policy,
            acts=evidence.state.acts,
        )
        alerts = evidence.state.alerts
        fought = {key.subject for key in alerts if key.rule == "workspace_conflict"}
        return cls(
            task=task,
            evidence=evidence,
            history=history,
            means=means,
            concurrent=await concurrent(journal, attempt, fought),
            settings=settings,
        )

    def context(self, keys: Iterable[AlertKey], *, escalation: int = 0) -> DecisionContext:
        """Return the context of a decision about some of the attempt's alerts."""
        evidence, state, history = self.evidence, self.evidence.state, self.history
        asked, attempt = set(keys), evidence.attempt.id
        details = state.details
        context = DecisionContext(
            policy=self.settings.policy,
            escalation=escalation,
            alerts=self._alerts(asked),
            title=self.task.label,
            goal=self.task.goal,
            attempt=evidence.attempt.number,
            failed_before=history.failed_check(before=attempt),
            worker=evidence.attempt.worker,
            plan=state.plan,
            revised_at=evidence.revised_at,
            budget=state.budget,
            then_used=state.then_used(self.settings.monitor.outcome_after + _LAG),
            activity=state.activity,
            firing=state.firing,
            # Earlier decisions left these alone on purpose.
            observed=frozenset(key for each in state.observed.values() for key in each) & asked,
            steps=tuple(evidence.steps[-_RECENT:]),
            checkpoints=evidence.checkpoints,
            track=evidence.track,
            analyses=tuple(evidence.analyses),
            plan_check=next(reversed(details.plan_checks.values()), None),
            completions=tuple(details.completions),
            interventions=history.earlier(attempt=attempt),
            delivered=evidence.delivered,
            before=history.earlier(before=attempt),
            rejected=history.rejected_actions(attempt),
            escalations=max(0, state.raised - 1),
            asked=history.requests_spent(attempt),
            means=self.means,
            concurrent=self.concurrent,
        )
        return replace(context, reading=diagnose(context))

    def _alerts(self, keys: set[AlertKey]) -> tuple[Alert, ...]:
        """Return the alerts as they are, or as they were in an earlier attempt."""
        found = tuple(alert for key, alert in self.evidence.state.alerts.items() if key in keys)
        earlier = (alert for key, alert in self.history.alerts.items() if key in keys)
        # Step numbers of an earlier attempt mean nothing in this one.
        return found or tuple(replace(each, evidence=(), step=0, since_step=0) for each in earlier)

    def open_request(self, id: int, request: Petition, done: float | None) -> OpenRequest:
        """Return a worker request, with the limits on answers to it."""
        left = self.settings.plan.max_revisions - self.history.approved
        return OpenRequest(
            id=id,
            request=request,
            revisions_left=max(0, left),
            turned_down=self.history.turned_down(id),
            done=done,
            slack=self.settings.rules.budget_burn.slack,
        )


def means_of(
    task: TaskSpec,
    assignment: Assignment | None,
    attempts: Sequence[Attempt],
    history: History,
    *,
    model: str,
    policy: PolicySettings,
    acts: tuple[Action, ...] | None = None,
) -> Means:
    """Return the means of a task's newest attempt, which now uses `model`.

    A task that was not started from a task file has no other models or workers, and cannot be
    split.
    """
    now = attempts[-1]
    had = {each.worker for each in attempts}
    others = assignment.worker_spec(now.worker).other_models if assignment else ()
    return Means(
        attempts=max(0, task.max_attempts - now.number),
        models=tuple(each.name for each in others if each.name not in {model} | history.models),
        workers=tuple(each for each in task.other_workers if each not in had),
        grant=grant_room(task.budget, history.granted, grants=len(history.grants), policy=policy),
        may_split=assignment is not None and not assignment.parent,
        acts=acts,
    )


async def concurrent(
    journal: Journal, attempt: Attempt, paths: Collection[str]
) -> tuple[ConcurrentEdit, ...]:
    """Return the attempts of other tasks that changed one of the files, or plan to now.

    Only attempts of the same run and project that are not over count. The one that began first is
    the elder.
    """
    own = await journal.task(attempt.task)
    project = project_of(own)
    found: list[ConcurrentEdit] = []
    for task in await journal.tasks(own.run) if project and paths else ():
        if task.id == own.id or project_of(task) != project:
            continue
        attempts = await journal.attempts(task.id)
        for other in attempts[-1:]:  # the earlier ones are over
            touched = await _touched_files(journal, other)
            found += [
                ConcurrentEdit(path=path, task=task.name, elder=other.id < attempt.id)
                for path in sorted(paths)
                if path in touched
            ]
    return tuple(found)


async def _touched_files(journal: Journal, attempt: Attempt) -> set[str]:
    """Return the files that a running attempt changed or plans to change; none if it is over."""
    changed, meant = set[str](), set[str]()
    kinds = (Step, Change, Plan, AttemptTransition)
    async for entry in journal.all_entries(attempt=attempt.id, kinds=kinds):
        match entry.record:
            case Step(edits=edits):
                changed |= {edit.path for edit in edits if edit.writer is Writer.WORKER}
            case Plan() as plan:
                meant = _normal_paths(plan.in_hand.files if plan.in_hand else ())
            case Change(plan_step_files=files) if files is not None:
                meant = _normal_paths(files)
            case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
                return set()
            case _:
                pass
    return changed | meant


def _normal_paths(paths: Collection[str]) -> set[str]:
    return {normpath(path) for path in paths}
