"""What became of facts and of the guidelines."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.metrics.lessons import Verdicts
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.metrics.work import Usage, spent_usage
from midwatch_monitor.records import (
    Entry,
    Fact,
    FactAct,
    FactMark,
    FactReview,
    FactState,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Origin,
    Reflection,
    ReviewState,
    Spending,
)

QUIET = 10
"""Reviews in a row that changed nothing, from which they are said to change little."""


class Worth(StrEnum):
    """What the reviews so far say of reviewing."""

    NONE = "no review has worked yet"
    EARLY = "too few reviews to tell"
    LITTLE = "the review changes little: think of switching it off"
    SOME = "the review changes what is shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFigures:
    """Facts and their reviews. A review that failed or was skipped is not one that found nothing.

    What is counted of reviews is counted of those that worked.
    """

    facts: int = 0
    ended: int = 0
    """Of those, the ones that were replaced, removed or retired."""
    unreviewed: int = 0
    """Of those that stand, the ones that are shared though nobody looked at them."""
    pending: int = 0
    """Of those that stand, the ones that wait for a review."""
    reviews: int = 0
    fallbacks: int = 0
    """Reviews that failed; every fact of theirs was kept."""
    skipped: int = 0
    """Reviews that were switched off, or had no model."""
    looked_at: int = 0
    """Facts."""
    modified: int = 0
    removed: int = 0
    missed: int = 0
    """Facts that the review added."""
    conflicts: int = 0
    unanswered: int = 0
    """Facts that an answer left out; they were kept."""
    quiet: int = 0
    """The newest reviews in a row that changed nothing."""
    cost: Usage = field(default_factory=Usage)
    """Of the models that reviewed, failed reviews among them."""

    @property
    def changes(self) -> int:
        """All that reviews changed."""
        return self.modified + self.removed + self.missed + self.conflicts

    @property
    def worth(self) -> Worth:
        """Whether the review is worth its cost, as far as one can say."""
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
        """With when and in which order they were met: tasks come one after the other."""
        self._skipped = Counter[ReviewState]()
        self._spent: dict[tuple[int | None, datetime], Usage] = defaultdict(Usage)
        self._asked: set[tuple[int | None, datetime]] = set()
        """The attempts and moments of reviews: what was spent is committed with its review."""

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Fact(state=state):
                self._states[entry.id] = state
            case FactMark() as mark:
                self._mark(mark)
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

    def _mark(self, mark: FactMark) -> None:
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
            quiet=_quiet(reviews),
            cost=sum((self._spent[at] for at in self._asked if at in self._spent), Usage()),
        )


_COUNTS = ("modified", "removed", "missed", "conflicts", "unanswered")
"""What a review counts."""


def _quiet(reviews: list[FactReview]) -> int:
    """How many reviews in a row, the newest among them, changed nothing."""
    for count, review in enumerate(reversed(reviews)):
        if review.modified or review.removed or review.missed or review.conflicts:
            return count
    return len(reviews)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderFigures:
    """What became of the attempts under one version, by the verdicts of one origin.

    Other things changed with the versions: a difference between two need not come from them.
    """

    guidelines: int
    """By journal id."""
    version: int
    """Within its project; 0 where the version is not among what is counted."""
    origin: Origin
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesFigures:
    """Reflections on finished attempts, and the versions that came of them."""

    reflections: int = 0
    skipped: int = 0
    """Of those, the ones that had too little to ask about."""
    failed: int = 0
    insights: int = 0
    """Lessons that came of them."""
    versions: int = 0
    approved: int = 0
    rejected: int = 0
    rolled_back: int = 0
    """Versions, by what was done about them; one that was approved may be rolled back later."""
    under: tuple[UnderFigures, ...] = ()


class Versions:
    """Follows reflections and versions."""

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
        """How it stands; `under` are the attempts by the version that they worked under."""
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
