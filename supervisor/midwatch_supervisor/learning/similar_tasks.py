"""How similar tasks of the same project went: for whoever plans or does a task."""

from collections.abc import Mapping

from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.search import search_words
from midwatch_monitor.records import (
    Feedback,
    Origin,
    Plan,
    PlanStepState,
    Step,
    Task,
    TaskTransition,
)
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_supervisor.present.numbers import count_noun
from midwatch_tools.data_blocks import plain

MAX_CHARS = 1_500
_TITLE_CHARS = 80

_KINDS = (TaskTransition, Plan, Step, Feedback)


async def precedents(journal: Journal, task: Task, *, limit: int = 5) -> str:
    """How at most `limit` similar finished tasks of the project went, one a line.

    The most similar first, of equally similar ones the newest; at most 1,500 characters, and
    nothing where there is none. No words of workers are in it: nobody has looked at those.
    """
    lines: list[str] = []
    alike = await _alike(journal, task) if project_of(task) else []
    for other in alike:
        line = await _precedent(journal, other)
        if not line:
            continue
        if len("\n".join([*lines, line])) > MAX_CHARS:
            break
        lines.append(line)
        if len(lines) == limit:
            break
    return "\n".join(lines)


async def _alike(journal: Journal, task: Task) -> list[Task]:
    """The tasks of the same project that have words in common with one, the most alike first."""
    project, about = project_of(task), _words(task)
    rated: list[tuple[float, int, Task]] = []
    for run in await journal.runs():
        for each in await journal.tasks(run.id):
            if each.id != task.id and project_of(each) == project:
                words = _words(each)
                if common := about & words:
                    rated.append((len(common) / len(about | words), each.id, each))
    return [each for *_, each in sorted(rated, reverse=True)]


def _words(task: Task) -> frozenset[str]:
    return frozenset(search_words(f"{task.title} {_goal(task)}"))


async def _precedent(journal: Journal, task: Task) -> str:
    """How one task went, in a line; empty if it is not over."""
    end, plan, steps = None, Plan(steps=()), 0
    verdicts: dict[Origin, Feedback] = {}
    async for entry in journal.all_entries(task=task.id, kinds=_KINDS):
        match entry.record:
            case TaskTransition() as state:
                end = state
            case Plan() as newest:
                plan = newest
            case Step():
                steps += 1
            case Feedback(origin=origin) as verdict:
                verdicts[origin] = verdict
            case _:
                pass
    if end is None or not end.lifecycle.over:
        return ""
    attempts = count_noun(len(await journal.attempts(task.id)), "attempt")
    line = (
        f"- {plain(task.title or task.name, _TITLE_CHARS)} (run {task.run}): {end.lifecycle} "
        f"after {attempts}, {count_noun(steps, 'step')}"
    )
    if len(plan.steps) > 1:
        done = sum(each.state is PlanStepState.DONE for each in plan.steps)
        line += f"; {done} of {len(plan.steps)} plan steps done"
    if end.total:
        line += f"; {end.passed} of {end.total} checks passed"
    return line + _verdict_words(verdicts)


def _verdict_words(verdicts: Mapping[Origin, Feedback]) -> str:
    """What a person said of the result last; else what the person did with it."""
    if (said := verdicts.get(Origin.EXPLICIT)) is not None:
        return f", then {'accepted' if said.accepted else 'rejected'} by a person"
    implied = verdicts.get(Origin.IMPLIED)
    return f", then {implied.sign} by a person" if implied is not None else ""


def _goal(task: Task) -> str:
    """What a task is about; its specification may be of any version."""
    return JsonNode(task.spec).decoded["task"]["goal"].text
