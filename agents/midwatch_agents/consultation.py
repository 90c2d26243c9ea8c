"""A single question to a model that is not a worker, bounded in requests and time."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic_ai import Agent, RunContext, Tool, UsageLimits, capture_run_messages
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model

from midwatch_agents.model_failures import model_fault
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.records import Spending
from midwatch_tools.observation import cost

CORRECTIONS = 2
"""How often an unusable answer is returned to the model with the reason."""

DepsT = TypeVar("DepsT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Consulted(Generic[AnswerT]):
    """An answer, and what it cost."""

    answer: AnswerT
    spending: Spending


async def consult(
    model: Model,
    prompt: str,
    *,
    role: Role,
    instructions: str,
    answer: type[AnswerT],
    check: Callable[[RunContext[DepsT], AnswerT], AnswerT] | None = None,
    deps: DepsT,
    tools: Sequence[Tool[DepsT]] = (),
    name: str = "",
    requests: int = 1 + CORRECTIONS,
    seconds: float,
) -> Consulted[AnswerT]:
    """Ask a model; raises WorkerError with the reason if there is no usable one in time.

    The error, or a cancellation, carries what the question cost: see `spent_before`.

    `check` rejects an unusable answer by raising ModelRetry; it and the `tools` get `deps`. The
    model itself retries after temporary failures.
    """
    agent = Agent[DepsT, AnswerT](
        name=name or role.value,
        output_type=answer,
        deps_type=type(deps),
        instructions=instructions,
        retries=CORRECTIONS,
        tools=tools,
    )
    if check is not None:
        agent.output_validator(check)
    deadline = asyncio.timeout(seconds)
    limits = UsageLimits(request_limit=requests)
    with capture_run_messages() as messages:
        try:
            async with deadline:
                result = await agent.run(prompt, model=model, deps=deps, usage_limits=limits)
        except asyncio.CancelledError as canceled:
            canceled.args += _unanswered_spending(role, model, messages)
            raise
        except Exception as error:  # a provider's client may raise anything; the work does without
            late = f"no answer within {seconds:g} s"
            fault = late if deadline.expired() else model_fault(error, requests=requests)
            text = f"the {role} {model.model_name} failed: {fault}"
            raise WorkerError(text, *_unanswered_spending(role, model, messages)) from error
    return Consulted(answer=result.output, spending=_spending_of(role, model, messages))


def spent_before(error: BaseException) -> tuple[Spending, ...]:
    """Return what questions cost that failed or were canceled; the error has it as arguments."""
    return tuple(each for each in error.args if isinstance(each, Spending))


def _unanswered_spending(
    role: Role, model: Model, messages: Sequence[ModelMessage]
) -> tuple[Spending, ...]:
    """Return what a question without an answer cost; empty if the model never responded."""
    spending = _spending_of(role, model, messages)
    return (spending,) if spending.requests else ()


def _spending_of(role: Role, model: Model, messages: Sequence[ModelMessage]) -> Spending:
    """Return what the answers among the messages of a run cost."""
    answers = [each for each in messages if isinstance(each, ModelResponse)]
    return Spending(
        role=role,
        model=model.model_name,
        requests=len(answers),
        tokens=sum(each.usage.total_tokens for each in answers),
        cost_usd=sum(map(cost, answers)),
    )
