"""The history of a task across all its attempts: interventions, outcomes and evidence."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from midwatch_agents.prompt import PastAttempt
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    Analysis,
    AnalysisAuthor,
    Attempt,
    Budget,
    Change,
    Delivery,
    Entry,
    Grant,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    PlanCheck,
    Record,
    Ruling,
    Spending,
    Step,
    StepKind,
    Task,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import Interventions, InterventionState
from midwatch_supervisor.decide.context import NotedAnalysis, ObservedProgress
from midwatch_supervisor.decide.policy import ACTIONS, sum_of_grants
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.workspaces.changes import changes
from midwatch_supervisor.workspaces.placement import workspace_of
from midwatch_supervisor.workspaces.snapshot_store import SNAPSHOT_AUTHOR

KINDS: tuple[type[Record], ...] = (
    Intervention,
    Delivery,
    OutcomeReport,
    PlanCheck,
    Spending,
    Alert,
    Acceptance,
)
"""Records that a history is folded from."""


@dataclass(slots=True, kw_only=True)
class History:
    """The interventions and alerts of one task."""

    interventions: Interventions = field(default_factory=Interventions)
    revisions: int = 0
    """Approved revisions of the plan that workers proposed."""
    alerts: dict[AlertKey, Alert] = field(default_factory=dict[AlertKey, Alert])
    """Newest state of each alert, across all attempts."""
    _asked: dict[int, int] = field(default_factory=dict[int, int])
    _checks: dict[int, dict[str, bool]] = field(default_factory=dict[int, dict[str, bool]])
    """Whether each acceptance check passed when it last ran, by attempt."""

    @classmethod
    async def read(cls, journal: Journal, task: int) -> "History":
        """Fold the journal's entries of the task."""
        history = cls()
        async for entry in journal.all_entries(task=task, kinds=KINDS):
            history.take(entry)
        return history

    def take(self, entry: Entry) -> None:
        attempt = entry.attempt or 0
        self.interventions.fold(entry)
        match entry.record:
            case PlanCheck(ruling=Ruling.GRANTED, proposed=proposed) if proposed:
                self.revisions += 1
            case Alert() as alert:
                self.alerts[alert.key] = alert
            case Acceptance(check=check, passed=passed):
                self._checks.setdefault(attempt, {})[check] = passed
            case Spending(role="supervisor", requests=requests):
                self._asked[attempt] = self.requests_spent(attempt) + requests
            case _:
                pass

    def earlier(
        self, *, attempt: int | None = None, before: int | None = None
    ) -> tuple[InterventionState, ...]:
        """Return the delivered interventions of one attempt, or of all before one, oldest first.

        Leaves out answers to worker requests, pauses, and the notices about restored files.
        """
        return tuple(
            act
            for act in self.interventions
            if act.delivered
            and act.intervention.petition is None
            and act.intervention.author != SNAPSHOT_AUTHOR
            and act.intervention.action in ACTIONS
            and attempt in (None, act.attempt)
            and (before is None or (act.attempt or 0) < before)
        )

    def rejected_actions(self, attempt: int) -> frozenset[Action]:
        """Return actions rejected by a person or a time limit since the attempt last recovered.

        An action that a person reissued in other words for the same escalation does not count.
        """
        found: set[Action] = set()
        reworded = {
            (act.intervention.escalation, act.action)
            for act in self.interventions
            if act.intervention.by is Actor.OPERATOR and act.intervention.escalation is not None
        }
        for act in self.interventions:
            if act.attempt != attempt or act.intervention.petition is not None:
                continue
            if act.rejection is not None:
                if (act.intervention.escalation, act.action) in reworded:
                    continue
                found.add(act.intervention.action)
            elif act.outcome is Outcome.RECOVERED:
                found.clear()
        return frozenset(found)

    def answered(self, petition: int) -> bool:
        """Whether a worker request has an answer that was not rejected."""
        return self.interventions.answer(petition) is not None

    def turned_down(self, petition: int) -> str | None:
        """Return who rejected the answer to a worker request, and why; `None` if nobody did."""
        found = [act for act in self.interventions if act.intervention.petition == petition]
        return found[-1].rejection if found else None

    def failed_check(self, *, before: int) -> str:
        """Return the acceptance check that the last attempt before `before` failed, if known."""
        ran = max((each for each in self._checks if each < before), default=0)
        return next((each for each, ok in self._checks.get(ran, {}).items() if not ok), "")

    def requests_spent(self, attempt: int) -> int:
        """Return the model requests that the supervisor used for one attempt."""
        return self._asked.get(attempt, 0)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Grants that were not ordered by a person, delivered or under way."""
        return tuple(
            act.intervention.terms.grant
            for act in self.interventions
            if act.intervention.action is Action.GRANT_BUDGET
            and act.intervention.by is not Actor.OPERATOR
            and not act.lost
        )

    @property
    def granted(self) -> Grant:
        """Sum of these grants."""
        return reduce(sum_of_grants, self.grants, Grant())

    @property
    def approved(self) -> int:
        """Revisions of the plan that workers proposed and that are approved or under way."""
        return self.revisions + sum(
            act.intervention.petition is not None
            and act.intervention.action is Action.REPLAN
            and not act.lost
            for act in self.interventions
        )

    @property
    def models(self) -> frozenset[str]:
        """Models that the task was switched to, or is about to be."""
        acts = (act for act in self.interventions if not act.lost)
        return frozenset(act.intervention.terms.model for act in acts) - {""}


_LESSONS = 5
"""Number of newest analyses that the next attempt is given."""


@dataclass(slots=True, kw_only=True)
class AttemptEvidence:
    """One attempt as it was when the journal was read: its state, and all of its steps."""

    task: Task
    attempt: Attempt
    state: AttemptState
    masked: Callable[[str], str] = str
    """Masks secrets in text, as the journal does."""
    steps: list[Step] = field(default_factory=list[Step])
    analyses: list[NotedAnalysis] = field(default_factory=list[NotedAnalysis])
    checks: list[Acceptance] = field(default_factory=list[Acceptance])
    track: ObservedProgress = field(default_factory=ObservedProgress)
    revised_at: int = 0
    """Last step before the plan was last rewritten."""
    node: str = ""
    """Fleet node that has the attempt; empty outside a fleet."""

    @classmethod
    async def read(cls, journal: Journal, attempt: Attempt) -> "AttemptEvidence":
        """Fold everything that the journal says about the attempt."""
        evidence = cls(
            task=await journal.task(attempt.task),
            attempt=attempt,
            state=AttemptState(attempt=attempt),
            masked=journal.masker.text,
        )
        async for entry in journal.all_entries(attempt=attempt.id):
            evidence._fold_entry(entry)
        return evidence

    def _fold_entry(self, entry: Entry) -> None:
        revision = self.plan.revision
        self.state.fold(entry)
        match entry.record:
            case Step() as step:
                self.steps.append(step)
                self.track.take(step)
            case Plan() as plan if plan.revision > revision:
                self.revised_at = self.state.last_step
            case Analysis() as analysis:
                self.analyses.append(NotedAnalysis(analysis=analysis, step=self.state.last_step))
            case Acceptance() as check:
                self.checks.append(check)
            case Change() as change:
                self.node = change.node or self.node
            case _:
                pass

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @property
    def budget(self) -> Budget:
        return self.state.budget

    @property
    def begun(self) -> bool:
        """Whether the attempt got as far as its workspace."""
        return self.state.transition.lifecycle is not Lifecycle.SUBMITTED

    @property
    def delivered(self) -> tuple[InterventionState, ...]:
        """Interventions that reached the attempt, with their outcomes.

        Answers to worker requests are left out.
        """
        return tuple(
            each
            for each in self.state.interventions.delivered
            if each.intervention.petition is None and not each.action.of_alerts
        )

    @property
    def past(self) -> PastAttempt:
        """Summary of this attempt for the next one."""
        notes = [step.checkpoint.notes for step in self.steps if step.checkpoint is not None]
        delivered = self.delivered
        last = next((each for each in reversed(delivered) if each.action is Action.RESTART), None)
        lessons = [
            noted.analysis for noted in self.analyses if noted.analysis.by is AnalysisAuthor.WORKER
        ]
        return PastAttempt(
            number=self.attempt.number,
            reason=self.state.transition.reason,
            advice=last.intervention.message if last else "",
            last_notes=notes[-1] if notes else "",
            analyses=tuple(
                f"{each.what}: {each.root} → {each.remedy}" for each in lessons[-_LESSONS:]
            ),
            tried=tuple(_past_line(each) for each in delivered if each is not last),
            kept=last.intervention.terms.keep if last else (),
            completed=self.state.lifecycle is Lifecycle.COMPLETED,
        )

    @property
    def checkpoints(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind is StepKind.CHECKPOINT)

    def timeline(self, first: int, last: int) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if first <= step.number <= last)

    def output(self, step: int) -> str:
        """Return the output of one step, or an empty string if there is no such step."""
        return next((each.output for each in self.steps if each.number == step), "")

    async def diff(self) -> str:
        """Return the attempt's changes in its worktree as a diff; empty without git.

        Raises WorkspaceError if its files are on another machine.
        """
        folder = Path(self.attempt.workspace)
        if self.node and (
            self.node != self.attempt.node or not await asyncio.to_thread(folder.is_dir)
        ):
            raise WorkspaceError(f"its files are on {self.node}")
        diff = await changes(await workspace_of(assignment_of(self.task), folder))
        return self.masked(diff or "")


def _past_line(past: InterventionState) -> str:
    reason = f": {past.reason}" if past.reason else ""
    return f"{past.action}: {past.outcome or 'not judged'}{reason}"
