"""One task of a run under way, and where it stands."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Ending, Lifecycle, Task, TaskTransition
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.attempt_run import AttemptRun
from midwatch_supervisor.run.task_agents import TaskAgents


class JobStage(StrEnum):
    """Where a task is on its way."""

    BLOCKED = "blocked"
    """Waits for other tasks: those that it depends on, or its own parts."""
    QUEUED = "queued"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True, kw_only=True)
class Job:
    """One task under way."""

    task: Task
    assignment: Assignment
    agents: TaskAgents
    place: JobStage = JobStage.BLOCKED
    state: TaskTransition = field(
        default_factory=lambda: TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    )
    ending: Ending | None = None
    workspace: Path | None = None
    """Of its newest attempt, or of its parts put together."""
    branch: str = ""
    slot: bool = False
    """Whether it counts against the concurrency. A parked one does not, nor when it goes on."""
    awaits: frozenset[str] = frozenset()
    """The tasks that it waits for now beside those of the task file: after a restart, a split."""
    attempt_run: AttemptRun | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """What its owner calls it."""
        return self.assignment.task.id

    @property
    def completed(self) -> bool:
        """Whether it ended well."""
        return self.state.lifecycle is Lifecycle.COMPLETED

    @property
    def failure(self) -> Ending:
        """With what ending that fails which needs this one: nobody has canceled that."""
        canceled = self.ending is Ending.CANCELED
        return Ending.ERROR if canceled else self.ending or Ending.ERROR

    @property
    def parked(self) -> bool:
        """Whether its attempt waits for a person."""
        return self.attempt_run is not None and self.attempt_run.parked

    def reopen(self, state: TaskTransition) -> None:
        """Let it go on though it was over: a person has it begun again."""
        self.place, self.state, self.ending = JobStage.BLOCKED, state, None
        self.over.clear()

    def part_of(self, whole: "Job") -> bool:
        """Whether it came of the split of another."""
        return self.assignment.parent == whole.name

    def sibling_of(self, other: "Job") -> bool:
        """Whether both are parts of one task: without git they build on each other's folder."""
        return bool(self.assignment.parent) and self.assignment.parent == other.assignment.parent

    def precedes(self, other: "Job") -> bool:
        """Whether it is the part just before another."""
        return self.sibling_of(other) and self.assignment.part == other.assignment.part - 1


async def latest_state(journal: Journal, task: Task) -> TaskTransition:
    """The last state of a task."""
    entries = await journal.entries(task=task.id, kinds=(TaskTransition,))
    states = (
        entry.record for entry in reversed(entries) if isinstance(entry.record, TaskTransition)
    )
    return next(states, TaskTransition(lifecycle=Lifecycle.SUBMITTED))  # where none can be read
