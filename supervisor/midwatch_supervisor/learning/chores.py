"""What one chore comes to: the records that are drawn from an ended attempt. Writes nothing."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from midwatch_agents.learning.case import Case
from midwatch_agents.learning.text_safety import objection
from midwatch_agents.reflector import WrittenLesson, look_back, write_lesson
from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, MidwatchError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Chore,
    Fact,
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
from midwatch_supervisor.learning.facts import settle, store

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)

PART = "learning: reflector"
"""The part that a fault names."""
_UNFIT = "the comment is left out, because it may not stand in a prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was drawn from an attempt."""

    state: StudyState
    reason: str = ""
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A chore, the ended attempt that it is about, and who may be asked."""

    journal: Journal
    settings: Settings
    chore: OpenChore
    task: Task
    attempt: Attempt
    model: "Model | None"
    lacks: str = ""
    """Why there is no model, where there should be one."""


async def lesson_from(subject: Subject) -> Drawn:
    """The lesson of a rejection, or why there is none; raises WorkerError and JournalError."""
    settings, about = subject.settings, subject.chore.about
    case = await case_of(subject.journal, subject.task, subject.attempt, about=about)
    if case.verdict is None:
        return Drawn(state=StudyState.REFUSED, reason="there is no such verdict on this attempt")
    taught = await write_lesson(subject.model, case, settings=settings)
    if taught.lesson is None and subject.model is None and objection(case.verdict.comment):
        taught = await _without_comment(case, case.verdict, settings) or taught
    spent: tuple[Record, ...] = (taught.spending,) if taught.spending else ()
    if taught.lesson is None:
        return Drawn(state=StudyState.REFUSED, reason=taught.refused, records=spent)
    lesson = replace(
        taught.lesson,
        kind=case.kind,
        verdict=about,
        origin=case.verdict.origin,
        sources=case.sources,
    )
    return Drawn(state=StudyState.DONE, records=(*spent, lesson))


async def _without_comment(
    case: Case, verdict: Feedback, settings: Settings
) -> WrittenLesson | None:
    """The lesson without a comment that no prompt may hold, if there is more to say."""
    silent = replace(case, verdict=replace(verdict, comment=""))
    if (await write_lesson(None, silent, settings=settings)).lesson is None:
        return None
    told = replace(case, verdict=replace(verdict, comment=_UNFIT))
    return await write_lesson(None, told, settings=settings)


async def summary_from(subject: Subject, clock: Clock) -> Drawn:
    """The summary of an attempt; the facts that come with it are stored beforehand.

    So a crash in between repeats them, and the same facts are merged, where the other way round
    they would be lost. Raises WorkerError and JournalError.
    """
    case = await case_of(subject.journal, subject.task, subject.attempt)
    found = await look_back(subject.model, case, settings=subject.settings)
    spent: tuple[Record, ...] = (found.spending,) if found.spending else ()
    faults: tuple[Record, ...] = ()
    wanted = subject.settings.learning.facts
    if found.facts and wanted.enabled and wanted.extract:
        faults = await _stored(subject, found.facts, clock())
    return Drawn(state=StudyState.DONE, records=(*spent, found.summary, *faults))


async def _stored(subject: Subject, facts: tuple[Fact, ...], now: datetime) -> tuple[Fault, ...]:
    """Store what was found; a failure leaves the summary as it is, and is told."""
    journal, settings = subject.journal, subject.settings
    try:
        await store(journal, subject.task, subject.attempt, facts, settings=settings, now=now)
    except JournalError:
        raise
    except Exception as error:  # whatever is wrong with the facts, the summary is not
        log.warning(
            "the facts that attempt %d found could not be stored, only its summary: %s",
            *(subject.attempt.id, why(error)),
        )
        return (Fault(part="learning: facts", error=why(error)),)
    return ()


async def review_from(subject: Subject, clock: Clock) -> Drawn | None:
    """The review of an attempt's facts; `None` if none waits. It is applied at once.

    Where its last try fails, and from then on, it is done without a model: so no fact waits for
    ever, as long as the journal takes anything at all. Raises JournalError.
    """

    chore, settings = subject.chore, subject.settings

    async def settled(model: "Model | None", lacks: str) -> Drawn | None:
        where = subject.journal, subject.attempt, subject.task
        study = await settle(*where, model=model, settings=settings, now=clock(), lacks=lacks)
        return Drawn(state=study.state, reason=study.reason) if study else None

    if chore.tries >= settings.learning.tries:
        return await settled(None, f"it failed {chore.tries} times")
    try:
        return await settled(subject.model, subject.lacks)
    except Exception as error:
        if subject.model is None or not is_last(chore, settings):
            raise
        log.warning(
            "the facts of attempt %d are not reviewed by a model, and wait for a person: %s",
            *(chore.attempt, why(error)),
        )
        return await settled(None, f"it failed at its last try: {why(error)}")


def is_last(chore: OpenChore, settings: Settings) -> bool:
    """Whether a chore is given up if it fails now."""
    return chore.tries + 1 >= settings.learning.tries


def fixed_form(drawn: Drawn, lacks: str) -> Drawn:
    """What was drawn, with word of why it has but the fixed form; `lacks` is empty if it has not.

    The word is a fault of the attempt, because nobody reads what was done of a chore.
    """
    if not lacks:
        return drawn
    fault = Fault(part=PART, error=lacks)
    return replace(drawn, reason=drawn.reason or lacks, records=(*drawn.records, fault))


def why(error: BaseException) -> str:
    """An error in words; only the name of one of others, which might quote what was learned."""
    return str(error) if isinstance(error, MidwatchError) else type(error).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """What came of studying one attempt."""

    lesson: int | None = None
    """The lesson that its newest verdict came to, by journal id."""
    reason: str = ""
    """Why there is none."""


async def studied(journal: Journal, attempt: int, *, settings: LearningSettings) -> Studied:
    """The lesson of the newest verdict on an attempt, or why there is none."""
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
        return Studied(reason="there is no rejection to learn from")
    if rejection in lessons:
        return Studied(lesson=lessons[rejection])
    if rejection in studies:
        return Studied(reason=studies[rejection].reason)
    return Studied(reason=await _untouched(journal, attempt, settings))


async def _untouched(journal: Journal, attempt: int, settings: LearningSettings) -> str:
    if not settings.lessons.enabled:
        return "lessons are switched off"
    task = await journal.task((await journal.attempt(attempt)).task)
    return "" if task.project else "its task belongs to no project"
