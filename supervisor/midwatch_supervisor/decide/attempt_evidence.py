"""What the journal and the workspace hold of one attempt, read when it is needed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from midwatch_agents.prompt import PastAttempt
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Analysis,
    Attempt,
    Budget,
    Change,
    Entry,
    Lifecycle,
    Plan,
    Step,
    StepKind,
    Task,
    Teller,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.decide.context import Noted, PastIntervention, Track, past_intervention
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.workspaces.changes import changes
from midwatch_supervisor.workspaces.placement import workspace_of

_LESSONS = 5
"""Analyses that the next attempt is given, the newest."""


@dataclass(slots=True, kw_only=True)
class AttemptEvidence:
    """One attempt as it stood when the journal was read: its state, and all of its steps."""

    task: Task
    attempt: Attempt
    state: AttemptState
    masked: Callable[[str], str] = str
    """A text without secrets, as the journal has it."""
    steps: list[Step] = field(default_factory=list[Step])
    analyses: list[Noted] = field(default_factory=list[Noted])
    checks: list[Acceptance] = field(default_factory=list[Acceptance])
    track: Track = field(default_factory=Track)
    revised_at: int = 0
    """The last step before the plan was last written anew."""
    node: str = ""
    """The node of a fleet that has it; empty outside of one."""

    @classmethod
    async def read(cls, journal: Journal, attempt: Attempt) -> "AttemptEvidence":
        """Fold everything that the journal says of the attempt."""
        evidence = cls(
            task=await journal.task(attempt.task),
            attempt=attempt,
            state=AttemptState(attempt=attempt),
            masked=journal.masker.text,
        )
        async for entry in journal.all_entries(attempt=attempt.id):
            evidence._take(entry)
        return evidence

    def _take(self, entry: Entry) -> None:
        revision = self.plan.revision
        self.state.fold(entry)
        match entry.record:
            case Step() as step:
                self.steps.append(step)
                self.track.take(step)
            case Plan() as plan if plan.revision > revision:
                self.revised_at = self.state.last_step
            case Analysis() as analysis:
                self.analyses.append(Noted(analysis=analysis, step=self.state.last_step))
            case Acceptance() as check:
                self.checks.append(check)
            case Change() as change:
                self.node = change.node or self.node
            case _:
                pass

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.state.plan

    @property
    def budget(self) -> Budget:
        """What is used, and what there is."""
        return self.state.budget

    @property
    def begun(self) -> bool:
        """Whether the attempt got as far as its workspace."""
        return self.state.transition.lifecycle is not Lifecycle.SUBMITTED

    @property
    def delivered(self) -> tuple[PastIntervention, ...]:
        """The interventions that reached the attempt, with their outcomes.

        Answers to what the worker asked for are none.
        """
        return tuple(
            past_intervention(each)
            for each in self.state.interventions.delivered
            if each.intervention.petition is None and not each.action.of_alerts
        )

    @property
    def past(self) -> PastAttempt:
        """What the next attempt should know of this one."""
        notes = [step.checkpoint.notes for step in self.steps if step.checkpoint is not None]
        delivered = self.delivered
        last = next((each for each in reversed(delivered) if each.action is Action.RESTART), None)
        lessons = [noted.analysis for noted in self.analyses if noted.analysis.by is Teller.WORKER]
        return PastAttempt(
            number=self.attempt.number,
            reason=self.state.transition.reason,
            advice=last.message if last else "",
            last_notes=notes[-1] if notes else "",
            analyses=tuple(
                f"{each.what}: {each.root} → {each.remedy}" for each in lessons[-_LESSONS:]
            ),
            tried=tuple(_past_line(each) for each in delivered if each is not last),
            kept=last.terms.keep if last else (),
            completed=self.state.lifecycle is Lifecycle.COMPLETED,
        )

    @property
    def checkpoints(self) -> tuple[Step, ...]:
        """The steps that carry a checkpoint."""
        return tuple(step for step in self.steps if step.kind is StepKind.CHECKPOINT)

    def timeline(self, first: int, last: int) -> tuple[Step, ...]:
        """The steps from one number to another."""
        return tuple(step for step in self.steps if first <= step.number <= last)

    def output(self, step: int) -> str:
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


def _past_line(past: PastIntervention) -> str:
    reason = f": {past.reason}" if past.reason else ""
    return f"{past.action}: {past.outcome or 'not judged'}{reason}"
