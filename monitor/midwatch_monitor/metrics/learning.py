"""All figures about learning, and the fold that computes them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

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
from midwatch_monitor.metrics.runs import ModelUse, SpendingFigures
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import (
    AttemptTransition,
    Change,
    Entry,
    Fact,
    FactAct,
    FactMark,
    FactReview,
    FactState,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    LessonMark,
    Origin,
    Recall,
    Record,
    Reflection,
    ReviewState,
    Spending,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.usage import Usage, spent_usage

QUIET = 10
"""After this many reviews in a row without a change, reviews are said to change little."""


class Worth(StrEnum):
    """What the reviews so far say about whether reviewing is worth it."""

    NONE = "no review has succeeded yet"
    EARLY = "too few reviews to tell"
    LITTLE = "reviews change little: consider switching them off"
    SOME = "the review changes what is shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFigures:
    """Facts and their reviews. A failed or skipped review does not count as one that found nothing.

    Numbers about reviews count only the reviews that succeeded.
    """

    facts: int = 0
    ended: int = 0
    """Facts that were replaced, removed or retired."""
    unreviewed: int = 0
    """Live facts that are shared without a review."""
    pending: int = 0
    """Live facts that wait for a review."""
    reviews: int = 0
    fallbacks: int = 0
    """Reviews that failed; all of their facts were kept."""
    skipped: int = 0
    """Reviews that were switched off or had no model."""
    looked_at: int = 0
    """Number of facts that were reviewed."""
    modified: int = 0
    removed: int = 0
    missed: int = 0
    """Facts that a review added."""
    conflicts: int = 0
    unanswered: int = 0
    """Facts that an answer left out; they were kept."""
    quiet: int = 0
    """Number of the newest reviews in a row that changed nothing."""
    cost: Usage = field(default_factory=Usage)
    """Usage of the reviewing models, including failed reviews."""

    @property
    def changes(self) -> int:
        """Number of all changes made by reviews."""
        return self.modified + self.removed + self.missed + self.conflicts

    @property
    def worth(self) -> Worth:
        """Whether reviews are worth their cost, as far as known."""
        if not self.reviews:
            return Worth.NONE
        if self.quiet >= QUIET:
            return Worth.LITTLE
        return Worth.SOME if self.reviews >= QUIET else Worth.EARLY


class Reviews:
    """Follows facts, their marks and their reviews."""

    def __init__(self) -> None:
        self._states: dict[int, FactState] = {}
        self._ended: set[int] = set()
        self._reviews: list[tuple[datetime, int, FactReview]] = []
        """Reviews with their times and entry ids, for sorting: tasks are read one by one."""
        self._skipped = Counter[ReviewState]()
        self._spent: dict[tuple[int | None, datetime], Usage] = defaultdict(Usage)
        self._asked: set[tuple[int | None, datetime]] = set()
        """Attempt and time of each review, to find its spending, which is in the same commit."""

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Fact(state=state):
                self._states[entry.id] = state
            case FactMark() as mark:
                self._apply_mark(mark)
            case FactReview() as review:
                self._asked.add((entry.attempt, entry.at))
                if review.state is ReviewState.OK:
                    self._reviews.append((entry.at, entry.id, review))
                else:
                    self._skipped[review.state] += 1
            case Spending() as spent:
                place = (entry.attempt, entry.at)
                self._spent[place] += spent_usage(spent)
            case _:
                pass

    def _apply_mark(self, mark: FactMark) -> None:
        if mark.fact not in self._states:
            return
        if mark.act.ends:
            self._ended.add(mark.fact)
        elif mark.act is FactAct.RESTORED:
            self._ended.discard(mark.fact)
        else:
            reviewed = mark.act is FactAct.REVIEWED
            self._states[mark.fact] = FactState.REVIEWED if reviewed else FactState.UNREVIEWED

    def figures(self) -> FactFigures:
        reviews = [review for _, _, review in sorted(self._reviews, key=lambda it: it[:2])]
        standing = Counter(state for fact, state in self._states.items() if fact not in self._ended)
        return FactFigures(
            facts=len(self._states),
            ended=len(self._ended),
            unreviewed=standing[FactState.UNREVIEWED],
            pending=standing[FactState.PENDING],
            reviews=len(reviews),
            fallbacks=self._skipped[ReviewState.FALLBACK],
            skipped=self._skipped[ReviewState.SKIPPED],
            looked_at=sum(len(review.facts) for review in reviews),
            **{name: sum(getattr(review, name) for review in reviews) for name in _COUNTS},
            quiet=_count_quiet(reviews),
            cost=sum((self._spent[at] for at in self._asked if at in self._spent), Usage()),
        )


_COUNTS = ("modified", "removed", "missed", "conflicts", "unanswered")
"""The numbers in a review that are added up."""


def _count_quiet(reviews: list[FactReview]) -> int:
    """Return how many of the newest reviews in a row changed nothing."""
    for count, review in enumerate(reversed(reviews)):
        if review.modified or review.removed or review.missed or review.conflicts:
            return count
    return len(reviews)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderFigures:
    """Acceptance of the attempts under one version of guidelines, by the verdicts of one origin.

    Other things change between versions too: a difference need not come from the guidelines.
    """

    guidelines: int
    """Journal id of the version."""
    version: int
    """Number within its project; 0 if the version is not among the entries counted."""
    origin: Origin
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesFigures:
    """Reflections on finished attempts, and the versions that they produced."""

    reflections: int = 0
    skipped: int = 0
    """Reflections that had too little to ask about."""
    failed: int = 0
    insights: int = 0
    """Number of lessons that they produced."""
    versions: int = 0
    approved: int = 0
    rejected: int = 0
    rolled_back: int = 0
    """Versions that were rolled back; they may have been approved before."""
    under: tuple[UnderFigures, ...] = ()


class Versions:
    """Follows reflections and versions of guidelines."""

    def __init__(self) -> None:
        self._reflections: list[Reflection] = []
        self._versions: dict[int, int] = {}
        self._acts: set[tuple[int, GuidelinesAct]] = set()

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Reflection() as reflection:
                self._reflections.append(reflection)
            case Guidelines(version=version):
                self._versions[entry.id] = version
            case GuidelinesMark(guidelines=id, act=act):
                self._acts.add((id, act))
            case _:
                pass

    def figures(self, under: Mapping[int, Sequence[int]], verdicts: Verdicts) -> GuidelinesFigures:
        """Return the figures so far; `under` maps versions to the attempts under them."""
        acts = Counter(act for _, act in self._acts)
        return GuidelinesFigures(
            reflections=len(self._reflections),
            skipped=sum(bool(each.skipped) for each in self._reflections),
            failed=sum(bool(each.error) for each in self._reflections),
            insights=sum(each.insights for each in self._reflections),
            versions=len(self._versions),
            approved=acts[GuidelinesAct.APPROVED],
            rejected=acts[GuidelinesAct.REJECTED],
            rolled_back=acts[GuidelinesAct.ROLLED_BACK],
            under=tuple(
                UnderFigures(
                    guidelines=id,
                    version=self._versions.get(id, 0),
                    origin=origin,
                    accepted=accepted,
                )
                for id in sorted(under)
                for origin in Origin
                if (accepted := verdicts.share(under[id], origin)).of
            ),
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
"""Records about learning."""
METERS: tuple[type[Record], ...] = (Change,)
"""Further records, with the workers' tokens. There are many: a few for each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningFigures:
    """All figures about learning."""

    acceptance: tuple[AcceptanceFigures, ...]
    lessons: LessonFigures
    comparisons: tuple[ComparisonFigures, ...]
    efforts: tuple[EffortFigures, ...]
    savings: tuple[SavingFigures, ...]
    facts: FactFigures
    guidelines: GuidelinesFigures
    spending: SpendingFigures

    def __bool__(self) -> bool:
        """Return whether there is anything to report."""
        return bool(
            self.acceptance
            or self.lessons != LessonFigures()
            or self.facts != FactFigures()
            or self.guidelines != GuidelinesFigures()
        )


class LearningTally:
    """Takes the entries of tasks and computes the figures about learning.

    The entries of a task must come in order and from its first; those of several tasks may be
    mixed. `KINDS` are enough, but without `METERS` the workers' tokens are unknown.
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
        """Add a task before its entries; a task not added counts as different from all others.

        `whole` names the task that it is a part of: all parts are drawn into one group.
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
        """Return the figures so far."""
        tasks = self._tasks.values()
        groups = cohorts(tasks, self._lesson_use)

        def tokens(task: int) -> int:
            return self._model_use.of(task).tokens

        return LearningFigures(
            acceptance=self._verdicts.figures(),
            lessons=self._lesson_use.figures(self._verdicts),
            comparisons=comparisons(tasks, self._lesson_use, self._verdicts, self._identity),
            efforts=efforts(groups, tokens),
            savings=savings(groups, tokens, self._identity, self._lesson_use),
            facts=self._reviews.figures(),
            guidelines=self._versions.figures(self._lesson_use.under(), self._verdicts),
            spending=self._model_use.figures(),
        )

    def _identity(self, task: int) -> Hashable:
        return self._same.get(task, task)
