"""One task of a run in progress, and its stage."""

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
    """How far a task has got in its run."""

    BLOCKED = "blocked"
    """Waits for other tasks: those it depends on, those of a restart, or its own parts."""
    QUEUED = "queued"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True, kw_only=True)
class Job:
    """One task in progress."""

    task: Task
    assignment: Assignment
    agents: TaskAgents
    place: JobStage = JobStage.BLOCKED
    state: TaskTransition = field(
        default_factory=lambda: TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    )
    ending: Ending | None = None
    workspace: Path | None = None
    """Folder of its newest attempt, or of its assembled parts."""
    branch: str = ""
    slot: bool = False
    """Whether it counts against the concurrency. A parked task does not, even once it continues."""
    awaits: frozenset[str] = frozenset()
    """Names of the tasks that it waits for now: dependencies, its parts, or those of a restart."""
    attempt_run: AttemptRun | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """Id of the task in the task file."""
        return self.assignment.task.id

    @property
    def completed(self) -> bool:
        return self.state.lifecycle is Lifecycle.COMPLETED

    @property
    def failure(self) -> Ending:
        """Ending of the tasks that fail because this one did: an error if this one was canceled."""
        canceled = self.ending is Ending.CANCELED
        return Ending.ERROR if canceled else self.ending or Ending.ERROR

    @property
    def parked(self) -> bool:
        """Whether its attempt waits for a person."""
        return self.attempt_run is not None and self.attempt_run.parked

    def reopen(self, state: TaskTransition) -> None:
        """Let it continue after a person has begun it again."""
        self.place, self.state, self.ending = JobStage.BLOCKED, state, None
        self.over.clear()

    def part_of(self, whole: "Job") -> bool:
        """Whether it is a part of the task `whole`, which was split."""
        return self.assignment.parent == whole.name

    def sibling_of(self, other: "Job") -> bool:
        """Whether both are parts of one task. Without git, each copies the last one's folder."""
        return bool(self.assignment.parent) and self.assignment.parent == other.assignment.parent

    def precedes(self, other: "Job") -> bool:
        """Whether it is the part just before `other`."""
        return self.sibling_of(other) and self.assignment.part == other.assignment.part - 1


async def latest_state(journal: Journal, task: Task) -> TaskTransition:
    """Return the last transition of a task."""
    entries = await journal.entries(task=task.id, kinds=(TaskTransition,))
    states = (
        entry.record for entry in reversed(entries) if isinstance(entry.record, TaskTransition)
    )
    return next(states, TaskTransition(lifecycle=Lifecycle.SUBMITTED))  # no transition is readable
