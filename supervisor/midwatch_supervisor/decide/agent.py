"""The supervisor agent: a model decides within the policy; if it fails, the policy decides."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic_ai import Agent, UnexpectedModelBehavior, UsageLimits, capture_run_messages
from pydantic_ai.exceptions import (
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from midwatch_agents.model_failures import model_fault
from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Decision, Diagnosis, Fault, Spending
from midwatch_supervisor.decide.answer import (
    LOOKING,
    Answer,
    Inquiry,
    check_answer,
    decision_of,
)
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.decide.policy import allowed_actions, bound_decision, choose
from midwatch_supervisor.decide.prompt import MIN_CHARS, render
from midwatch_supervisor.decide.worker_requests import (
    RULING,
    OpenRequest,
    RequestRuling,
    RequestVerdict,
    by_policy,
    by_verdict,
)
from midwatch_supervisor.present.intervention_text import request_text
from midwatch_tools.data_blocks import DATA_RULE, DataBlocks
from midwatch_tools.observation import cost

T = TypeVar("T")

REQUESTS = 8
"""Model requests allowed in one try: enough to look a few times and then answer."""

CORRECTIONS = 2
"""How often within one try the model may correct an unusable answer."""

_HOPELESS = (ModelRequestRejectedError, ModelQuotaExceededError, UsageLimitExceeded, UserError)
"""Errors that no retry can fix, so the policy answers at once."""

INSTRUCTIONS = f"""\
You supervise an AI worker that its monitor reports as possibly stuck. Find the one cause, then
choose the gentlest action that can remove it.

{DATA_RULE}

Diagnoses, of which you name one:
- wrong_approach: it can be done, but not in the way that it is tried.
- missing_dependency: a program or a package that it needs is not installed.
- infeasible: it cannot be done as it is asked for, whoever tries.
- needs_split: it is too much for one task.
- wrong_worker: this worker lacks a tool, a permission or the knowledge.
- environment: something around the work stands in its way: permissions, the network, the disk.
- provider: the provider of its model is slow, overloaded or refuses.
- budget: the work goes well, but its budget ends first.
- false_alarm: nothing is wrong, or it is already being solved.
- unknown: the evidence does not tell.

Actions, in rising order of force:
- observe: the alert is false or already being solved; nothing is said.
- nudge: tell the worker what you see and what to do next.
- replan: the approach is wrong; say why, and give the plan steps that remain, or none to let the
  worker write them.
- grant_budget: give it more of what runs out, only where the work goes well.
- switch_model: another model goes on with the same attempt.
- restart: end this attempt; your message is the lesson that the next attempt begins with. Name in
  `keep` what of its changes is sound; the rest is dropped. Name a `worker` only for wrong_worker.
- split: end the task in favour of smaller ones, each a goal that can be reached by itself.
- ask_operator: a person must decide; say what exactly.
- stop: the task cannot be done; say why.

A message is for the worker: concrete, naming the file, the command and the step, and saying what
to do differently. Never repeat an action that had no effect in the same words: its outcome is
given with the reason. What was turned down, a person does not want: propose something else. What
the worker says of its own confidence and progress is weak evidence; what it did is strong
evidence. The first reading of the signs was made by simple rules and may be wrong. Always name in
`evidence` the numbers of the steps that your diagnosis rests on. Look with your tools only where
the evidence at hand does not decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A decision, with its cost and a fault of the model, if any."""

    decision: Decision
    spending: Spending | None = None
    """`None` if no model answered."""
    fault: Fault | None = None
    """Set if the model gave an answer that could not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply(Generic[T]):
    """The final answer of a model, or the reason why there is none."""

    answer: T | None = None
    reason: str = ""
    spending: Spending | None = None
    fault: Fault | None = None


