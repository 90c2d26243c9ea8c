"""Looks up what was learned for an attempt, once, while it is set up.

Nothing here may delay the work: what is not found in a few seconds is left out, with a fault.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from midwatch_agents.learning.lessons import choose_lessons, how_many
from midwatch_agents.learning.section import LearnedText, learned_text
from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.config.learning import LearningSettings, LessonSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.journal.learned.search import search_words
from midwatch_monitor.records import (
    Attempt,
    Fault,
    Feedback,
    Group,
    KnownFact,
    KnownLesson,
    LearnedQuery,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Method,
    Origin,
    Plan,
    PlanStepState,
    Recall,
    Recalled,
    Record,
    Step,
    Task,
    TaskTransition,
)
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_supervisor.learning.attempt_case import kind_of
from midwatch_supervisor.learning.chores import error_reason
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.numbers import count_noun
from midwatch_tools.data_blocks import DataBlocks, plain
from midwatch_tools.tools.facts import repeats

log = logging.getLogger(__name__)

PART = "learning: recall"
"""The part of Midwatch that a fault names."""
_SECONDS = 5.0
"""Longest time that an attempt waits."""
_RECENT = 50
"""Number of recent lessons whose use adapts the number of lessons given."""
_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledText:
    """The text for the first prompt, and the records about it."""

    text: str = ""
    records: tuple[Record, ...] = ()
    """To be recorded before the prompt is sent; empty if that was done before a crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """The task and attempt for which something is looked up."""

    task: Task
    assignment: Assignment
    attempt: Attempt
    plan: Plan
    """The owner's plan, or the previous attempt's; the planner's is not written yet."""


async def recall(
    journal: Journal,
    request: RecallRequest,
    settings: LearningSettings,
    blocks: DataBlocks,
    *,
    seconds: float = _SECONDS,
    ticks: Callable[[], float] = time.monotonic,
) -> RecalledText:
    """Look up what an attempt is given. Never raises: a failure becomes a fault.

    After a crash, the recorded selection is used again, and no use is counted twice.
    """
    if not settings.prompt_tokens or not request.task.project:
        return RecalledText()
    began = ticks()
    try:
        async with asyncio.timeout(seconds):
            before = await _read_recall(journal, request.attempt)
            if before is not None:
                again = await _recorded_selection(journal, before, settings, blocks)
                return RecalledText(text=again.text)
            found, group = await _find_learned(journal, request, settings, blocks)
    except Exception as error:  # whatever it is, the work continues without
        log.warning(
            "attempt %d begins without lessons, facts and guidelines: %s",
            request.attempt.id,
            error_reason(error),
        )
        return RecalledText(records=(Fault(part=PART, error=error_reason(error)),))
    if not found.text and group is Group.NONE:  # nothing is given, and nothing is compared
        return RecalledText()
    record = Recall(
        lessons=found.lessons,
        facts=found.facts,
        guidelines=found.guidelines or None,
        group=group,
        tokens=found.tokens,
        seconds=round(ticks() - began, 3),
    )
    return RecalledText(text=found.text, records=(record,))


def group_of(project: str, task: str, share: float) -> Group:
    """Return a task's group in the comparison: the same in each run and on each machine."""
    if not share:
        return Group.NONE
    digest = blake2b(f"{project}\0{task}".encode(), digest_size=_BYTES).digest()
    drawn = int.from_bytes(digest) / 256**_BYTES
    return Group.CONTROL if drawn < share else Group.TREATMENT


def query_for(request: RecallRequest) -> LearnedQuery:
    """Return the query for texts that fit an attempt."""
    spec = request.assignment.task
    files = [file for step in request.plan.steps for file in step.files]
    return LearnedQuery(
        project=request.task.project,
        task=request.task.name,
        text=f"{spec.label}\n{spec.goal}",
        tags=spec.tags,
        kind=kind_of(request.assignment, request.attempt.worker),
        files=tuple(dict.fromkeys(files)),
    )


async def _read_recall(journal: Journal, attempt: Attempt) -> Recall | None:
    entries = await journal.entries(attempt=attempt.id, kinds=(Recall,), limit=1)
    return next((each.record for each in entries if isinstance(each.record, Recall)), None)


async def _find_learned(
    journal: Journal, request: RecallRequest, settings: LearningSettings, blocks: DataBlocks
) -> tuple[LearnedText, Group]:
    known, group = Learned(journal), Group.NONE
    lessons: Sequence[tuple[Recalled, KnownLesson]] = ()
    facts: Sequence[KnownFact] = ()
    if settings.lessons.enabled:
        # The parts of a split task belong to the group of the whole.
        whole = request.assignment.parent or request.task.name
        group = group_of(request.task.project, whole, settings.lessons.control_share)
        if group is not Group.CONTROL:
            earlier = await _earlier_attempts(journal, request.attempt)
            lessons = await _find_lessons(known, request, earlier, settings.lessons)
    if given := await _given_by_person(journal, request.task):
        ids = {recalled.lesson for recalled, _ in given}
        lessons = [*given, *(each for each in lessons if each[0].lesson not in ids)]
        # Lessons chosen by a person make the attempt neither a control nor a random sample.
        group = Group.NONE
    if settings.facts.enabled and settings.facts.in_prompt:
        found = await known.facts_like(query_for(request), limit=settings.facts.in_prompt)
        # Facts that waited for a person together may say the same.
        facts = [
            each
            for at, each in enumerate(found)
            if not any(repeats(each.fact, other.fact) for other in found[:at])
        ]
    guidelines = await known.live_guidelines(request.task.project)
    tokens = settings.prompt_tokens
    return learned_text(guidelines, lessons, facts, tokens=tokens, blocks=blocks), group


