"""An attempt that cannot go on: its provider is out, or it hangs and a person is asked.

Elsewhere an attempt waits for a person at its next model request. One that hangs in a request or
a tool never comes there.
"""

import asyncio
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from midwatch_agents.model_failures import passing
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Activity,
    Analysis,
    AttemptTransition,
    Budget,
    Cause,
    Change,
    Delivery,
    DeliveryState,
    Intervention,
    Lifecycle,
    Step,
    StepKind,
    Teller,
)
from midwatch_tools.observation import canonical
from midwatch_tools.tool_calls import keep

CUT_SHORT = "[midwatch] cancelled: it gave no answer, and a person was asked. Do not wait for it."
"""What a call that hung returns. Run again, it would hang again, and no answer would be read."""

Question = tuple[int, Intervention]


def hung(due: Sequence[Question]) -> tuple[Question, ...]:
    """The questions to a person that are asked because the attempt is silent."""
    return tuple(
        (id, each)
        for id, each in due
        if each.action is Action.ASK_OPERATOR and any(key.rule == "silence" for key in each.answers)
    )


async def park(
    recorder: Recorder,
    questions: Sequence[Question],
    *,
    budget: Budget | None,
    history: Sequence[ModelMessage],
) -> None:
    """Store that the attempt waits for a person, and what its hung calls came to, as one."""
    request = sum(isinstance(message, ModelResponse) for message in history)
    calls = _unanswered(recorder, history, request)
    await recorder.record(
        *(_cut_short(call, request) for call in calls),
        *(_asked(id, recorder.last_step + len(calls)) for id, _ in questions),
        Change(lifecycle=Lifecycle.INPUT_REQUIRED, activity=Activity.WAITING, budget=budget),
        AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason=questions[-1][1].message),
        results=[
            result
            for call in calls
            for result in keep(f"{request}:{call.tool_call_id}", returned=CUT_SHORT)
        ],
    )


def _unanswered(
    recorder: Recorder, history: Sequence[ModelMessage], request: int
) -> list[ToolCallPart]:
    last = history[-1] if history else None
    if not isinstance(last, ModelResponse):
        return []
    calls = [call for call in last.tool_calls if call.tool_call_id]
    return [call for call in calls if not recorder.knows(call.tool_call_id, request=request)]


def _cut_short(call: ToolCallPart, request: int) -> Step:
    return Step(
        number=0,
        kind=StepKind.TOOL,
        request=request,
        tool=call.tool_name,
        args=call.args if isinstance(call.args, str) else canonical(call.args or {}),
        ok=False,
        output=CUT_SHORT,
        call=call.tool_call_id,
    )


def _asked(id: int, step: int) -> Delivery:
    return Delivery(intervention=id, state=DeliveryState.DELIVERED, step=step)


def passes(error: WorkerError) -> bool:
    """Whether the same request may succeed later."""
    return error.__cause__ is not None and passing(error.__cause__)


async def sit_out(recorder: Recorder, said: str, seconds: float) -> None:
    """Wait for a provider that could not serve a request however often it was asked."""
    await recorder.record(
        Change(activity=Activity.RATE_LIMITED, doing=f"goes on in {seconds:g} s"),
        Analysis(
            what=said,
            cause=Cause.TRANSIENT,
            root="the provider could not serve the request",
            remedy=f"wait {seconds:g} s and go on",
            by=Teller.WATCH,
        ),
    )
    await asyncio.sleep(seconds)
