"""How similar tasks of the same project went: for whoever plans or does a task."""

import re
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from midwatch_agents.learning.likeness import jaccard
from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Feedback,
    Origin,
    Plan,
    PlanStepState,
    Record,
    Step,
    Task,
    TaskTransition,
)
from midwatch_tools.data_blocks import plain

MAX_CHARS = 1_500
_TITLE_CHARS = 80

_WORD = re.compile(r"[^\W_]{3,}")
_EMPTY = """
all and are but can does for from has have into its may must not now off one only our out shall
should than that the them then they this use was what when which will with you
"""
_EMPTY_WORDS = frozenset(_EMPTY.split())
"""What two goals may share without being alike."""


class _Wanted(BaseModel):
    goal: str = ""


class _Spec(BaseModel):
    """What of a stored task tells what it is about; the rest may be of any version."""

    task: _Wanted = _Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """How one finished task went."""

    title: str
    run: int
    outcome: str
    attempts: int
    steps: int
    """Of all attempts together."""
    done: int
    """Plan steps that were finished in the last attempt."""
    planned: int
    passed: int = 0
    """Acceptance checks that passed in the end."""
    checks: int = 0
    verdict: str = ""
    """What a person made of the result afterwards."""


async def precedents(journal: Journal, task: Task, *, limit: int = 5) -> str:
    """How at most `limit` similar finished tasks of the project went, one a line.

    The most similar first, of equally similar ones the newest; at most 1,500 characters, and
    nothing where there is none. No words of workers are in it: nobody has looked at those.
    """
    project, about = project_of(task), words(f"{task.title} {_goal(task)}")
    lines: list[str] = []
    alike = await _alike(journal, task, about) if project else []
    for other in alike:
        end = await _last(journal, other, TaskTransition)
        if not isinstance(end, TaskTransition) or not end.lifecycle.over:
            continue
        told = described(await _precedent(journal, other, end))
        if len("\n".join([*lines, told])) > MAX_CHARS:
            break
        lines.append(told)
        if len(lines) == limit:
            break
    return "\n".join(lines)


async def _alike(journal: Journal, task: Task, about: frozenset[str]) -> list[Task]:
    """The tasks of the same project that have words in common with one, the most alike first."""
    project = project_of(task)
    others = [
        each
        for run in await journal.runs()
        for each in await journal.tasks(run.id)
        if each.id != task.id and project_of(each) == project
    ]
    rated = [(jaccard(about, words(f"{each.title} {_goal(each)}")), each) for each in others]
    return [each for _, each in sorted((pair for pair in rated if pair[0]), key=_rank)]


def _rank(rated: tuple[float, Task]) -> tuple[float, int]:
    return -rated[0], -rated[1].id


async def _precedent(journal: Journal, task: Task, end: TaskTransition) -> Precedent:
    attempts = await journal.attempts(task.id)
    plan = await _last(journal, task, Plan)
    plan_steps = plan.steps if isinstance(plan, Plan) else ()
    return Precedent(
        title=task.title or task.name,
        run=task.run,
        outcome=end.lifecycle,
        attempts=len(attempts),
        steps=await _steps(journal, task),
        done=sum(each.state is PlanStepState.DONE for each in plan_steps),
        planned=len(plan_steps),
        passed=end.passed,
        checks=end.total,
        verdict=await _verdict(journal, task),
    )


async def _verdict(journal: Journal, task: Task) -> str:
    """What a person said of the result last; else what the person did with it."""
    said: dict[Origin, Feedback] = {}
    async for entry in journal.all_entries(task=task.id, kinds=(Feedback,)):
        if isinstance(entry.record, Feedback):
            said[entry.record.origin] = entry.record
    verdict = said.get(Origin.EXPLICIT) or said.get(Origin.IMPLIED)
    if verdict is None:
        return ""
    if verdict.origin is Origin.EXPLICIT:
        return f"then {'accepted' if verdict.accepted else 'rejected'} by a person"
    return f"then {verdict.sign} by a person"


async def _last(journal: Journal, task: Task, kind: type[Record]) -> Record | None:
    """The newest record of a kind that a task has."""
    found = None
    async for entry in journal.all_entries(task=task.id, kinds=(kind,)):
        found = entry.record
    return found


async def _steps(journal: Journal, task: Task) -> int:
    after, count = 0, 0
    while page := await journal.entries(after, task=task.id, kinds=(Step,)):
        after, count = page[-1].id, count + len(page)
    return count


def _goal(task: Task) -> str:
    try:
        return _Spec.model_validate_json(task.spec).task.goal
    except ValidationError:
        return ""


def words(text: str) -> frozenset[str]:
    """The words that tell what a text is about, in small letters."""
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY_WORDS


def described(precedent: Precedent) -> str:
    """A precedent in one line."""
    tries = "1 attempt" if precedent.attempts == 1 else f"{precedent.attempts} attempts"
    steps = "1 step" if precedent.steps == 1 else f"{precedent.steps} steps"
    told = (
        f"- {plain(precedent.title, _TITLE_CHARS)} (run {precedent.run}): {precedent.outcome} "
        f"after {tries}, {steps}"
    )
    if precedent.planned > 1:
        told += f"; {precedent.done} of {precedent.planned} plan steps done"
    if precedent.checks:
        told += f"; {precedent.passed} of {precedent.checks} checks passed"
    return f"{told}, {precedent.verdict}" if precedent.verdict else told
