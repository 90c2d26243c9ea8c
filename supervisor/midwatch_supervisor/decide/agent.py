"""The supervisor agent: a model decides within the policy; where it fails, the policy decides."""

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

from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.records import Decision, Diagnosis, Fault, Spending
from midwatch_supervisor.decide.answer import (
    LOOKING,
    Answer,
    Dossier,
    Inquiry,
    checked,
    decision_of,
)
from midwatch_supervisor.decide.evidence import MIN_CHARS, Case, render
from midwatch_supervisor.decide.policy import allowed, bounded, choose
from midwatch_supervisor.decide.standing import Standing
from midwatch_supervisor.decide.worker_requests import (
    RULING,
    Plea,
    Ruled,
    Verdict,
    by_policy,
    by_verdict,
)
from midwatch_tools.data_blocks import DATA_RULE, DataBlocks, cut
from midwatch_tools.session import cost

T = TypeVar("T")

REQUESTS = 8
"""Model requests that one try may take: enough to look a few times, and then to answer."""

CORRECTIONS = 2
"""How often within one try an unusable answer is handed back with the reason."""

_HOPELESS = (ModelRequestRejectedError, ModelQuotaExceededError, UsageLimitExceeded, UserError)
"""Errors that stay the same however often the model is asked: the next answer is the policy's."""

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
given with the reason. What the worker says of its own confidence and progress is weak evidence;
what it did is strong evidence. The first reading of the signs was made by simple rules and may be
wrong. Always name in `evidence` the numbers of the steps that your diagnosis rests on. Look with
your tools only where the evidence at hand does not decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision, and what it took."""

    decision: Decision
    spending: Spending | None = None
    """`None` where no model answered."""
    fault: Fault | None = None
    """An answer of the model that could not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Generic[T]):
    """What a model answered at last, or why it did not."""

    answer: T | None = None
    reason: str = ""
    spending: Spending | None = None
    fault: Fault | None = None


