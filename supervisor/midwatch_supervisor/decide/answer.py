"""The answers of the supervisor's model: their schema, checks, and the resulting decisions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic_ai import ModelRetry, RunContext, ToolFailed

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import Action, Actor, Decision, Diagnosis, Grant, Part, Terms
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.decide.policy import (
    ACTIONS,
    action_message,
    allowed_actions,
    capped_grant,
    terms_for,
)
from midwatch_supervisor.decide.prompt import MIN_CHARS, describe_steps
from midwatch_supervisor.present.numbers import MOST_GRANTED, grant_text
from midwatch_tools.data_blocks import DataBlocks, cut, escape


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """One try at a decision: its subject, and how much evidence may still be shown."""

    context: DecisionContext
    evidence: AttemptEvidence
    blocks: DataBlocks
    room: int
    """Characters of evidence that the tools may still return."""
    urged: bool = False
    """Whether the model was already asked once for the steps that support the diagnosis."""

    def show(self, name: str, text: str) -> str:
        """Return a tool's answer as a data block, and deduct its length from `room`.

        Raises ToolFailed if hardly any room is left.
        """
        if self.room < MIN_CHARS // 4:
            raise ToolFailed("No more evidence can be shown: decide on what you have.")
        room = max(0, self.room - len(self.blocks.frame(name, "")))
        block = self.blocks.frame(name, cut(escape(text or "(nothing)"), room))
        self.room -= len(block)
        return block


def timeline(ctx: RunContext[Inquiry], first: int, last: int) -> str:
    """Show the steps from `first` to `last`, both included."""
    inquiry = ctx.deps
    require_known_steps(inquiry.context, first)
    steps = inquiry.evidence.timeline(first, min(last, inquiry.context.last_step))
    each = max(200, inquiry.room // max(1, len(steps)))
    return inquiry.show("timeline", describe_steps(steps, each))


def output(ctx: RunContext[Inquiry], step: int) -> str:
    """Show the output of one step."""
    require_known_steps(ctx.deps.context, step)
    return ctx.deps.show("output", ctx.deps.evidence.output(step))


async def diff(ctx: RunContext[Inquiry]) -> str:
    """Show what the attempt changed in its workspace."""
    try:
        return ctx.deps.show("diff", await ctx.deps.evidence.diff())
    except MidwatchError as error:
        raise ToolFailed(f"This cannot be shown: {error}") from error


def checkpoints(ctx: RunContext[Inquiry]) -> str:
    """Show all checkpoints of the attempt."""
    shown = describe_steps(ctx.deps.evidence.checkpoints, max(200, ctx.deps.room))
    return ctx.deps.show("checkpoints", shown)


LOOKING = (timeline, output, diff, checkpoints)
"""Tools that let the model look at evidence."""


def require_known_steps(context: DecisionContext, *numbers: int) -> None:
    """Raise ModelRetry for numbers of steps that do not exist."""
    unknown = sorted({number for number in numbers if not 1 <= number <= context.last_step})
    if unknown:
        names, last = ", ".join(map(str, unknown)), context.last_step
        raise ModelRetry(f"There is no step {names}: steps go from 1 to {last}.")


_SPOKEN = frozenset(ACTIONS) - {Action.OBSERVE, Action.ASK_OPERATOR, Action.STOP}

Amount = Annotated[int, Field(ge=0, le=MOST_GRANTED)]


class GrantAnswer(BaseModel):
    """So much more of the budget."""

    requests: Amount = 0
    tokens: Amount = 0
    cost_usd: Annotated[float, Field(ge=0, le=MOST_GRANTED)] = 0.0
    minutes: Annotated[float, Field(ge=0, le=MOST_GRANTED)] = 0.0

    @property
    def as_grant(self) -> Grant:
        """These amounts as a `Grant` of the journal."""
        return Grant(**self.model_dump())


class PartAnswer(BaseModel):
    """One of the smaller tasks."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    goal: Annotated[str, Field(min_length=1, max_length=4000)]
    plan_step: Annotated[
        int, Field(ge=0, le=1000, description="The plan step whose checks it takes over; 0: none.")
    ] = 0


class Answer(BaseModel):
    """The supervisor's decision about the attempt."""

    action: Literal[
        "observe",
        "nudge",
        "replan",
        "grant_budget",
        "switch_model",
        "restart",
        "split",
        "ask_operator",
        "stop",
    ]
    diagnosis: Annotated[Diagnosis, Field(description="The one cause.")]
    message: Annotated[
        str, Field(max_length=4000, description="What is told to the worker, or to the person.")
    ] = ""
    rationale: Annotated[str, Field(max_length=4000, description="Why this action.")]
    evidence: Annotated[
        list[int], Field(max_length=50, description="The numbers of the steps it rests on.")
    ] = []
    plan: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=500)]],
        Field(max_length=12, description="Only for replan: the plan steps that remain."),
    ] = []
    grant: Annotated[
        GrantAnswer | None,
        Field(description="Only for grant_budget; none leaves it to the policy."),
    ] = None
    model: Annotated[
        str, Field(max_length=200, description="Only for switch_model: which one goes on.")
    ] = ""
    worker: Annotated[
        str, Field(max_length=200, description="Only for restart: who takes over; empty: the same.")
    ] = ""
    keep: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=300)]],
        Field(max_length=50, description="Only for restart: changed files to keep, as globs."),
    ] = []
    after: Annotated[
        str, Field(max_length=200, description="Only for restart: the task to wait for.")
    ] = ""
    parts: Annotated[
        list[PartAnswer], Field(max_length=50, description="Only for split: the smaller tasks.")
    ] = []


