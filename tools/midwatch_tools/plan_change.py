"""Changes to a plan, and how requests are shared among its plan steps.

Finished and skipped plan steps are kept; open ones may be replaced.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Change,
    CheckpointDecision,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Meter,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Step,
)
from midwatch_tools.data_blocks import fold_lines

WANTING: tuple[type[Record], ...] = (Step, Intervention, Delivery)
"""The records that show whether new plan steps are wanted."""


def with_remaining(plan: Plan, titles: Sequence[str], *, ordered: bool = False) -> Plan:
    """Return the plan with its open plan steps replaced, as one more revision.

    A plan step with an unchanged title keeps its files, checks and requests. A worker's revision
    cannot drop a check: checks of the current plan step move to the first remaining one, those of
    other plan steps to the last one, and files that are no longer expected become a flag. A plan
    `ordered` by a supervisor or an operator decides itself what is checked.
    """
    kept = [step for step in plan.steps if step.state is not PlanStepState.OPEN]
    known = [step for step in plan.steps if step.state is PlanStepState.OPEN]
    fresh: list[PlanStep] = []
    for title in titles:
        same = next((step for step in known if fold_lines(step.title) == fold_lines(title)), None)
        if same is not None:
            known.remove(same)
        fresh.append(PlanStep(title=title) if same is None else replace(same, title=title))
    if fresh and not ordered:
        for dropped in known:
            at = 0 if dropped is plan.in_hand else -1
            fresh[at] = _with_checks_of(fresh[at], dropped)
    return Plan(steps=(*kept, *fresh), revision=plan.revision + 1)


def _with_checks_of(step: PlanStep, dropped: PlanStep) -> PlanStep:
    """Return a plan step that takes over the checks of a dropped one."""
    missing = [path for path in dropped.files if path not in step.files]
    said = f"no longer expected by a revision: {', '.join(missing)}" if missing else ""
    return replace(
        step,
        acceptance=tuple(dict.fromkeys((*step.acceptance, *dropped.acceptance))),
        flag="; ".join(filter(None, (step.flag, dropped.flag, said))),
    )


def with_current_done(plan: Plan, flag: str = "") -> Plan:
    """Return the plan with its current plan step finished, and flagged if `flag` is given."""
    steps = list(plan.steps)
    current = plan.current - 1
    if current < len(steps):
        step = steps[current]
        flags = "; ".join(filter(None, (step.flag, flag)))
        steps[current] = replace(step, state=PlanStepState.DONE, flag=flags)
    return replace(plan, steps=tuple(steps))


def plan_change(plan: Plan) -> Change:
    """Return what the rules must know about a plan."""
    return Change(
        plan_step=plan.current,
        plan_steps=len(plan.steps),
        revision=plan.revision,
        plan_step_requests=None if plan.in_hand is None else plan.in_hand.requests,
    )


def is_written(plan: Plan) -> bool:
    """Whether somebody wrote a plan; otherwise, it is just the goal of the task."""
    asks = any(step.files or step.acceptance for step in plan.steps)
    return asks or plan.revision > 0 or len(plan.steps) > 1


class StepsWanted(Enum):
    """Whether a worker is to write new plan steps."""

    NOTHING = 0
    PIVOT = 1
    """The worker itself said that its approach is wrong."""
    ORDERED = 2
    """A replan without plan steps asked the worker for them."""


def steps_wanted(entries: Iterable[Entry]) -> StepsWanted:
    """Return whether the worker is to write new plan steps and has not done so yet.

    The entries are those of one attempt, of the kinds in `WANTING`.
    """
    asking: set[int] = set()
    wanting = StepsWanted.NOTHING
    for entry in entries:
        record = entry.record
        if isinstance(record, Intervention):
            if record.action is Action.REPLAN and not record.plan:
                asking.add(entry.id)
        elif isinstance(record, Delivery):
            if record.state is DeliveryState.DELIVERED and record.intervention in asking:
                wanting = StepsWanted.ORDERED
        elif isinstance(record, Step):
            wanting = _wanted_after(record, wanting)
    return wanting


def _wanted_after(step: Step, wanting: StepsWanted) -> StepsWanted:
    if step.checkpoint is not None and step.checkpoint.decision is CheckpointDecision.PIVOT:
        return StepsWanted.PIVOT if wanting is StepsWanted.NOTHING else wanting
    return StepsWanted.NOTHING if step.tool == "set_plan" and step.ok else wanting


async def revisions_made(recorder: Recorder) -> int:
    """Return the number of revisions made by the workers of the recorder's task."""
    kinds = (Plan, Intervention, Delivery)
    found = recorder.journal.all_entries(task=recorder.attempt.task, kinds=kinds)
    return revisions([entry async for entry in found])


def revisions(entries: Iterable[Entry]) -> int:
    """Count the revisions of plans in these entries, except those ordered by the supervisor.

    A revision that a worker proposed and the supervisor approved counts as the worker's. An
    attempt's first plan is not a revision.
    """
    made = 0
    known: dict[int | None, int] = {}
    ordered: set[int] = set()
    for entry in entries:
        record = entry.record
        if isinstance(record, Plan):
            made += max(0, record.revision - known.get(entry.attempt, record.revision))
            known[entry.attempt] = record.revision
        elif isinstance(record, Intervention):
            if record.action is Action.REPLAN and record.petition is None:
                ordered.add(entry.id)
        elif isinstance(record, Delivery) and record.state is DeliveryState.DELIVERED:
            made -= record.intervention in ordered
    return max(0, made)


UNSTATED = 70
"""Confidence of a plan step that has none stated, in percent."""


def shares(confidences: Sequence[int | None], requests: int, least: int) -> tuple[int, ...]:
    """Return the number of requests for each plan step, more for a less certain one.

    A plan step weighs `1 + (100 - confidence) / 25`: from 1 for certainty to 5 for none, so that
    40 % weighs nearly twice as much as 80 %, and no plan step starves. Each first gets `least` if
    there is enough for all; the rest is shared by weight. The sum is `requests`, or 0 for an empty
    plan.
    """
    if not confidences:
        return ()
    floor = min(max(least, 0), max(requests, 0) // len(confidences))
    rest = max(requests, 0) - floor * len(confidences)
    weights = [_doubt_weight(UNSTATED if each is None else each) for each in confidences]
    exact = [rest * weight / sum(weights) for weight in weights]
    given = [int(each) for each in exact]
    # The remainder goes to the plan steps that lost most by rounding, earlier ones first.
    order = sorted(range(len(exact)), key=lambda at: given[at] - exact[at])
    for at in order[: rest - sum(given)]:
        given[at] += 1
    return tuple(floor + each for each in given)


def _doubt_weight(confidence: int) -> float:
    return 1 + (100 - confidence) / 25


def share_requests(plan: Plan, requests: Meter, *, least: int) -> Plan:
    """Return the plan with the remaining requests shared among its open plan steps.

    A single open plan step has all of them and no share; without a limit, nothing is shared.
    """
    at = [n for n, step in enumerate(plan.steps) if step.state is PlanStepState.OPEN]
    if requests.limit is None or len(at) < 2:
        return plan
    left = int(requests.limit - requests.used)
    given = shares([plan.steps[n].confidence for n in at], left, least)
    steps = list(plan.steps)
    for n, share in zip(at, given, strict=True):
        steps[n] = replace(steps[n], requests=share)
    return replace(plan, steps=tuple(steps))
