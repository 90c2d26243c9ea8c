"""What a person may do about what was learned, when it makes sense, and how it is stored."""

from dataclasses import replace
from enum import StrEnum

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock, present
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
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    LessonAct,
    LessonMark,
    Origin,
    Record,
)
from midwatch_supervisor.present.known_text import Known


class LearningMark(StrEnum):
    """One thing that a person does about what was learned."""

    RATE = "rate"
    RETIRE = "retire"
    RESTORE = "restore"
    APPROVE = "approve"
    REJECT = "reject"
    ROLL_BACK = "roll back"


def refusal(mark: LearningMark, known: Known) -> str:
    """Why a mark makes no sense; empty if it does."""
    if isinstance(known, KnownGuidelines):
        return _refused_version(mark, known)
    if mark in {LearningMark.REJECT, LearningMark.ROLL_BACK}:
        return "that is for guidelines"
    if mark is LearningMark.RATE:
        return "" if isinstance(known, KnownLesson) else "only lessons are rated"
    if mark is LearningMark.APPROVE:
        return "" if known.waiting else "it does not wait for anybody"
    gone = known.obsolete if isinstance(known, KnownLesson) else not known.live
    if mark is LearningMark.RETIRE:
        return "nobody gets it any more already" if gone else ""
    return "" if gone else "it waits: approve it" if known.waiting else "it stands as it is"


def _refused_version(mark: LearningMark, known: KnownGuidelines) -> str:
    if mark in {LearningMark.APPROVE, LearningMark.REJECT}:
        needed, called = GuidelinesState.PROPOSED, "proposed"
    elif mark is LearningMark.ROLL_BACK:
        needed, called = GuidelinesState.LIVE, "in force"
    else:
        return "guidelines are approved, rejected or rolled back"
    return "" if known.state is needed else f"it is not {called}; it is {known.state}"


def became(mark: LearningMark, known: Known, rating: int = 0) -> str:
    """What becomes of it by a mark, behind `it is`."""
    match mark:
        case LearningMark.RATE:
            return f"rated {rating} of 5"
        case LearningMark.RETIRE:
            return "retired: it never comes back into a prompt"
        case LearningMark.RESTORE:
            return "back"
        case LearningMark.APPROVE:
            return "in force" if isinstance(known, KnownGuidelines) else "approved"
        case LearningMark.REJECT:
            return "rejected"
        case LearningMark.ROLL_BACK:
            return "rolled back"


LESSON_ACTS = {
    LearningMark.RATE: LessonAct.RATED,
    LearningMark.RETIRE: LessonAct.RETIRED,
    LearningMark.RESTORE: LessonAct.RESTORED,
    LearningMark.APPROVE: LessonAct.RESTORED,
}
FACT_ACTS = {
    LearningMark.RETIRE: FactAct.RETIRED,
    LearningMark.RESTORE: FactAct.RESTORED,
    LearningMark.APPROVE: FactAct.REVIEWED,
}
GUIDELINES_ACTS = {
    LearningMark.APPROVE: GuidelinesAct.APPROVED,
    LearningMark.REJECT: GuidelinesAct.REJECTED,
    LearningMark.ROLL_BACK: GuidelinesAct.ROLLED_BACK,
}


class LearningActions:
    """A person's side of lessons, facts and guidelines, each known by its journal id.

    It decides nothing: whether a mark makes sense, `refusal` says. Every method answers the mark's
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

    async def mark(
        self, mark: LearningMark, known: Known, comment: str = "", *, rating: int = 0
    ) -> int:
        """Store a mark that makes sense."""
        match known:
            case KnownLesson():
                return await self.mark_lesson(known.id, LESSON_ACTS[mark], comment, rating=rating)
            case KnownFact():
                return await self.mark_fact(known.id, FACT_ACTS[mark], comment)
            case KnownGuidelines():
                return await self.mark_guidelines(known.id, GUIDELINES_ACTS[mark], comment)

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
        at = self._clock() if self._clock else await present(self._journal)
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