class Supervisor:
    """Answers escalations and worker requests with a model, or without one by the policy."""

    def __init__(
        self,
        model: Model | None,
        settings: SupervisorSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._author = "" if model is None else model.model_name
        self._settings = settings
        self._sleep = sleep
        self._agent = None if model is None else _make_decider(model)
        self._judge = None if model is None else _make_agent(model, RequestVerdict, RULING)

    async def decide(self, context: DecisionContext, evidence: AttemptEvidence) -> DecisionResult:
        """Decide about an escalation; a fault of the model never raises.

        Transient faults are retried, for at most `timeout_seconds` in total. After that, or once
        the decisions about the attempt have used `max_requests`, the policy table decides, with the
        fault in the rationale. A cancellation carries what the model had cost: see `spent_before`.
        """
        if self._agent is None:
            return DecisionResult(decision=choose(context))
        said = await self._ask_within_limit(self._agent, _choices_text(context), context, evidence)
        if said.answer is None:
            decision = choose(context)
            decision = replace(decision, rationale=f"{said.reason}; {decision.rationale}")
        else:
            decision = decision_of(said.answer, context, author=self._author)
            decision = bound_decision(decision, context)
        return DecisionResult(decision=decision, spending=said.spending, fault=said.fault)

    async def rule(
        self, asked: OpenRequest, context: DecisionContext, evidence: AttemptEvidence
    ) -> RequestRuling:
        """Answer a worker request; a fault of the model never raises.

        The model is not asked about a request that the caps refuse.
        """
        ruled = by_policy(asked, context)
        if self._judge is None or asked.reason_to_refuse(context):
            return ruled
        context = replace(context, request=request_text(asked.request))
        said = await self._ask_within_limit(self._judge, "", context, evidence)
        if said.answer is None:
            ruled = replace(ruled, reason=f"{ruled.reason} ({said.reason})")
        else:
            ruled = by_verdict(asked, said.answer, context, author=self._author)
        return replace(ruled, spending=said.spending, fault=said.fault)

    async def _ask_within_limit(
        self,
        agent: Agent[Inquiry, T],
        before: str,
        context: DecisionContext,
        evidence: AttemptEvidence,
    ) -> ModelReply[T]:
        if context.asked >= self._settings.max_requests:
            spent = f"the supervisor has used its {self._settings.max_requests} requests"
            return ModelReply(reason=f"{spent} for this attempt")
        used: list[Sequence[ModelMessage]] = []
        deadline = asyncio.timeout(self._settings.timeout_seconds)
        try:
            async with deadline:
                answer = await self._ask_repeatedly(agent, before, context, evidence, used)
        except asyncio.CancelledError as canceled:
            canceled.args += (_spending_of(self._author, used),)
            raise
        except Exception as error:  # the policy answers, whatever a provider's client raises
            late = f"no answer within {self._settings.timeout_seconds:g} s"
            asked = len(_responses(used))
            why = late if deadline.expired() else model_fault(error, requests=asked)
            refused = isinstance(error, UnexpectedModelBehavior) and not deadline.expired()
            return ModelReply(
                reason=f"the model {self._author} failed: {why}",
                spending=_spending_of(self._author, used),
                fault=Fault(part="supervisor", error=why) if refused else None,
            )
        return ModelReply(answer=answer, spending=_spending_of(self._author, used))

    async def _ask_repeatedly(
        self,
        agent: Agent[Inquiry, T],
        before: str,
        context: DecisionContext,
        evidence: AttemptEvidence,
        used: list[Sequence[ModelMessage]],
    ) -> T:
        """Ask until there is an answer; append the messages of every try to `used`."""
        settings, blocks = self._settings, DataBlocks.with_new_code()
        chars = max(MIN_CHARS, settings.max_evidence_chars // 2)
        shown = replace(context, diff=await _diff(evidence))
        prompt = f"{before}{render(shown, chars, blocks)}"

        async def once() -> T:
            inquiry = Inquiry(
                context=context,
                evidence=evidence,
                blocks=blocks,
                room=settings.max_evidence_chars - chars,
            )
            left = settings.max_requests - context.asked - len(_responses(used))
            limits = UsageLimits(request_limit=min(REQUESTS, left))
            with capture_run_messages() as messages:
                used.append(messages)
                return (await agent.run(prompt, deps=inquiry, usage_limits=limits)).output

        retrying = AsyncRetrying(
            stop=stop_after_attempt(settings.tries),
            wait=wait_random_exponential(max=settings.max_wait_seconds),
            retry=retry_if_exception(_is_temporary),
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(once)


async def _diff(evidence: AttemptEvidence) -> str:
    """Return the diff, or why it cannot be read: no decision waits for git."""
    try:
        return await evidence.diff()
    except WorkspaceError as error:
        return f"(it cannot be read now: {error})"


def _make_decider(model: Model) -> Agent[Inquiry, Answer]:
    agent = _make_agent(model, Answer, INSTRUCTIONS)
    agent.output_validator(check_answer)
    return agent


def _make_agent(model: Model, output: type[T], instructions: str) -> Agent[Inquiry, T]:
    return Agent(
        model,
        name="supervisor",
        output_type=output,
        deps_type=Inquiry,
        instructions=instructions,
        retries=CORRECTIONS,
        tools=LOOKING,
    )


def _choices_text(context: DecisionContext) -> str:
    """Describe the actions allowed for each diagnosis, and the models and workers on offer."""
    lines: dict[str, list[str]] = {}
    for diagnosis in Diagnosis:
        may = ", ".join(action.value for action in allowed_actions(context, diagnosis))
        lines.setdefault(may, []).append(diagnosis.value)
    means = context.means
    there = [
        f"{what}: {', '.join(names)}.\n"
        for what, names in (("Other models", means.models), ("Other workers", means.workers))
        if names
    ]
    if len(lines) == 1:
        return f"You may choose: {next(iter(lines))}.\n{''.join(there)}"
    may_words = "".join(f"- {', '.join(names)}: {may}\n" for may, names in lines.items())
    return f"You may choose, by your diagnosis:\n{may_words}{''.join(there)}"


def _responses(used: Sequence[Sequence[ModelMessage]]) -> list[ModelResponse]:
    return [each for messages in used for each in messages if isinstance(each, ModelResponse)]


def _spending_of(model: str, used: Sequence[Sequence[ModelMessage]]) -> Spending | None:
    responses = _responses(used)
    if not responses:
        return None
    return Spending(
        role="supervisor",
        model=model,
        requests=len(responses),
        tokens=sum(each.usage.total_tokens for each in responses),
        cost_usd=sum(cost(each) for each in responses),
    )


def _is_temporary(error: BaseException) -> bool:
    # A cancellation or an interrupt is not the model's fault, so it is not retried.
    return isinstance(error, Exception) and not isinstance(error, _HOPELESS)
