"""The lines on what was learned of one task, read from the journal."""

from datetime import datetime
from typing import TypedDict

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Attempt,
    Entry,
    Fact,
    Feedback,
    KnownLesson,
    Lesson,
    Recall,
    Recalled,
    Study,
    StudyState,
    Summary,
    Task,
)
from midwatch_supervisor.learning.line import (
    FactLine,
    FeedbackLine,
    GivenFact,
    GivenGuidelines,
    GivenLesson,
    Learnt,
    LessonLine,
    RecallLine,
    StudyLine,
    SummaryLine,
)


class _Subject(TypedDict):
    """What every line begins with."""

    at: datetime
    task: str
    attempt: int | None
    number: int | None
    id: int


class Lore:
    """Makes the lines; what a prompt held is looked up by its ids."""

    def __init__(self, journal: Journal, task: Task) -> None:
        self._journal = journal
        self._learned = Learned(journal)
        self._task = task
        self._attempts: dict[int, Attempt] = {}

    async def line(self, entry: Entry) -> Learnt | None:
        """The line of an entry of the task; `None` for what has none. Raises JournalError."""
        match entry.record:
            case Recall() as recall:
                return await self._recall(await self._subject(entry), recall)
            case Feedback() | Lesson() | Summary() | Fact() | Study():
                return _line(await self._subject(entry), entry.record)
            case _:
                return None

    async def _subject(self, entry: Entry) -> _Subject:
        number: int | None = None
        if entry.attempt is not None:
            if entry.attempt not in self._attempts:
                self._attempts[entry.attempt] = await self._journal.attempt(entry.attempt)
            number = self._attempts[entry.attempt].number
        return _Subject(
            at=entry.at,
            task=self._task.name,
            attempt=entry.attempt,
            number=number,
            id=entry.id,
        )

    async def _recall(self, subject: _Subject, recall: Recall) -> RecallLine:
        lessons = await self._learned.lessons(ids=[each.lesson for each in recall.lessons])
        facts = await self._learned.facts(ids=recall.facts, live=False)
        known = {each.id: each for each in lessons}
        texts = {each.id: each.fact.text for each in facts}
        version: GivenGuidelines | None = None
        if recall.guidelines is not None:
            found = await self._learned.guidelines_version(recall.guidelines)
            version = GivenGuidelines(id=found.id, version=found.guidelines.version)
        return RecallLine(
            **subject,
            lessons=tuple(_given(each, known.get(each.lesson)) for each in recall.lessons),
            facts=tuple(GivenFact(id=id, text=texts.get(id, "")) for id in recall.facts),
            guidelines=version,
            group=recall.group,
            tokens=recall.tokens,
            seconds=recall.seconds,
        )


def _given(recalled: Recalled, known: KnownLesson | None) -> GivenLesson:
    return GivenLesson(
        id=recalled.lesson,
        method=recalled.method,
        score=recalled.score,
        text=known.lesson.text if known else "",
        failure_class=known.lesson.failure_class if known else "",
        origin=known.lesson.origin if known else None,
        source_attempt=known.attempt if known else None,
    )


def _line(subject: _Subject, record: Feedback | Lesson | Summary | Fact | Study) -> Learnt | None:
    match record:
        case Feedback() as said:
            return FeedbackLine(
                **subject,
                accepted=said.accepted,
                origin=said.origin,
                author=said.author,
                sign=said.sign,
                comment=said.comment,
            )
        case Summary() as summary:
            return SummaryLine(
                **subject,
                text=summary.text,
                topics=summary.topics,
                turns=summary.turns,
                model=summary.model,
            )
        case Study(state=StudyState.DONE):
            return None  # what came of it has its own line
        case Study() as study:
            return StudyLine(
                **subject,
                about=study.about,
                chore=study.chore,
                state=study.state,
                reason=study.reason,
            )
        case _:
            return _kept(subject, record)


def _kept(subject: _Subject, record: Lesson | Fact) -> LessonLine | FactLine:
    if isinstance(record, Fact):
        return FactLine(
            **subject,
            text=record.text,
            certainty=record.certainty,
            files=record.files,
            tags=record.tags,
            state=record.state,
            maker=record.maker,
        )
    return LessonLine(
        **subject,
        text=record.text,
        failure_class=record.failure_class,
        insights=record.insights,
        tags=record.tags,
        steps=record.steps,
        origin=record.origin,
        verdict=record.verdict,
        model=record.model,
    )