def check_answer(ctx: RunContext[Inquiry], answer: Answer) -> Answer:
    """Return the answer if it can be carried out; else raise ModelRetry with the reason."""
    context, action = ctx.deps.context, Action(answer.action)
    may = allowed_actions(context, answer.diagnosis)
    if action not in may:
        names = ", ".join(each.value for each in may)
        raise ModelRetry(
            f"{action} is not allowed here for {answer.diagnosis}. Allowed are: {names}."
        )
    if action in _SPOKEN and not answer.message.strip():
        raise ModelRetry(f"{action} needs a message.")
    require_known_steps(context, *answer.evidence)
    _check_terms(action, answer, context)
    if not answer.evidence and context.last_step and not ctx.deps.urged:
        ctx.deps.urged = True
        raise ModelRetry("Name the numbers of the steps that the diagnosis rests on (evidence).")
    return answer


def decision_of(answer: Answer, context: DecisionContext, *, author: str) -> Decision:
    """Convert a checked answer into a decision.

    If it names no steps although the model was asked for them, the first reading's are used.
    """
    action = Action(answer.action)
    terms, cut = _terms(action, answer, context)
    message = answer.message.strip() or action_message(action, context, answer.diagnosis, terms)
    return Decision(
        escalation=context.escalation,
        action=action,
        diagnosis=answer.diagnosis,
        message="" if action is Action.OBSERVE else message,
        rationale=f"{answer.rationale.strip()} {cut}".strip(),
        plan=tuple(answer.plan) if action is Action.REPLAN else (),
        terms=terms,
        steps=tuple(sorted(set(answer.evidence))) or context.reading.steps,
        by=Actor.SUPERVISOR,
        author=author,
    )


def _check_terms(action: Action, answer: Answer, context: DecisionContext) -> None:
    means = context.means
    if action is Action.SWITCH_MODEL:
        _one_of("model", answer.model, means.models)
    elif action is Action.RESTART:
        _one_of("worker", answer.worker, means.workers)
        _one_of("task to wait for", answer.after, (each.task for each in context.concurrent))
        outside = [each for each in answer.keep if not _stays_inside(each)]
        if outside:
            raise ModelRetry(f"keep names files below the workspace only, not {outside[0]!r}.")
    elif action is Action.SPLIT:
        _check_parts(answer, context)


def _one_of(what: str, name: str, names: Iterable[str]) -> None:
    there = tuple(names)
    if name and name not in there:
        raise ModelRetry(f"There is no {what} {name!r}; there is: {', '.join(there) or 'none'}.")


def _stays_inside(pattern: str) -> bool:
    path = PurePosixPath(pattern)
    return not path.is_absolute() and ".." not in path.parts


def _check_parts(answer: Answer, context: DecisionContext) -> None:
    most, steps = context.policy.max_parts, len(context.plan.steps)
    count = len(answer.parts) or len(context.plan.open_titles)
    if count < 2 or len(answer.parts) > most:
        raise ModelRetry(f"A split needs 2 to {most} parts, not {len(answer.parts)}.")
    unknown = [each.plan_step for each in answer.parts if each.plan_step > steps]
    if unknown:
        raise ModelRetry(f"There is no plan step {unknown[0]}: the plan has {steps}.")


def _terms(action: Action, answer: Answer, context: DecisionContext) -> tuple[Terms, str]:
    """Return the terms, and a note of what was cut from them."""
    table = terms_for(action, context, answer.diagnosis)
    match action:
        case Action.GRANT_BUDGET:
            return _grant_terms(answer, context, table)
        case Action.SWITCH_MODEL:
            return Terms(model=answer.model or table.model), ""
        case Action.RESTART:
            # The model's choice counts, even if it keeps nothing.
            worker = answer.worker or table.worker
            return Terms(worker=worker, keep=tuple(answer.keep), after=answer.after), ""
        case Action.SPLIT if answer.parts:
            return Terms(parts=tuple(_with_step_checks(each, context) for each in answer.parts)), ""
        case _:
            return table, ""


def _grant_terms(answer: Answer, context: DecisionContext, table: Terms) -> tuple[Terms, str]:
    wanted = answer.grant.as_grant if answer.grant else Grant()
    if not wanted:
        return table, ""
    given = capped_grant(wanted, context.means.grant)
    if given == wanted:
        return Terms(grant=given), ""
    given = given or table.grant
    return (
        replace(table, grant=given),
        f"[the model wanted {grant_text(wanted)}; the policy allows {grant_text(given)}]",
    )


def _with_step_checks(part: PartAnswer, context: DecisionContext) -> Part:
    """Return a part with the checks of its plan step: a model must not write commands."""
    steps = context.plan.steps
    checks = steps[part.plan_step - 1].acceptance if part.plan_step else ()
    return Part(title=part.title, goal=part.goal, acceptance=checks)
