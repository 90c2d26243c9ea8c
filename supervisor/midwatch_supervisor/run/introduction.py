"""What a worker is told before it begins: what was learned, its plan, its first prompt."""

from dataclasses import dataclass

from midwatch_agents.prompt import Past, opening
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Attempt, Task
from midwatch_supervisor.learning.recall import Asker, recall
from midwatch_supervisor.learning.similar_tasks import precedents
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.attempt_start import circumstances, drafted
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.workspaces.changes import listing
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.instructions import outline
from midwatch_tools.tools.board import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Introduces one attempt to its work."""

    resources: RunResources
    task: Task
    assignment: Assignment
    agents: TaskAgents
    attempt: Attempt
    workspace: Workspace
    past: tuple[Past, ...] = ()

    async def prompt(self, recorder: Recorder, board: Board) -> str:
        """The first prompt; what is in it of lessons and facts is in the journal by then.

        Has the planner write the plan first, unless there is one; it reads what was learned too.
        """
        blocks = DataBlocks.drawn()
        learned = await self._learned(recorder, blocks)
        await self._plan(recorder, learned)
        # A planner has read how similar tasks went; its plan says what follows from it.
        before = not self.assignment.planned
        return opening(
            self.assignment.task,
            outline(recorder.plan),
            number=self.attempt.number,
            past=self.past,
            blocks=blocks,
            learned=learned,
            board=await board.beside(blocks),
            precedents=await precedents(self.resources.journal, self.task) if before else "",
            provisional=self.assignment.provisional,
        )

    async def _learned(self, recorder: Recorder, blocks: DataBlocks) -> str:
        asker = Asker(
            task=self.task,
            assignment=self.assignment,
            attempt=self.attempt,
            plan=recorder.plan,
        )
        given = await recall(
            self.resources.journal, asker, self.resources.settings.learning, blocks
        )
        if given.records:
            await recorder.record(*given.records)
        return given.text

    async def _plan(self, recorder: Recorder, learned: str) -> None:
        if recorder.plan.steps:
            return
        went = await precedents(self.resources.journal, self.task)
        outlined = await drafted(
            self.agents.planner,
            self.assignment,
            past=self.past,
            precedents="\n\n".join(filter(None, (went, learned))),
            listing=await listing(self.workspace),
            settings=self.resources.settings,
        )
        begun = circumstances(outlined.plan, recorder.budget, self.resources.settings)
        await recorder.record(*outlined.records, *begun)
