"""Where a person marks what was learned: every mark becomes a row of the journal."""

from dataclasses import replace

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import (
    Actor,
    Attempt,
    Birth,
    Commit,
    Draft,
    Entry,
    Fact,
    FactAct,
    FactMark,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    LessonAct,
    LessonMark,
    Origin,
    Record,
)


class LearningActions:
    """A person's side of lessons, facts and guidelines, each known by its journal id.

    It decides nothing: whether a mark makes sense, callers know. Every method answers the mark's
    journal id. It raises JournalError where there is nothing of that kind with that id, and
    StaleIncarnationError where somebody else settled a version of the guidelines meanwhile.
    """

    def __init__(
        self, journal: Journal, *, author: str, bus: Bus | None = None, clock: Clock | None = None
    ) -> None:
        """Mark in a journal as `author`; without a clock, its database is asked at each mark."""
        self._journal = journal
        self._bus = bus
        self._clock = clock
        self.author = author

    async def mark_lesson(
        self, lesson: int, act: LessonAct, comment: str = "", *, rating: int = 0
    ) -> int:
        """Retire, restore or rate a lesson. One that waits for a person is restored too."""
        mark = LessonMark(
            lesson=lesson, act=act, rating=rating, author=self.author, comment=comment
        )
        return await self._write(lesson, Lesson, mark)

    async def add_lesson(self, lesson: Lesson, attempt: Attempt) -> int:
        """Keep a lesson that the author wrote, with an attempt of the project that it is for."""
        record = replace(lesson, born=Birth.PERSON, origin=Origin.EXPLICIT, author=self.author)
        return await self._commit(record, task=attempt.task, attempt=attempt.id)

    async def give_lesson(self, lesson: int, task: int, comment: str = "") -> int:
        """Let the next attempt of a task be given a lesson of its project."""
        mark = LessonMark(lesson=lesson, act=LessonAct.GIVEN, author=self.author, comment=comment)
        return await self._commit(mark, task=task)

    async def mark_fact(self, fact: int, act: FactAct, reason: str = "") -> int:
        """Share a fact that waits, take one back, or let one that ended stand again."""
        mark = FactMark(fact=fact, act=act, reason=reason, author=self.author)
        return await self._write(fact, Fact, mark)

    async def mark_guidelines(self, version: int, act: GuidelinesAct, comment: str = "") -> int:
        """Approve or reject a version, or roll it back: what was before it is in force again."""
        mark = GuidelinesMark(
            guidelines=version, act=act, by=Actor.OPERATOR, author=self.author, comment=comment
        )
        return await self._write(version, Guidelines, mark)

    async def _write(self, about: int, kind: type[Record], mark: Record) -> int:
        marked = await self._marked(about, kind)
        return await self._commit(mark, task=marked.task, attempt=marked.attempt)

    async def _commit(self, record: Record, *, task: int, attempt: int | None = None) -> int:
        at = self._clock() if self._clock else await self._journal.now()
        draft = Draft(record=record, at=at, task=task, attempt=attempt)
        (entry,) = await self._journal.commit(Commit(drafts=(draft,)))
        if self._bus is not None:
            self._bus.publish(hint_of(entry))
        return entry.id

    async def _marked(self, id: int, kind: type[Record]) -> Entry:
        """The entry that is marked: its mark stands with the same task and attempt."""
        for entry in await self._journal.entries(id - 1, limit=1):
            if entry.id == id and isinstance(entry.record, kind):
                return entry
        raise JournalError(f"{self._journal.name} has no {kind.__name__.lower()} {id}")
