"""What came of what is learned: all figures of it together, and the fold that makes them."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.knowledge import FactFigures, GuidelinesFigures, Reviews, Versions
from midwatch_monitor.metrics.lessons import (
    AcceptanceFigures,
    ComparisonFigures,
    EffortFigures,
    LessonFigures,
    LessonUse,
    SavingFigures,
    TaskAttempts,
    Verdicts,
    cohorts,
    comparisons,
    efforts,
    savings,
)
from midwatch_monitor.metrics.work import ModelUse, SpendingFigures
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
        self._tasks: dict[int, TaskAttempts] = {}
        self._verdicts = Verdicts()
        self._lesson_use = LessonUse()
        self._reviews = Reviews()
        self._versions = Versions()
        self._model_use = ModelUse()
        self._folds = (
            self._verdicts,
            self._lesson_use,
            self._reviews,
            self._versions,
            self._model_use,
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
        if entry.task not in self._tasks:
            self._tasks[entry.task] = TaskAttempts(entry.task)
        self._tasks[entry.task].observe(entry)
        for fold in self._folds:
            fold.observe(entry)

    def figures(self) -> LearningFigures:
        """How it stands."""
        tasks = self._tasks.values()
        groups = cohorts(tasks, self._lesson_use)

        def tokens(task: int) -> int:
            return self._model_use.of(task).tokens

        return LearningFigures(
            acceptance=self._verdicts.figures(),
            lessons=self._lesson_use.figures(self._verdicts),
            comparisons=comparisons(tasks, self._lesson_use, self._verdicts, self._identity),
            efforts=efforts(groups, tokens),
            savings=savings(groups, tokens, self._identity),
            facts=self._reviews.figures(),
            guidelines=self._versions.figures(self._lesson_use.under(), self._verdicts),
            spending=self._model_use.figures(),
        )

    def _identity(self, task: int) -> Hashable:
        return self._same.get(task, task)
