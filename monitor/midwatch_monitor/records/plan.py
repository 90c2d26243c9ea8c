"""Plans of attempts, checks of plans, and claims about finished work."""

from dataclasses import dataclass
from enum import StrEnum


class PlanStepState(StrEnum):
    """The states of a plan step."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One item of a plan."""

    title: str
    state: PlanStepState = PlanStepState.OPEN
    files: tuple[str, ...] = ()
    """Files that it should produce, relative to the workspace."""
    acceptance: tuple[str, ...] = ()
    """Commands that exit with 0 when it is done."""
    confidence: int | None = None
    """The planner's confidence in it, in percent."""
    requests: int | None = None
    """Its share of the task's model requests; plan steps with less confidence get more."""
    flag: str = ""
    """The reservation under which it was finished, for a later check to examine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan steps of an attempt, in order. A revision replaces the open ones only."""

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
        """Whether it is only the task itself: one open plan step with nothing but a title."""
        return len(self.steps) == 1 and self.steps[0] == PlanStep(title=self.steps[0].title)

    @property
    def in_hand(self) -> PlanStep | None:
        """The first open plan step; `None` when all are closed."""
        return next((step for step in self.steps if step.state is PlanStepState.OPEN), None)

    @property
    def open_titles(self) -> tuple[str, ...]:
        """Titles of the open plan steps."""
        return tuple(step.title for step in self.steps if step.state is PlanStepState.OPEN)

    @property
    def flags(self) -> tuple[str, ...]:
        """The reservations, in order, each with its plan step's title."""
        return tuple(f"{step.title}: {step.flag}" for step in self.steps if step.flag)


class Ruling(StrEnum):
    """The decision about a worker's request."""

    PENDING = "pending"
    GRANTED = "granted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """A worker's review of the rest of its plan, between two plan steps."""

    plan_step: int
    """The plan step that is about to begin."""
    assumption: str
    """What the plan assumes from here on."""
    reality: str
    """What the work so far has shown about that assumption."""
    impact: str
    """The consequences for the remaining plan steps."""
    options: tuple[str, ...] = ()
    choice: str = ""
    """The chosen option, and why it is the simplest."""
    proposed: tuple[str, ...] = ()
    """The proposed remaining plan steps; empty keeps the plan as it is."""
    ruling: Ruling = Ruling.GRANTED
    """Pending if the supervisor has to approve the proposal."""
    reason: str = ""


class ClaimState(StrEnum):
    """What is known about a claim."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim about finished work, and whether evidence supports it."""

    what: str
    state: ClaimState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The claims about a finished plan step or task, and what was found."""

    plan_step: int
    """0 for the task as a whole."""
    goal: str
    claims: tuple[Claim, ...] = ()
    """Claims about files, structure and behaviour, each with the state that the evidence allows."""
    confidence: int
    """Overall confidence in percent; lowered if claims are unproven."""
    accepted: bool
    flag: str = ""
    """The reservation under which it is done; empty if there is none."""
    doubts: tuple[str, ...] = ()
    """Why it was refused, or which claims have no evidence."""
