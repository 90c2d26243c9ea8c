"""What an attempt means to do: its plan, the checks of it, and what is claimed of finished work."""

from dataclasses import dataclass
from enum import StrEnum


class PlanStepState(StrEnum):
    """Where one plan step stands."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One item of the plan."""

    title: str
    state: PlanStepState = PlanStepState.OPEN
    files: tuple[str, ...] = ()
    """The files that it should leave behind, relative to the workspace."""
    acceptance: tuple[str, ...] = ()
    """Commands that exit with 0 once it is done."""
    confidence: int | None = None
    """How sure the planner is of it, in percent."""
    requests: int | None = None
    """Its share of the task's model requests; more for what is less sure."""
    flag: str = ""
    """The reservation with which it was finished: what a later check has to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an attempt means to do, in order. A revision replaces the open plan steps only."""

    steps: tuple[PlanStep, ...]
    revision: int = 0

    @property
    def current(self) -> int:
        """The number, from 1, of the first open plan step; one past the end when all are closed."""
        for number, step in enumerate(self.steps, start=1):
            if step.state is PlanStepState.OPEN:
                return number
        return len(self.steps) + 1

    @property
    def bare(self) -> bool:
        """Whether it is no more than the task itself: one open step of which nothing is said."""
        return len(self.steps) == 1 and self.steps[0] == PlanStep(title=self.steps[0].title)

    @property
    def in_hand(self) -> PlanStep | None:
        """The first open plan step; `None` when all are closed."""
        return next((step for step in self.steps if step.state is PlanStepState.OPEN), None)

    @property
    def open_titles(self) -> tuple[str, ...]:
        """The titles of what is still to be done."""
        return tuple(step.title for step in self.steps if step.state is PlanStepState.OPEN)

    @property
    def flags(self) -> tuple[str, ...]:
        """The reservations that were made, in order, each with its plan step's title."""
        return tuple(f"{step.title}: {step.flag}" for step in self.steps if step.flag)


class Ruling(StrEnum):
    """What was decided about what a worker asked for."""

    PENDING = "pending"
    GRANTED = "granted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """A worker's look at the rest of its plan, between two plan steps."""

    plan_step: int
    """The plan step that is about to begin."""
    assumption: str
    """What the plan takes for granted from here on."""
    reality: str
    """What the work so far has shown of it."""
    impact: str
    """What follows for the plan steps that remain."""
    options: tuple[str, ...] = ()
    choice: str = ""
    """Which of them, and why it is the simplest."""
    proposed: tuple[str, ...] = ()
    """The plan steps that should remain; empty keeps the plan as it is."""
    ruling: Ruling = Ruling.GRANTED
    """Pending where the supervisor is to approve what is proposed."""
    reason: str = ""


class ClaimState(StrEnum):
    """What is known of a claim."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing that is said of finished work, as far as there is evidence for it."""

    what: str
    state: ClaimState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What was claimed of a finished plan step, or of the task, and what was found."""

    plan_step: int
    """0 for the task as a whole."""
    goal: str
    claims: tuple[Claim, ...] = ()
    """Of files, structure and behaviour, each with the state that the evidence allows."""
    confidence: int
    """Overall, in percent; lowered where claims are unproven."""
    accepted: bool
    flag: str = ""
    """Why it is done with a reservation; empty for done without one."""
    doubts: tuple[str, ...] = ()
    """Why it was refused, or what was claimed without evidence."""
