"""The planner: a model that writes the plan steps of a task before a worker begins."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.models import Model

from midwatch_agents.consultation import Consulted, consult
from midwatch_agents.paths import inside
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Plan, PlanStep
from midwatch_tools.data_blocks import DATA_RULE, DataBlocks, fold_lines

MAX_STEPS = 12

INSTRUCTIONS = f"""\
You plan the work of an AI worker. Write the plan steps that lead from the workspace as it is to the
goal, in the order in which they are done.

- As few plan steps as the work needs. A small task is one plan step.
- Each one can be checked by itself: name the files that it leaves behind, relative to the
  workspace, or commands that exit with 0 once it is done, or both. A command must be able to run
  after this plan step, without those that follow.
- Of several ways choose the simplest: the fewest new files, no new dependency, no rewriting of what
  works.
- What the plan takes for granted and nobody has looked at is looked at first.
- Confidence is how sure you are, in percent, that the plan step goes as you wrote it. Say a low
  number where it rests on what you have not seen: such a plan step is given more time.
- Do not plan what the goal does not ask for.

{DATA_RULE} Learn from how similar tasks went: what failed there is not tried the same way again."""

Title = Annotated[
    str, Field(min_length=1, max_length=200, description="What is done, in one line.")
]
Files = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=300)]],
    Field(max_length=30, description="Files that it leaves behind, relative to the workspace."),
]
Commands = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=500)]],
    Field(max_length=10, description="Shell commands that exit with 0 once it is done."),
]
Sure = Annotated[int, Field(ge=0, le=100, description="How sure you are of it, in percent.")]


class DraftStep(BaseModel):
    """One plan step."""

    title: Title
    files: Files = []
    acceptance: Commands = []
    confidence: Sure


class PlanDraft(BaseModel):
    """The plan."""

    steps: Annotated[list[DraftStep], Field(min_length=1)]


async def draft_plan(
    model: Model,
    *,
    goal: str,
    acceptance: Sequence[str],
    precedents: str,
    listing: str,
    settings: Settings,
) -> Consulted[Plan]:
    """Have a plan written; raises WorkerError with the reason if there is no usable one.

    Args:
        model: The planner's model.
        goal: The goal in the words of the task's owner.
        acceptance: The checks that decide about the task at the end.
        precedents: How similar tasks went; given as data, like the listing.
        listing: The files of the workspace, one a line.
        settings: The time limit, and how much evidence is shown.
    """
    bounds = settings.supervisor
    room = bounds.max_evidence_chars // 2
    checks = "\n".join(f"- {check}" for check in acceptance) or "- none"
    blocks = DataBlocks.with_new_code()
    prompt = "\n\n".join(
        [
            blocks.head,
            f"Write a plan of at most {MAX_STEPS} plan steps.",
            f"# Goal\n\n{goal.strip()}",
            f"# Checks that are run in the end\n\n{checks}",
            blocks.quote("how similar tasks went", precedents, room),
            blocks.quote("files of the workspace", listing, room),
        ]
    )
    told = await consult(
        model,
        prompt,
        role=Role.PLANNER,
        instructions=INSTRUCTIONS,
        answer=PlanDraft,
        check=check_draft,
        deps=None,
        seconds=bounds.timeout_seconds,
    )
    plan = Plan(steps=tuple(map(_plan_step, told.answer.steps)))
    return Consulted(answer=plan, spending=told.spending)


def check_draft(_: RunContext[None], draft: PlanDraft) -> PlanDraft:
    """Return the plan if it can be followed and checked; else raise ModelRetry with the fault."""
    if len(draft.steps) > MAX_STEPS:
        raise ModelRetry(f"{len(draft.steps)} plan steps are too many: at most {MAX_STEPS}.")
    titles = [fold_lines(step.title) for step in draft.steps]
    for number, step in enumerate(draft.steps, start=1):
        if titles.count(titles[number - 1]) > 1:
            raise ModelRetry(f"Several plan steps are called {step.title!r}: name them apart.")
        if not step.files and not step.acceptance:
            raise ModelRetry(
                f"Plan step {number} cannot be checked: name a file that it leaves behind, or a "
                "command that exits with 0 once it is done."
            )
        outside = [path for path in step.files if inside(path) is None]
        if outside:
            lie = "is" if len(outside) == 1 else "are"
            raise ModelRetry(
                f"Plan step {number}: {', '.join(outside)} {lie} outside the workspace. Paths are "
                "relative to the workspace."
            )
    return draft


def _plan_step(step: DraftStep) -> PlanStep:
    files = [path for each in step.files if (path := inside(each)) is not None]
    return PlanStep(
        title=" ".join(step.title.split()),
        files=tuple(dict.fromkeys(files)),
        acceptance=tuple(step.acceptance),
        confidence=step.confidence,
    )
