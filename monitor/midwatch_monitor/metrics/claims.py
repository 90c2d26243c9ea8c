"""What workers claimed: their plans, what they reported as done, and how confident they were."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_monitor.metrics.calibration import BINS, Prediction, expected_error
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.metrics.tasks import Tasks
from midwatch_monitor.records import Acceptance, Completion, Entry, Plan, PlanStepState, Step

RESERVATIONS = 200
"""The newest that are kept by their words; all are counted."""


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


class Plans:
    """Follows plans and claims of completion."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[int, Plan]] = {}
        """By attempt: its task, and its newest plan."""
        self._claims = Counter[str]()
        self._reservations = deque[Reservation](maxlen=RESERVATIONS)

    def observe(self, entry: Entry) -> None:
        match entry.record:
            case Plan() as plan if entry.attempt is not None:
                self._plans[entry.attempt] = (entry.task, plan)
            case Completion() as claim:
                self._claim(entry.task, claim)
            case _:
                pass

    def _claim(self, task: int, claim: Completion) -> None:
        if not claim.accepted:
            self._claims["refused"] += 1
            return
        self._claims["accepted"] += 1
        if claim.flag:
            self._claims["reserved"] += 1
            self._reservations.append(
                Reservation(task=task, plan_step=claim.plan_step, goal=claim.goal, flag=claim.flag)
            )

    def figures(self, history: Tasks) -> PlanFigures:
        ended = {
            id: plan for id, plan in self._plans.items() if history.over(id) and _written(plan[1])
        }
        final = [
            plan
            for id, (task, plan) in ended.items()
            if history.last(id, task) and history.tasks[task].state.lifecycle.over
        ]
        return PlanFigures(
            attempts=_sum(plan for _, plan in ended.values()),
            tasks=_sum(final),
            accepted=self._claims["accepted"],
            reserved=self._claims["reserved"],
            refused=self._claims["refused"],
            reservations=tuple(self._reservations),
        )


def _written(plan: Plan) -> bool:
    """Whether somebody wrote it: where nobody did, the task itself is its one plan step."""
    return len(plan.steps) > 1 or any(step.files or step.acceptance for step in plan.steps)


def _sum(plans: Iterable[Plan]) -> PlanSum:
    count, closed, flagged, revisions = 0, 0, 0, 0
    states = Counter[PlanStepState]()
    for plan in plans:
        count += 1
        closed += plan.in_hand is None
        flagged += len(plan.flags)
        revisions += plan.revision
        states.update(step.state for step in plan.steps)
    return PlanSum(
        plans=count,
        done=states[PlanStepState.DONE],
        skipped=states[PlanStepState.SKIPPED],
        open=states[PlanStepState.OPEN],
        closed=closed,
        flagged=flagged,
        revisions=revisions,
    )


_CHECKS = 1_000
"""Checks of an attempt that are told apart; a task has a handful."""


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


@dataclass(slots=True)
class _AttemptReports:
    """What one attempt reports last, and its checks by their newest result."""

    confidences: dict[Source, int] = field(default_factory=dict[Source, int])
    checks: dict[str, bool] = field(default_factory=dict[str, bool])


class Confidence:
    """Follows stated confidence and acceptance checks."""

    def __init__(self) -> None:
        self._reports: dict[int, _AttemptReports] = defaultdict(_AttemptReports)

    def observe(self, entry: Entry) -> None:
        if entry.attempt is None:
            return
        match entry.record:
            case Step(checkpoint=checkpoint) if checkpoint is not None:
                reports = self._reports[entry.attempt]
                reports.confidences[Source.CHECKPOINT] = checkpoint.confidence
            case Completion(plan_step=number, confidence=confidence) if number:
                # That of the whole task is made of the checks themselves.
                self._reports[entry.attempt].confidences[Source.COMPLETION] = confidence
            case Acceptance(check=check, passed=passed):
                checks = self._reports[entry.attempt].checks
                if check in checks or len(checks) < _CHECKS:
                    checks[check] = passed
            case _:
                pass

    def figures(self, history: Tasks) -> tuple[ConfidenceFigures, ...]:
        """How it stands, for each source. Attempts whose success nobody knows are left out."""
        ended = [
            (reports, succeeded)
            for id, reports in self._reports.items()
            if (succeeded := history.succeeded(id)) is not None
        ]
        return tuple(_figures(source, ended) for source in Source)


def _figures(source: Source, ended: list[tuple[_AttemptReports, bool]]) -> ConfidenceFigures:
    found = [(reports, ok) for reports, ok in ended if source in reports.confidences]
    bins: dict[int, list[tuple[_AttemptReports, bool]]] = defaultdict(list)
    for reports, ok in found:
        bins[_place(reports.confidences[source])].append((reports, ok))
    predictions = [
        Prediction(
            stated=reports.confidences[source],
            rate=reports.confidences[source] / 100,
            succeeded=ok,
            weight=1.0,
        )
        for reports, ok in found
    ]
    return ConfidenceFigures(
        source=source,
        attempts=len(found),
        error=expected_error(predictions) if predictions else None,
        bins=tuple(_bin(place, bins[place]) for place in sorted(bins)),
    )


def _place(confidence: int) -> int:
    """The bin of a confidence: the same bins as those of the calibration error."""
    return max(0, min(confidence * BINS // 100, BINS - 1))


def _bin(place: int, held: list[tuple[_AttemptReports, bool]]) -> Bin:
    width = 100 // BINS
    checks = [passed for reports, _ in held for passed in reports.checks.values()]
    return Bin(
        low=place * width,
        high=100 if place == BINS - 1 else (place + 1) * width - 1,
        attempts=Share(hits=sum(ok for _, ok in held), of=len(held)),
        checks=Share(hits=sum(checks), of=len(checks)),
    )
