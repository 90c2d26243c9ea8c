"""A run's interface to learning: what it takes from earlier runs, and what it leaves."""

from collections.abc import Iterable

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Attempt, Plan, Record, Task
from midwatch_supervisor.learning.learner import Learner
from midwatch_supervisor.learning.recall import RecallRequest, precedents, recall
from midwatch_supervisor.learning.reflectors import reflects
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tools.data_blocks import DataBlocks


class RunLearning:
    """Gives attempts what was learned, and learns from them while the run continues."""

    def __init__(self, journal: Journal, *, settings: Settings, clock: Clock, bus: Bus) -> None:
        self._journal = journal
        self._settings = settings.learning
        self._learner = Learner(journal, settings=settings, clock=clock, bus=bus)

    async def precedents(self, task: Task) -> str:
        """Return how similar tasks of the project went."""
        return await precedents(self._journal, task)

    async def recall(
        self, task: Task, assignment: Assignment, attempt: Attempt, plan: Plan, blocks: DataBlocks
    ) -> tuple[str, tuple[Record, ...]]:
        """Return the learned text for an attempt's first prompt, and the records about it."""
        request = RecallRequest(task=task, assignment=assignment, attempt=attempt, plan=plan)
        given = await recall(self._journal, request, self._settings, blocks)
        return given.text, given.records

    def reviews_facts(self, assignment: Assignment) -> bool:
        """Whether a model reviews new facts; otherwise they wait for a person."""
        return self._settings.facts.review and reflects(assignment)

    async def run(self) -> None:
        """Learn until canceled."""
        await self._learner.run()

    async def finish(self, projects: Iterable[str]) -> None:
        """Learn from the end of the run, for at most the configured time."""
        await self._learner.finish(projects, seconds=self._settings.end_seconds)
