"""What was learned, as it was last read from the journal: a page of each kind, the newest first."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Recall,
)
from midwatch_supervisor.present.learning_text import NOTHING, Given

PAGE = 500
"""Lessons and facts that are shown; `midwatch lessons list` and `facts list` have all of them."""

Marked = KnownLesson | KnownFact | KnownGuidelines
"""Anything that a person can mark."""


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
        """The versions that wait for a person."""
        return tuple(each for each in self.guidelines if each.state is GuidelinesState.PROPOSED)

    def live(self, project: str) -> KnownGuidelines | None:
        """The version in force in a project."""
        return next(
            (
                each
                for each in self.guidelines
                if each.project == project and each.state is GuidelinesState.LIVE
            ),
            None,
        )

    def successor(self, fact: KnownFact) -> KnownFact | None:
        """What stands in a fact's place, if anything does and it is known."""
        if fact.instead is None:
            return None
        found = (each for each in self.facts if each.id == fact.instead)
        return next(found, self.others.get(fact.instead))

    def newest(self, known: Marked) -> Marked:
        """The same as it is now."""
        every = (*self.lessons, *self.facts, *self.guidelines)
        return next((each for each in every if each.id == known.id), known)

    def replaced(self, fact: KnownFact) -> tuple[KnownFact, ...]:
        """The facts in whose place this one stands."""
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


async def given_by(learned: Learned, recall: Recall) -> Given:
    """What a recall names, as it stands now; nothing where the journal has it no more."""
    lessons = [each.lesson for each in recall.lessons]
    try:
        version = recall.guidelines
        return Given(
            lessons=tuple(await learned.lessons(ids=lessons)) if lessons else (),
            facts=tuple(await learned.facts(ids=recall.facts, live=False)) if recall.facts else (),
            guidelines=None if version is None else await learned.guidelines_version(version),
        )
    except JournalError:
        return NOTHING
