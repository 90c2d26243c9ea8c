"""What workers planned, claimed and used: plans, stated confidence, spending. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.metrics.calibration import (
    BINS,
    Prediction,
    bin_of,
    expected_error,
    success_of,
)
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import (
    Acceptance,
    Budget,
    Change,
    Completion,
    Entry,
    Plan,
    PlanStepState,
    Spending,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.usage import Usage, WorkerUsage, spent_usage

RESERVATIONS = 200
"""The newest that are kept by their words; all are counted."""
_CHECKS = 1_000
"""Checks of an attempt that are told apart; a task has a handful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSum:
    """Plan steps over some plans."""

    plans: int = 0
    done: int = 0
    skipped: int = 0
    open: int = 0
    closed: int = 0
    """Plans of which no plan step was left open."""
    flagged: int = 0
    """Plan steps that were finished with a reservation."""
    revisions: int = 0

    @property
    def steps(self) -> int:
        return self.done + self.skipped + self.open

    @property
    def rate(self) -> Share:
        """The plan steps that were done."""
        return Share(hits=self.done, of=self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Why something was taken as done with a flag. In the worker's words."""

    task: int
    plan_step: int
    """0 for the task as a whole."""
    goal: str
    flag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    """Plans as they stood last; attempts without a plan are left out."""

    attempts: PlanSum = PlanSum()
    """Of every attempt that is over."""
    tasks: PlanSum = PlanSum()
    """Of the last attempt of every task that is over: what it came to."""
    accepted: int = 0
    """Claims that something is done, which were taken; those with a reservation among them."""
    reserved: int = 0
    refused: int = 0
    """Claims that were turned down for want of evidence."""
    reservations: tuple[Reservation, ...] = ()
    """The newest, oldest first."""


class Source(StrEnum):
    """Where a confidence was stated."""

    CHECKPOINT = "checkpoint"
    """In the attempt's last report through `reflect`."""
    COMPLETION = "completion"
    """In its last claim that something is done, as it was lowered for want of evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The attempts that stated a confidence in one range, in percent."""

    low: int
    high: int
    """Included."""
    attempts: Share
    """Those that succeeded."""
    checks: Share
    """The acceptance checks that Midwatch ran on them and that passed, each counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceFigures:
    """One source's confidences against what came of them. Every attempt counts once."""

    source: Source
    attempts: int = 0
    error: float | None = None
    """The expected calibration error of what was stated, from 0 to 1; `None` of no attempt."""
    bins: tuple[Bin, ...] = ()
    """Those that hold an attempt, by rising confidence."""


class ClaimCounts:
    """Follows claims of completion and acceptance checks."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._reservations = deque[Reservation](maxlen=RESERVATIONS)
        self._stated: dict[int, int] = {}
        """By attempt: the confidence of its last claim."""
        self._checks: dict[int, dict[str, bool]] = defaultdict(dict)
        """By attempt and check: whether it passed when it was run last."""

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Completion() as claim:
                self._claim(entry, claim)
            case Acceptance(check=check, passed=passed) if entry.attempt is not None:
                checks = self._checks[entry.attempt]
                if check in checks or len(checks) < _CHECKS:
                    checks[check] = passed
            case _:
                pass

    def _claim(self, entry: Entry, claim: Completion) -> None:
        if claim.plan_step and entry.attempt is not None:
            # That of the whole task is made of the checks themselves.
            self._stated[entry.attempt] = claim.confidence
        self._counts["accepted" if claim.accepted else "refused"] += 1
        if claim.accepted and claim.flag:
            self._counts["reserved"] += 1
            self._reservations.append(
                Reservation(
                    task=entry.task, plan_step=claim.plan_step, goal=claim.goal, flag=claim.flag
                )
            )

    def plans(self, ended: Iterable[AttemptState], final: Iterable[AttemptState]) -> PlanFigures:
        """How it stands.

        Args:
            ended: Every attempt that is over.
            final: The last attempt of every task that is over.
        """
        return PlanFigures(
            attempts=_sum(each.plan for each in ended),
            tasks=_sum(each.plan for each in final),
            accepted=self._counts["accepted"],
            reserved=self._counts["reserved"],
            refused=self._counts["refused"],
            reservations=tuple(self._reservations),
        )

    def confidence(self, attempts: Iterable[AttemptState]) -> tuple[ConfidenceFigures, ...]:
        """How it stands, for each source. Attempts whose success nobody knows are left out."""
        ended = [(each, ok) for each in attempts if (ok := success_of(each)) is not None]
        return tuple(self._figures(source, ended) for source in Source)

    def _figures(self, source: Source, ended: list[tuple[AttemptState, bool]]) -> ConfidenceFigures:
        predictions: list[Prediction] = []
        bins: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for attempt, ok in ended:
            stated = attempt.confidence
            if source is Source.COMPLETION:
                stated = self._stated.get(attempt.id)
            if stated is not None:
                bins[bin_of(stated)].append((attempt.id, ok))
                predictions.append(Prediction(stated=stated, rate=stated / 100, succeeded=ok))
        return ConfidenceFigures(
            source=source,
            attempts=len(predictions),
            error=expected_error(predictions) if predictions else None,
            bins=tuple(self._bin(place, held) for place, held in sorted(bins.items())),
        )

    def _bin(self, place: int, held: list[tuple[int, bool]]) -> Bin:
        width = 100 // BINS
        checks = [passed for id, _ in held for passed in self._checks.get(id, {}).values()]
        return Bin(
            low=place * width,
            high=100 if place == BINS - 1 else (place + 1) * width - 1,
            attempts=Share(hits=sum(ok for _, ok in held), of=len(held)),
            checks=Share(hits=sum(checks), of=len(checks)),
        )


def _sum(plans: Iterable[Plan]) -> PlanSum:
    """Of those that somebody wrote: where nobody did, the task itself is the one plan step."""
    written = [
        plan
        for plan in plans
        if len(plan.steps) > 1 or any(step.files or step.acceptance for step in plan.steps)
    ]
    states = Counter(step.state for plan in written for step in plan.steps)
    return PlanSum(
        plans=len(written),
        done=states[PlanStepState.DONE],
        skipped=states[PlanStepState.SKIPPED],
        open=states[PlanStepState.OPEN],
        closed=sum(plan.in_hand is None for plan in written),
        flagged=sum(len(plan.flags) for plan in written),
        revisions=sum(plan.revision for plan in written),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingFigures:
    """What workers used, and what was used on their behalf."""

    workers: Usage = field(default_factory=Usage)
    roles: tuple[tuple[str, Usage], ...] = ()
    """The supervisor, the planner and the others, by name. The policy uses no model."""

    @property
    def around(self) -> Usage:
        """All that was not the workers'."""
        return sum((usage for _, usage in self.roles), Usage())

    def share(self, usage: Usage) -> float | None:
        """Tokens as a share of the workers', from 0 up; `None` where the workers used none."""
        return usage.tokens / self.workers.tokens if self.workers.tokens else None


class ModelUse:
    """Follows budgets and spending."""

    def __init__(self) -> None:
        self._workers: dict[int, WorkerUsage] = defaultdict(WorkerUsage)
        """By task."""
        self._roles: dict[str, Usage] = defaultdict(Usage)

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Change(budget=Budget() as budget):
                self._workers[entry.task].fold(budget)
            case Spending() as spent:
                self._roles[spent.role] += spent_usage(spent)
            case _:
                pass

    def of(self, task: int) -> Usage:
        """What a task's workers used."""
        return self._workers[task].used if task in self._workers else Usage()

    def figures(self) -> SpendingFigures:
        return SpendingFigures(
            workers=sum((each.used for each in self._workers.values()), Usage()),
            roles=tuple((role, self._roles[role]) for role in sorted(self._roles)),
        )
