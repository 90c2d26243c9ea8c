"""The result of one chore: records drawn from an ended attempt. Writes only facts."""

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from midwatch_agents.reflector import look_back, write_lesson
from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Chore,
    Fault,
    Feedback,
    Lesson,
    OpenChore,
    Record,
    Study,
    StudyState,
    Task,
)
from midwatch_monitor.records.verdict import teaches, verdict_of
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.learning.facts import review_attempt, store

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)

PART = "learning: reflector"
"""The part of Midwatch that a fault names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreResult:
    """The records drawn from an attempt, or the reason why there are none."""

    state: StudyState
    reason: str = ""
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreContext:
    """A chore, its ended attempt, and the model to ask."""

    journal: Journal
    settings: Settings
    chore: OpenChore
    task: Task
    attempt: Attempt
    model: "Model | None"
    lacks: str = ""
    """Why there is no model, if there should be one."""


async def lesson_from(context: ChoreContext) -> ChoreResult:
    """Return a rejection's lesson, or why there is none; raises WorkerError and JournalError."""
    about = context.chore.about
    case = await case_of(context.journal, context.task, context.attempt, about=about)
    if case.verdict is None:
        return ChoreResult(state=StudyState.REFUSED, reason="there is no such verdict")
    taught = await write_lesson(context.model, case, settings=context.settings)
    spent: tuple[Record, ...] = (taught.spending,) if taught.spending else ()
    if taught.lesson is None:
        return ChoreResult(state=StudyState.REFUSED, reason=taught.refused, records=spent)
    return ChoreResult(state=StudyState.DONE, records=(*spent, taught.lesson))


async def summary_from(context: ChoreContext, clock: Clock) -> ChoreResult:
    """Return the summary of an attempt; its facts are stored first.

    After a crash in between, the facts are found again and merged; in the other order they would be
    lost. Raises WorkerError and JournalError.
    """
    case = await case_of(context.journal, context.task, context.attempt)
    found = await look_back(context.model, case, settings=context.settings)
    spent: tuple[Record, ...] = (found.spending,) if found.spending else ()
    task, attempt, settings = context.task, context.attempt, context.settings
    await store(context.journal, task, attempt, found.facts, settings=settings, now=clock())
    return ChoreResult(state=StudyState.DONE, records=(*spent, found.summary))


async def review_from(context: ChoreContext, clock: Clock) -> ChoreResult | None:
    """Review an attempt's facts and apply the result; `None` if no facts wait.

    After its last failed try, the facts are settled without a model, so that none waits forever.
    Raises JournalError.
    """

    chore, settings = context.chore, context.settings

    async def settled(model: "Model | None", lacks: str) -> ChoreResult | None:
        where = context.journal, context.attempt, context.task
        study = await review_attempt(
            *where, model=model, settings=settings, now=clock(), lacks=lacks
        )
        return ChoreResult(state=study.state, reason=study.reason) if study else None

    if chore.tries >= settings.learning.tries:
        return await settled(None, f"it failed {chore.tries} times")
    try:
        return await settled(context.model, context.lacks)
    except Exception as error:
        if context.model is None or not is_last(chore, settings):
            raise
        log.warning(
            "the model did not review the facts of attempt %d; they wait for a person: %s",
            *(chore.attempt, error_reason(error)),
        )
        return await settled(None, f"it failed at its last try: {error_reason(error)}")


def is_last(chore: OpenChore, settings: Settings) -> bool:
    """Whether a chore is given up if it fails now."""
    return chore.tries + 1 >= settings.learning.tries


def note_fixed_form(drawn: ChoreResult, lacks: str) -> ChoreResult:
    """Add a fault that says why the result has only the fixed form; unchanged if `lacks` is empty.

    It is a fault of the attempt, since nobody reads the reasons of chores.
    """
    if not lacks:
        return drawn
    fault = Fault(part=PART, error=lacks)
    return replace(drawn, reason=drawn.reason or lacks, records=(*drawn.records, fault))


def error_reason(error: BaseException) -> str:
    """Return an error's message, but only the class of foreign errors, which might quote learned
    texts.
    """
    return str(error) if isinstance(error, MidwatchError) else type(error).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonResult:
    """The result of studying one attempt."""

    lesson: int | None = None
    """Journal id of the lesson from its newest verdict."""
    reason: str = ""
    """Why there is none."""


async def lesson_result(
    journal: Journal, attempt: int, *, settings: LearningSettings
) -> LessonResult:
    """Return the lesson of the newest verdict on an attempt, or why there is none."""
    rejection = 0
    kinds: tuple[type[Record], ...] = (AttemptTransition, Feedback, Lesson, Study)
    lessons: dict[int, int] = {}
    studies: dict[int, Study] = {}
    async for entry in journal.all_entries(attempt=attempt, kinds=kinds):
        match entry.record:
            case Lesson(verdict=int() as verdict):
                lessons[verdict] = entry.id
            case Study(about=about, chore=Chore.LESSON) as study:
                studies[about] = study
            case record if verdict_of(record) is not None:
                rejection = entry.id if teaches(record) else 0
            case _:
                pass
    if not rejection:
        return LessonResult(reason="there is no rejection to learn from")
    if rejection in lessons:
        return LessonResult(lesson=lessons[rejection])
    if rejection in studies:
        return LessonResult(reason=studies[rejection].reason)
    return LessonResult(reason=await _unchanged_reason(journal, attempt, settings))


async def _unchanged_reason(journal: Journal, attempt: int, settings: LearningSettings) -> str:
    if not settings.lessons.enabled:
        return "lessons are switched off"
    task = await journal.task((await journal.attempt(attempt)).task)
    return "" if task.project else "its task belongs to no project"
