"""What was learned, and the figures of it, as the console shows them."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.learning import KINDS, LearningFigures, LearningTally
from midwatch_monitor.records import (
    Entry,
    Fact,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    Record,
    Study,
    StudyState,
    Task,
)
from midwatch_supervisor.present.known_text import Known
from midwatch_supervisor.present.text_line import LEARNING

PAGE = 500
"""Lessons and facts that are shown; `midwatch lessons list` and `facts list` have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningView:
    """Lessons, facts and versions of guidelines, each with what became of it."""

    lessons: tuple[KnownLesson, ...] = ()
    facts: tuple[KnownFact, ...] = ()
    guidelines: tuple[KnownGuidelines, ...] = ()
    others: Mapping[int, KnownFact] = field(default_factory=dict[int, KnownFact])
    """Older facts that stand in the place of one of `facts`, by journal id."""

    @property
    def proposed(self) -> tuple[KnownGuidelines, ...]:
        return tuple(each for each in self.guidelines if each.state is GuidelinesState.PROPOSED)

    def successor(self, fact: KnownFact) -> KnownFact | None:
        """What stands in a fact's place, if anything does and it is known."""
        if fact.instead is None:
            return None
        found = (each for each in self.facts if each.id == fact.instead)
        return next(found, self.others.get(fact.instead))

    def before(self, known: KnownGuidelines) -> KnownGuidelines | None:
        """What a version is compared with: what is in force, or for a decided one its base."""
        if known.state is not GuidelinesState.PROPOSED:
            return next(
                (each for each in self.guidelines if each.id == known.guidelines.base), None
            )
        live = (each for each in self.guidelines if each.state is GuidelinesState.LIVE)
        return next((each for each in live if each.project == known.project), None)

    def former(self, project: str) -> KnownGuidelines | None:
        """What is in force again when the version in force is rolled back, as far as known."""
        formers = [
            (each.decided_at, each.id, each)
            for each in self.guidelines
            if each.project == project
            and each.state is GuidelinesState.FORMER
            and each.decided_at is not None
        ]
        return max(formers, key=lambda former: former[:2])[2] if formers else None

    def newest(self, known: Known) -> Known:
        """The same lesson, fact or version as it stands now."""
        every = (*self.lessons, *self.facts, *self.guidelines)
        return next((each for each in every if each.id == known.id), known)

    def replaced_facts(self, fact: KnownFact) -> tuple[KnownFact, ...]:
        return tuple(each for each in self.facts if each.instead == fact.id)


async def read_guidelines(learned: Learned, before: LearningView) -> LearningView:
    """The same with the versions of the guidelines as they are now. Raises JournalError."""
    return replace(before, guidelines=tuple(await learned.guidelines()))


async def read_learning(learned: Learned) -> LearningView:
    """Everything as it is now. Raises JournalError."""
    facts = tuple(await learned.facts(live=False, limit=PAGE))
    known = {fact.id for fact in facts}
    lacking = sorted({fact.instead for fact in facts if fact.instead is not None} - known)
    others = await learned.facts(ids=lacking, live=False) if lacking else []
    return LearningView(
        lessons=tuple(await learned.lessons(limit=PAGE)),
        facts=facts,
        guidelines=tuple(await learned.guidelines()),
        others={fact.id: fact for fact in others},
    )


HISTORY = 200
"""Verdicts that are kept with their words; all of them count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAttempt:
    """One verdict that somebody spoke, or that a person's acts imply; without their diff."""

    at: datetime
    name: str
    """Of the attempt: `fix#2`."""
    verdict: Feedback


class LearningCounts:
    """What the statistics are made of. It takes every entry of what is watched, in order.

    To sum up ten thousand attempts takes a fifth of a second: `figures` may be called in another
    thread than the rest, though never in two at once.
    """

    def __init__(self) -> None:
        self._learning = LearningTally()
        self._waiting: deque[Entry | Task] = deque()
        """What the figures do not know yet; a deque, since two threads may be at its ends."""
        self.history: deque[JudgedAttempt] = deque(maxlen=HISTORY)
        """The oldest first."""
        self.failed: Counter[str] = Counter()
        """What of learning failed: tries at lessons, summaries and reviews, and other parts."""
        self.failure = ""
        """Why the last of these did."""
        self.grown = 0
        """How many entries were taken: while it is the same, the figures are."""

    def meet(self, task: Task) -> None:
        self._waiting.append(task)

    def fold(self, entry: Entry, name: str) -> None:
        match entry.record:
            case Feedback() as verdict:
                told = replace(verdict, diff="")
                self.history.append(JudgedAttempt(at=entry.at, name=name, verdict=told))
            case Study(state=StudyState.FAILED) as study:
                self._fail(study.chore.value, study.reason)
            case Fault() as fault if fault.part.startswith(LEARNING):
                self._fail(fault.part.removeprefix(LEARNING).strip(": "), fault.error)
            case _:
                pass
        if isinstance(entry.record, KINDS):
            self.grown += 1
            self._waiting.append(replace(entry, record=_bare(entry.record)))

    def _fail(self, part: str, why: str) -> None:
        self.failed[part or LEARNING] += 1
        self.failure = why
        self.grown += 1

    def figures(self) -> LearningFigures:
        while self._waiting:
            news = self._waiting.popleft()
            if isinstance(news, Task):
                self._learning.meet(news)
            else:
                self._learning.observe(news)
        return self._learning.figures()


def _bare(record: Record) -> Record:
    """A record without the texts that nothing counts: all of them together fill the memory."""
    match record:
        case Lesson():
            return replace(record, text="", insights=())
        case Feedback():
            return replace(record, comment="", diff="")
        case Fact():
            return replace(record, text="", value="")
        case Guidelines():
            return replace(record, text="")
        case _:
            return record
