"""What came of what is learned: all figures of it together, and the fold that makes them."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.comparison import (
    ComparisonFigures,
    EffortFigures,
    SavingFigures,
    cohorts,
    comparisons,
    efforts,
    savings,
)
from midwatch_monitor.metrics.reviews import FactFigures, Reviews
from midwatch_monitor.metrics.roster import Roster
from midwatch_monitor.metrics.spending import Outlay, SpendingFigures
from midwatch_monitor.metrics.usefulness import LessonFigures, Usefulness
from midwatch_monitor.metrics.verdicts import AcceptanceFigures, Verdicts
from midwatch_monitor.metrics.versions import GuidelinesFigures, Versions
from midwatch_monitor.records import (
    AttemptTransition,
    Change,
    Entry,
    Fact,
    FactMark,
    FactReview,
    Feedback,
    Guidelines,
    GuidelinesMark,
    Lesson,
    LessonMark,
    Recall,
    Record,
    Reflection,
    Spending,
    Task,
    TaskTransition,
    Trial,
)

KINDS: tuple[type[Record], ...] = (
    TaskTransition,
    AttemptTransition,
    Feedback,
    Recall,
    Lesson,
    LessonMark,
    Fact,
    FactMark,
    FactReview,
    Guidelines,
    GuidelinesMark,
    Reflection,
    Trial,
    Spending,
)
"""The records that say something of what is learned."""
METERS: tuple[type[Record], ...] = (Change,)
"""What tells the tokens of the workers besides. There are many of them: a few for each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningFigures:
    """What is known of how learning goes."""

    acceptance: tuple[AcceptanceFigures, ...]
    lessons: LessonFigures
    comparisons: tuple[ComparisonFigures, ...]
    efforts: tuple[EffortFigures, ...]
    savings: tuple[SavingFigures, ...]
    facts: FactFigures
    guidelines: GuidelinesFigures
    spending: SpendingFigures

    def __bool__(self) -> bool:
        """Whether there is anything to tell."""
        return bool(
            self.acceptance
            or self.lessons != LessonFigures()
            or self.facts != FactFigures()
            or self.guidelines != GuidelinesFigures()
        )


class Learning:
    """Takes the entries of tasks and answers what came of what is learned.

    The entries of a task come in their order and from its first; those of several tasks may be
    mixed. `KINDS` are enough; without the `METERS` no worker's tokens are known.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._same: dict[int, tuple[str, str]] = {}
        self._roster = Roster()
        self._verdicts = Verdicts()
        self._usefulness = Usefulness()
        self._reviews = Reviews()
        self._versions = Versions()
        self._outlay = Outlay()
        self._folds = (
            self._roster,
            self._verdicts,
            self._usefulness,
            self._reviews,
            self._versions,
            self._outlay,
        )
        for entry in entries:
            self.observe(entry)

    def meet(self, task: Task, *, whole: str = "") -> None:
        """A task whose entries come; unmet ones count as different from all others.

        `whole` names the task that it is a part of: lots are drawn for all parts together.
        """
        self._same[task.id] = (task.project, whole or task.name)

    def observe(self, entry: Entry) -> None:
        """Take in the next entry."""
        for fold in self._folds:
            fold.observe(entry)

    def figures(self) -> LearningFigures:
        """How everything stands."""
        tasks = cohorts(self._roster, self._usefulness)

        def tokens(task: int) -> int:
            return self._outlay.of(task).tokens

        return LearningFigures(
            acceptance=self._verdicts.figures(),
            lessons=self._usefulness.figures(self._verdicts),
            comparisons=comparisons(self._roster, self._usefulness, self._verdicts, self._identity),
            efforts=efforts(tasks, tokens),
            savings=savings(tasks, tokens, self._identity),
            facts=self._reviews.figures(),
            guidelines=self._versions.figures(self._usefulness.under(), self._verdicts),
            spending=self._outlay.figures(),
        )

    def _identity(self, task: int) -> Hashable:
        return self._same.get(task, task)
