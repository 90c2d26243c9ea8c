"""What the journal and the workspace hold of one attempt, read when it is needed."""

from dataclasses import dataclass, field
from pathlib import Path

from midwatch_agents.prompt import Past
from midwatch_monitor.calibration import Calibration
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.view import View
from midwatch_monitor.words import (
    Acceptance,
    Action,
    Actor,
    Attempt,
    AttemptState,
    Budget,
    Change,
    Entry,
    Lifecycle,
    Meter,
    Plan,
    Step,
    StepKind,
)
from midwatch_supervisor.changes import changes
from midwatch_supervisor.evidence import Case
from midwatch_supervisor.policy import Tried

_RECENT = 30
"""Steps that a case shows; the rest is there for the asking."""


@dataclass(slots=True, kw_only=True)
class Dossier:
    """One attempt as it stood when the journal was read."""

    attempt: Attempt
    view: View
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    budget: Budget = field(default_factory=Budget)
    steps: list[Step] = field(default_factory=list[Step])
    checks: list[Acceptance] = field(default_factory=list[Acceptance])
    state: AttemptState | None = None
    """The last one."""

    @classmethod
    async def read(cls, journal: Journal, attempt: Attempt) -> "Dossier":
        """Fold everything that the journal says of the attempt."""
        dossier = cls(attempt=attempt, view=View(attempt=attempt.id, task=attempt.task))
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
            case Plan() as plan:
                self.plan = plan
            case Change(budget=Budget() as budget):
                self.budget = budget
            case AttemptState() as state:
                self.state = state
            case Acceptance() as check:
                self.checks.append(check)
            case _:
                pass

    @property
    def begun(self) -> bool:
        """Whether the attempt got as far as its workspace."""
        return self.state is not None and self.state.lifecycle is not Lifecycle.SUBMITTED

    @property
    def tried(self) -> tuple[Tried, ...]:
        """The interventions that reached the attempt, with their outcomes."""
        return tuple(
            Tried(
                action=each.action,
                outcome=outcome,
                by=Actor(each.by),
                message=each.message,
            )
            for each, outcome in self.view.done.values()
        )

    @property
    def past(self) -> Past:
        """What the next attempt should know of this one."""
        notes = [step.checkpoint.notes for step in self.steps if step.checkpoint is not None]
        lessons = [each.message for each in self.tried if each.action is Action.RESTART]
        return Past(
            number=self.attempt.number,
            reason=self.state.reason if self.state else "",
            advice=lessons[-1] if lessons else "",
            last_notes=notes[-1] if notes else "",
        )

    async def case(self, task: TaskSpec, calibration: Calibration | None = None) -> Case:
        """The attempt as the supervisor is shown it at first."""
        return Case(
            title=task.label,
            goal=task.goal,
            plan=self.plan,
            attempt=self.attempt.number,
            worker=self.attempt.worker,
            budget=spent_words(self.budget),
            alerts=tuple(alert for alert in self.view.alerts.values() if alert.firing),
            steps=tuple(self.steps[-_RECENT:]),
            checkpoints=await self.checkpoints(),
            interventions=self.tried,
            diff=await self.diff(),
            calibration=calibration,
        )

    async def timeline(self, first: int, last: int) -> tuple[Step, ...]:
        """The steps from one number to another."""
        return tuple(step for step in self.steps if first <= step.number <= last)

    async def output(self, step: int) -> str:
        """The output of one step; empty if there is no such step."""
        return next((each.output for each in self.steps if each.number == step), "")

    async def diff(self) -> str:
        """What the attempt has changed in its worktree; empty where there is no git."""
        return await changes(Path(self.attempt.workspace)) or ""

    async def checkpoints(self) -> tuple[Step, ...]:
        """The steps that carry a checkpoint."""
        return tuple(step for step in self.steps if step.kind is StepKind.CHECKPOINT)


def spent_words(budget: Budget) -> str:
    """What is used of what there is, as people write it."""
    meters = {
        "requests": budget.requests,
        "tokens": budget.tokens,
        "US dollars": budget.cost_usd,
        "minutes": budget.minutes,
    }
    return ", ".join(f"{name} {_used(meter)}" for name, meter in meters.items())


def _used(meter: Meter) -> str:
    limit = "" if meter.limit is None else f" of {meter.limit:g}"
    return f"{round(meter.used, 3):g}{limit}"