async def _earlier_attempts(journal: Journal, attempt: Attempt) -> frozenset[int]:
    """Return the ids of the task's earlier attempts: the prompt describes them itself."""
    attempts = await journal.attempts(attempt.task)
    return frozenset(each.id for each in attempts if each.number < attempt.number)


async def _find_lessons(
    known: Learned, request: RecallRequest, earlier: Container[int], settings: LessonSettings
) -> list[tuple[Recalled, KnownLesson]]:
    wanted = query_for(request)
    recent: Sequence[KnownLesson] = ()
    if settings.adaptive:
        recent = await known.lessons(project=wanted.project, limit=_RECENT)
    candidates = [
        each for each in await known.candidates(wanted) if not _is_in_prompt(each.known, earlier)
    ]
    by_id = {each.known.id: each.known for each in candidates}
    found = choose_lessons(candidates, wanted, limit=how_many(settings, recent))
    return [(each, by_id[each.lesson]) for each in found]


def _is_in_prompt(lesson: KnownLesson, earlier: Container[int]) -> bool:
    """Whether a lesson comes only from attempts that the prompt describes itself."""
    if lesson.lesson.born is LessonOrigin.PERSON:
        return False
    return all(attempt in earlier for attempt in lesson.lesson.sources or (lesson.attempt,))


async def _given_by_person(journal: Journal, task: Task) -> list[tuple[Recalled, KnownLesson]]:
    """Return the lessons a person chose for the task's next attempt, in their order.

    One that did not fit into a prompt is given to the following attempt; one that was retired
    meanwhile is not. Raises JournalError.
    """
    waiting: dict[int, None] = {}
    async for entry in journal.all_entries(task=task.id, kinds=(LessonMark, Recall)):
        match entry.record:
            case LessonMark(act=LessonAct.GIVEN) as mark:
                waiting[mark.lesson] = None
            case Recall() as recall:
                for each in recall.lessons:
                    waiting.pop(each.lesson, None)
            case _:
                pass
    if not waiting:
        return []
    found = await Learned(journal).lessons(project=task.project, ids=list(waiting), obsolete=False)
    by_id = {known.id: known for known in found}
    return [
        (Recalled(lesson=id, method=Method.MANUAL, score=1.0), by_id[id])
        for id in waiting
        if id in by_id
    ]


async def _recorded_selection(
    journal: Journal, before: Recall, settings: LearningSettings, blocks: DataBlocks
) -> LearnedText:
    """Return the recorded selection; what was retired meanwhile does not come back."""
    known = Learned(journal)
    lessons = await known.lessons(ids=[each.lesson for each in before.lessons], obsolete=False)
    facts = await known.facts(ids=before.facts)
    by_id, facts_by_id = {each.id: each for each in lessons}, {each.id: each for each in facts}
    version = before.guidelines
    guidelines = await known.guidelines_version(version) if version is not None else None
    return learned_text(
        guidelines,
        [(each, by_id[each.lesson]) for each in before.lessons if each.lesson in by_id],
        [facts_by_id[id] for id in before.facts if id in facts_by_id],
        tokens=settings.prompt_tokens,
        blocks=blocks,
    )


MAX_CHARS = 1_500
_TITLE_CHARS = 80

_KINDS = (TaskTransition, Plan, Step, Feedback)


async def precedents(journal: Journal, task: Task, *, limit: int = 5) -> str:
    """Return how at most `limit` similar finished tasks of the project went, one per line.

    The most similar first, and the newest of equally similar ones; at most 1,500 characters, and
    empty if there are none. Contains no text by workers, because nobody has reviewed it.
    """
    lines: list[str] = []
    alike = await _similar_tasks(journal, task) if project_of(task) else []
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


async def _similar_tasks(journal: Journal, task: Task) -> list[Task]:
    """Return the project's tasks that share words with a task, the most similar first."""
    project, about = project_of(task), _task_words(task)
    rated: list[tuple[float, int, Task]] = []
    for run in await journal.runs():
        for each in await journal.tasks(run.id):
            if each.id != task.id and project_of(each) == project:
                words = _task_words(each)
                if common := about & words:
                    rated.append((len(common) / len(about | words), each.id, each))
    return [each for *_, each in sorted(rated, reverse=True)]


def _task_words(task: Task) -> frozenset[str]:
    return frozenset(search_words(f"{task.title} {_task_goal(task)}"))


async def _precedent(journal: Journal, task: Task) -> str:
    """Return one line about how a task went; empty if it is not over."""
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
    """Return a person's last verdict on the result; else what the person did with it."""
    if (said := verdicts.get(Origin.EXPLICIT)) is not None:
        return f", then {'accepted' if said.accepted else 'rejected'} by a person"
    implied = verdicts.get(Origin.IMPLIED)
    return f", then {implied.sign} by a person" if implied is not None else ""


def _task_goal(task: Task) -> str:
    """Return a task's goal; its specification may be of any version."""
    return JsonNode(task.spec).decoded["task"]["goal"].text
