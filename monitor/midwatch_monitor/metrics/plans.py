"""How much of the plans was done, and with what reservations."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.roster import Roster
from midwatch_monitor.records import Completion, Entry, Plan, PlanStepState

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
        """All plan steps."""
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
        """Take in the next entry of a task."""
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

    def figures(self, roster: Roster) -> PlanFigures:
        """How it stands."""
        ended = {
            id: plan for id, plan in self._plans.items() if roster.over(id) and _written(plan[1])
        }
        final = [
            plan
            for id, (task, plan) in ended.items()
            if roster.last(id, task) and roster.tasks[task].state.lifecycle.over
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
