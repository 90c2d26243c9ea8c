"""What was learned, and its statistics, for the console."""

from collections import Counter, deque
from dataclasses import dataclass, replace
from datetime import datetime

from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.learning import KINDS, LearningFigures, LearningTally
from midwatch_monitor.records import (
    Entry,
    Fault,
    Feedback,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Study,
    StudyState,
    Task,
)
from midwatch_supervisor.present.known_text import Known
from midwatch_supervisor.present.text_line import LEARNING

PAGE = 500
"""Number of lessons and facts shown; `midwatch lessons list --json` and `facts list` have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningView:
    """Lessons, facts and versions of guidelines in their current state."""

    lessons: tuple[KnownLesson, ...] = ()
    facts: tuple[KnownFact, ...] = ()
    guidelines: tuple[KnownGuidelines, ...] = ()

    @property
    def proposed(self) -> tuple[KnownGuidelines, ...]:
        return tuple(each for each in self.guidelines if each.state is GuidelinesState.PROPOSED)

    def successor(self, fact: KnownFact) -> KnownFact | None:
        """Return a fact's replacement, if there is one and it is among those shown."""
        return next((each for each in self.facts if each.id == fact.instead), None)

    def before(self, known: KnownGuidelines) -> KnownGuidelines | None:
        """Return what a version is compared with: the one in force or, once decided, its base."""
        if known.state is not GuidelinesState.PROPOSED:
            return next(
                (each for each in self.guidelines if each.id == known.guidelines.base), None
            )
        live = (each for each in self.guidelines if each.state is GuidelinesState.LIVE)
        return next((each for each in live if each.project == known.project), None)

    def former(self, project: str) -> KnownGuidelines | None:
        """Return the version that a rollback would restore, as far as known."""
        formers = [
            (each.decided_at, each.id, each)
            for each in self.guidelines
            if each.project == project
            and each.state is GuidelinesState.FORMER
            and each.decided_at is not None
        ]
        return max(formers, key=lambda former: former[:2])[2] if formers else None

    def newest(self, known: Known) -> Known:
        """Return the same lesson, fact or version in its current state."""
        every = (*self.lessons, *self.facts, *self.guidelines)
        return next((each for each in every if each.id == known.id), known)

    def replaced_facts(self, fact: KnownFact) -> tuple[KnownFact, ...]:
        return tuple(each for each in self.facts if each.instead == fact.id)


async def read_learning(learned: Learned) -> LearningView:
    """Read everything in its current state. Raises JournalError."""
    return LearningView(
        lessons=tuple(await learned.lessons(limit=PAGE)),
        facts=tuple(await learned.facts(live=False, limit=PAGE)),
        guidelines=tuple(await learned.guidelines()),
    )


HISTORY = 200
"""Number of verdicts kept with their comments; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAttempt:
    """One explicit or implied verdict, without its diff."""

    at: datetime
    name: str
    """The attempt's name: `fix#2`."""
    verdict: Feedback


class LearningCounts:
    """The data of the statistics. Takes all entries of what is watched, in order."""

    def __init__(self) -> None:
        self._learning = LearningTally()
        self.history: deque[JudgedAttempt] = deque(maxlen=HISTORY)
        """Oldest first."""
        self.failed: Counter[str] = Counter()
        """Failures of learning: of lessons, summaries, reviews, and other parts."""
        self.failure = ""
        """The reason of the last failure."""
        self.grown = 0
        """Number of entries taken: while it is unchanged, so are the figures."""

    def meet(self, task: Task) -> None:
        self._learning.meet(task)

    def fold(self, entry: Entry, name: str) -> None:
        match entry.record:
            case Feedback() as verdict:
                told = replace(verdict, diff="")  # diffs are long, and not counted
                self.history.append(JudgedAttempt(at=entry.at, name=name, verdict=told))
                entry = replace(entry, record=told)
            case Study(state=StudyState.FAILED) as study:
                self._count_failure(study.chore.value, study.reason)
            case Fault() as fault if fault.part.startswith(LEARNING):
                self._count_failure(fault.part.removeprefix(LEARNING).strip(": "), fault.error)
            case _:
                pass
        if isinstance(entry.record, KINDS):
            self.grown += 1
            self._learning.observe(entry)

    def _count_failure(self, part: str, why: str) -> None:
        self.failed[part or LEARNING] += 1
        self.failure = why
        self.grown += 1

    def figures(self) -> LearningFigures:
        return self._learning.figures()
