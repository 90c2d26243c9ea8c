"""How a plan changes. Pure: what is finished or skipped stays, what is open may be replaced."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from midwatch_monitor.records import (
    Action,
    Change,
    Course,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Step,
)

WANTING: tuple[type[Record], ...] = (Step, Intervention, Delivery)
"""The records that tell whether new plan steps are wanted."""


def with_remaining(plan: Plan, titles: Sequence[str], *, ordered: bool = False) -> Plan:
    """The plan with its open plan steps replaced: one revision more.

    A plan step whose title stays the same keeps its files, checks and requests. A worker gets rid
    of no check by a revision of its own: those of the plan step in hand go to the first one that
    remains, those of others to the last one, and files that nobody expects any more become a flag.
    What a supervisor or an operator has ordered, says itself what is to be checked.
    """
    kept = [step for step in plan.steps if step.state is not PlanStepState.OPEN]
    known = [step for step in plan.steps if step.state is PlanStepState.OPEN]
    fresh: list[PlanStep] = []
    for title in titles:
        same = next((step for step in known if _plain(step.title) == _plain(title)), None)
        if same is not None:
            known.remove(same)
        fresh.append(PlanStep(title=title) if same is None else replace(same, title=title))
    if fresh and not ordered:
        for dropped in known:
            at = 0 if dropped is plan.in_hand else -1
            fresh[at] = _with_checks_of(fresh[at], dropped)
    return Plan(steps=(*kept, *fresh), revision=plan.revision + 1)


def _with_checks_of(step: PlanStep, dropped: PlanStep) -> PlanStep:
    """A plan step that takes over the checks of one that is dropped."""
    missing = [path for path in dropped.files if path not in step.files]
    said = f"no longer expected by a revision: {', '.join(missing)}" if missing else ""
    return replace(
        step,
        acceptance=tuple(dict.fromkeys((*step.acceptance, *dropped.acceptance))),
        flag="; ".join(filter(None, (step.flag, dropped.flag, said))),
    )


def _plain(title: str) -> str:
    return " ".join(title.split()).casefold()


def with_current_done(plan: Plan, flag: str = "") -> Plan:
    """The plan with its first open plan step finished, with a reservation if there is one."""
    steps = list(plan.steps)
    current = plan.current - 1
    if current < len(steps):
        step = steps[current]
        flags = "; ".join(filter(None, (step.flag, flag)))
        steps[current] = replace(step, state=PlanStepState.DONE, flag=flags)
    return replace(plan, steps=tuple(steps))


def change(plan: Plan) -> Change:
    """What the rules must know of a plan."""
    return Change(
        plan_step=plan.current,
        plan_steps=len(plan.steps),
        revision=plan.revision,
        plan_step_requests=None if plan.in_hand is None else plan.in_hand.requests,
    )


def written(plan: Plan) -> bool:
    """Whether somebody made a plan, or the goal of the task is all that there is."""
    return plan.revision > 0 or len(plan.steps) > 1


class Wanting(Enum):
    """Whether a worker is to write new plan steps."""

    NOTHING = 0
    PIVOT = 1
    """It has said itself that the approach is wrong."""
    ORDERED = 2
    """It was asked for them by a replan that brought none."""


def wanted(entries: Iterable[Entry]) -> Wanting:
    """Whether the worker is to write new plan steps, and has not done so yet.

    The entries are those of one attempt, of the kinds in `WANTING`.
    """
    asking: set[int] = set()
    wanting = Wanting.NOTHING
    for entry in entries:
        record = entry.record
        if isinstance(record, Intervention):
            if record.action is Action.REPLAN and not record.plan:
                asking.add(entry.id)
        elif isinstance(record, Delivery):
            if record.state is DeliveryState.DELIVERED and record.intervention in asking:
                wanting = Wanting.ORDERED
        elif isinstance(record, Step):
            wanting = _after(record, wanting)
    return wanting


def _after(step: Step, wanting: Wanting) -> Wanting:
    if step.checkpoint is not None and step.checkpoint.decision is Course.PIVOT:
        return Wanting.PIVOT if wanting is Wanting.NOTHING else wanting
    return Wanting.NOTHING if step.tool == "set_plan" and step.ok else wanting