class Supervisor:
    """Decides escalations and petitions with a model, or by the policy where there is none."""

    def __init__(
        self,
        model: Model | None,
        settings: SupervisorSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._settings = settings
        self._sleep = sleep
        self._agent = None if model is None else _agent(model)
        self._judge = None if model is None else _judge(model)

    async def decide(self, case: Case, dossier: Dossier, standing: Standing) -> Decided:
        """The decision of one escalation; a fault of the model never raises.

        A passing fault is tried again, all tries together take at most `timeout_seconds`, and
        then the policy table decides, with the fault in the rationale. It decides as well once
        the decisions about the attempt have taken `max_requests`.
        """
        if self._agent is None or self._model is None:
            return Decided(decision=choose(standing))
        said = await self._ask(self._agent, _prompt(standing), case, dossier, standing)
        if said.answer is None:
            decision = _instead(standing, said.reason)
        else:
            author = self._model.model_name
            decision = bounded(decision_of(said.answer, standing, author=author), standing)
        return Decided(decision=decision, spending=said.spending, fault=said.fault)

    async def rule(self, plea: Plea, case: Case, dossier: Dossier, standing: Standing) -> Ruled:
        """The answer to what a worker asks for; a fault of the model never raises.

        What the caps refuse, no model is asked about.
        """
        ruled = by_policy(plea, standing)
        if self._judge is None or self._model is None or not plea.open(standing):
            return ruled
        shown = replace(case, petition=plea.words)
        said = await self._ask(self._judge, "", shown, dossier, standing)
        if said.answer is None:
            ruled = replace(ruled, reason=f"{ruled.reason} ({said.reason})")
        else:
            ruled = by_verdict(plea, said.answer, standing, author=self._model.model_name)
        return replace(ruled, spending=said.spending, fault=said.fault)

    async def _ask(
        self,
        agent: Agent[Inquiry, T],
        before: str,
        case: Case,
        dossier: Dossier,
        standing: Standing,
    ) -> Said[T]:
        name = agent.model.model_name if isinstance(agent.model, Model) else ""
        if standing.asked >= self._settings.max_requests:
            spent = f"the {self._settings.max_requests} requests of the supervisor are used"
            return Said(reason=f"{spent} for this attempt")
        used: list[Sequence[ModelMessage]] = []
        deadline = asyncio.timeout(self._settings.timeout_seconds)
        try:
            async with deadline:
                answer = await self._try(agent, before, case, dossier, standing, used)
        except Exception as error:  # whatever a provider's client raises, the policy can answer
            late = f"no answer within {self._settings.timeout_seconds:g} s"
            told = late if deadline.expired() else _fault(error)
            refused = isinstance(error, UnexpectedModelBehavior) and not deadline.expired()
            return Said(
                reason=f"the model {name} failed: {told}",
                spending=_spending(name, used),
                fault=Fault(part="supervisor", error=f"answer refused: {told}")
                if refused
                else None,
            )
        return Said(answer=answer, spending=_spending(name, used))

    async def _try(
        self,
        agent: Agent[Inquiry, T],
        before: str,
        case: Case,
        dossier: Dossier,
        standing: Standing,
        used: list[Sequence[ModelMessage]],
    ) -> T:
        chars = max(MIN_CHARS, self._settings.max_evidence_chars // 2)
        blocks = DataBlocks.drawn()
        prompt = f"{before}{render(case, chars, blocks)}"

        async def once() -> T:
            room = self._settings.max_evidence_chars - chars
            inquiry = Inquiry(
                case=case, dossier=dossier, standing=standing, blocks=blocks, room=room
            )
            left = self._settings.max_requests - standing.asked - _requests(used)
            limits = UsageLimits(request_limit=min(REQUESTS, left))
            with capture_run_messages() as messages:
                used.append(messages)
                return (await agent.run(prompt, deps=inquiry, usage_limits=limits)).output

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._settings.tries),
            wait=wait_random_exponential(max=self._settings.max_wait_seconds),
            retry=retry_if_exception(_passing),
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(once)


def _agent(model: Model) -> Agent[Inquiry, Answer]:
    agent = Agent(
        model,
        name="supervisor",
        output_type=Answer,
        deps_type=Inquiry,
        instructions=INSTRUCTIONS,
        retries=CORRECTIONS,
        tools=LOOKING,
    )
    agent.output_validator(checked)
    return agent


def _judge(model: Model) -> Agent[Inquiry, Verdict]:
    return Agent(
        model,
        name="supervisor",
        output_type=Verdict,
        deps_type=Inquiry,
        instructions=RULING,
        retries=CORRECTIONS,
        tools=LOOKING,
    )


def _prompt(standing: Standing) -> str:
    """What may be chosen for each diagnosis, and what there is to choose from."""
    lines: dict[str, list[str]] = {}
    for diagnosis in Diagnosis:
        may = ", ".join(action.value for action in allowed(standing, diagnosis))
        lines.setdefault(may, []).append(diagnosis.value)
    means = standing.means
    there = [
        f"{what}: {', '.join(names)}.\n"
        for what, names in (("Other models", means.models), ("Other workers", means.workers))
        if names
    ]
    if len(lines) == 1:
        return f"You may choose: {next(iter(lines))}.\n{''.join(there)}"
    may_words = "".join(f"- {', '.join(names)}: {may}\n" for may, names in lines.items())
    return f"You may choose, by your diagnosis:\n{may_words}{''.join(there)}"


def _instead(standing: Standing, reason: str) -> Decision:
    decision = choose(standing)
    return replace(decision, rationale=f"{reason}; {decision.rationale}")


def _responses(used: Sequence[Sequence[ModelMessage]]) -> list[ModelResponse]:
    return [each for messages in used for each in messages if isinstance(each, ModelResponse)]


def _requests(used: Sequence[Sequence[ModelMessage]]) -> int:
    return len(_responses(used))


def _spending(model: str, used: Sequence[Sequence[ModelMessage]]) -> Spending | None:
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


def _passing(error: BaseException) -> bool:
    # A cancellation or an interrupt is no fault of the model: it goes through at once.
    return isinstance(error, Exception) and not isinstance(error, _HOPELESS)


def _fault(error: Exception) -> str:
    # The cause says what the last answer had wrong, where the error only says "too often".
    cause = f" ({error.__cause__})" if error.__cause__ is not None else ""
    return cut(f"{type(error).__name__}: {error}{cause}", 600)
