"""What the journal and the workspace hold of one attempt, read when it is needed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from midwatch_agents.prompt import Past
from midwatch_monitor.budget import done_percent, outlook, used
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Activity,
    Alert,
    AlertKey,
    Analysis,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Completion,
    Entry,
    Lifecycle,
    Plan,
    PlanCheck,
    Record,
    Step,
    StepKind,
    Task,
    Teller,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.decide.diagnosis import Noted, Signs, Track
from midwatch_supervisor.decide.evidence import Case
from midwatch_supervisor.decide.standing import Tried, tried_of
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.numbers import budget_text
from midwatch_supervisor.workspaces.changes import changes
from midwatch_supervisor.workspaces.placement import workspace_of

_RECENT = 30
"""Steps that a case shows; the rest is there for the asking."""
_LESSONS = 5
"""Analyses that the next attempt is given, the newest."""


@dataclass(slots=True, kw_only=True)
class Dossier:
    """One attempt as it stood when the journal was read."""

    task: Task
    attempt: Attempt
    view: AttemptState
    masked: Callable[[str], str] = str
    """A text without secrets, as the journal has it."""
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    node: str = ""
    """The node of a fleet that has it; empty outside of one."""
    activity: Activity | None = None
    analyses: list[Noted] = field(default_factory=list[Noted])
    plan_checks: list[PlanCheck] = field(default_factory=list[PlanCheck])
    completions: list[Completion] = field(default_factory=list[Completion])
    track: Track = field(default_factory=Track)
    revised_at: int = 0
    """The last step before the plan was last written anew."""
    steps: list[Step] = field(default_factory=list[Step])
    checks: list[Acceptance] = field(default_factory=list[Acceptance])
    state: AttemptTransition | None = None
    """The last one."""

    @classmethod
    async def read(cls, journal: Journal, attempt: Attempt) -> "Dossier":
        """Fold everything that the journal says of the attempt."""
        view = AttemptState(attempt=attempt, detailed=False)
        task = await journal.task(attempt.task)
        dossier = cls(
            task=task,
            attempt=attempt,
            view=view,
            masked=journal.masker.text,
        )
        after = 0
        while page := await journal.entries(after, attempt=attempt.id):
            for entry in page:
                dossier._take(entry)
            after = page[-1].id
        return dossier

    def _take(self, entry: Entry) -> None:
        self.view.fold(entry)
        match entry.record:
            case Step() as step:
                self.steps.append(step)
                self.track.take(step)
            case Plan() as plan:
                if plan.revision > self.plan.revision:
                    self.revised_at = self.view.last_step
                self.plan = plan
            case Change() as change:
                self._take_change(change)
            case AttemptTransition() as state:
                self.state = state
            case Acceptance() as check:
                self.checks.append(check)
            case record:
                self._take_word(record)

    def _take_change(self, change: Change) -> None:
        self.activity = change.activity or self.activity
        self.node = change.node or self.node

    def _take_word(self, record: Record) -> None:
        """What the worker wrote down, and why an outcome is what it is."""
        match record:
            case Analysis() as analysis:
                self.analyses.append(Noted(analysis=analysis, step=self.view.last_step))
            case PlanCheck() as check:
                self.plan_checks.append(check)
            case Completion() as completion:
                self.completions.append(completion)
            case _:
                pass

    @property
    def model(self) -> str:
        """The model in force."""
        return self.view.model

    @property
    def budget(self) -> Budget:
        """What is used, and what there is."""
        return self.view.budget

    @property
    def begun(self) -> bool:
        """Whether the attempt got as far as its workspace."""
        return self.state is not None and self.state.lifecycle is not Lifecycle.SUBMITTED

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The interventions that reached the attempt, with their outcomes.

        Answers to what the worker asked for are none.
        """
        return tuple(
            tried_of(each)
            for each in self.view.interventions.delivered
            if each.intervention.petition is None and not each.action.of_alerts
        )

    @property
    def past(self) -> Past:
        """What the next attempt should know of this one."""
        notes = [step.checkpoint.notes for step in self.steps if step.checkpoint is not None]
        tried = self.tried
        restarts = [each for each in tried if each.action is Action.RESTART]
        last = restarts[-1] if restarts else None
        lessons = [noted.analysis for noted in self.analyses if noted.analysis.by is Teller.WORKER]
        return Past(
            number=self.attempt.number,
            reason=self.state.reason if self.state else "",
            advice=last.message if last else "",
            last_notes=notes[-1] if notes else "",
            analyses=tuple(map(_lesson, lessons[-_LESSONS:])),
            tried=tuple(_tried(each) for each in tried if each is not last),
            kept=last.terms.keep if last else (),
        )

    @property
    def observed(self) -> frozenset[AlertKey]:
        """The alerts about which nothing was done so far, on purpose."""
        return frozenset(key for keys in self.view.observed.values() for key in keys)

    def then_used(self, ahead: int) -> float:
        """The share of the tightest limit that will be used `ahead` steps from now."""
        return self.view.then_used(ahead)

    def signs(
        self, alerts: tuple[Alert, ...], tried: tuple[Tried, ...], *, conflict: bool
    ) -> Signs:
        """What a cause is read from; `tried` is what was done in the whole task."""
        return Signs(
            alerts=alerts,
            steps=tuple(self.steps[-_RECENT:]),
            checkpoints=self._checkpoints,
            revised_at=self.revised_at,
            analyses=tuple(self.analyses),
            plan=self.plan,
            used=used(self.budget),
            tried=tried,
            track=self.track,
            activity=self.activity,
            conflict=conflict,
        )

    async def case(self, task: TaskSpec, calibration: Calibration | None = None) -> Case:
        """The attempt as the supervisor is shown it at first."""
        return Case(
            title=task.label,
            goal=task.goal,
            plan=self.plan,
            attempt=self.attempt.number,
            worker=self.attempt.worker,
            budget=". ".join(filter(None, (budget_text(self.budget), self._outlook()))),
            alerts=self.view.firing,
            steps=tuple(self.steps[-_RECENT:]),
            checkpoints=self._checkpoints,
            interventions=self.tried,
            analyses=tuple(self.analyses),
            plan_check=self.plan_checks[-1] if self.plan_checks else None,
            completions=tuple(self.completions),
            diff=await self._shown_diff(),
            calibration=calibration,
        )

    @property
    def done(self) -> float | None:
        """How much of the whole work is done, in percent, as the worker is told it."""
        last = self._checkpoints[-1].checkpoint if self._checkpoints else None
        # What was reported of a plan step before says nothing of the one in hand.
        here = last is not None and (last.plan_step == self.plan.current or not self.plan.steps)
        within = last.progress_percent if last is not None and here else None
        return done_percent(self.plan.current, len(self.plan.steps), within)

    def _outlook(self) -> str:
        """Whether the budget lasts at the rate so far, in words."""
        found = outlook(self.budget, self.done)
        if found is None or found.done is None:
            return ""
        verdict = "enough" if found.enough else "not enough"
        return f"about {found.done:.0f} % done; at this rate the {found.resource} are {verdict}"

    @property
    def _checkpoints(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind is StepKind.CHECKPOINT)

    async def timeline(self, first: int, last: int) -> tuple[Step, ...]:
        """The steps from one number to another."""
        return tuple(step for step in self.steps if first <= step.number <= last)

    async def output(self, step: int) -> str:
        """The output of one step; empty if there is no such step."""
        return next((each.output for each in self.steps if each.number == step), "")

    async def diff(self) -> str:
        """What the attempt has changed in its worktree; empty where there is no git.

        Raises WorkspaceError where its files are on another machine.
        """
        folder = Path(self.attempt.workspace)
        if self.node and (
            self.node != self.attempt.node or not await asyncio.to_thread(folder.is_dir)
        ):
            raise WorkspaceError(f"its files are on {self.node}")
        diff = await changes(await workspace_of(assignment_of(self.task), folder))
        return self.masked(diff or "")

    async def _shown_diff(self) -> str:
        """The diff, or why there is none to see: no decision waits for git."""
        try:
            return await self.diff()
        except WorkspaceError as error:
            return f"(it cannot be read now: {error})"

    async def checkpoints(self) -> tuple[Step, ...]:
        """The steps that carry a checkpoint."""
        return self._checkpoints


def _lesson(analysis: Analysis) -> str:
    return f"{analysis.what}: {analysis.root} → {analysis.remedy}"


def _tried(past: Tried) -> str:
    reason = f": {past.reason}" if past.reason else ""
    return f"{past.action}: {past.outcome or 'not judged'}{reason}"
