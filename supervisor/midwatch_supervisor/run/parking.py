"""An attempt that cannot continue: its provider is down, or it hangs and a person is asked.

Other attempts wait for a person at their next model request. One that hangs in a request or a tool
never gets there.
"""

import asyncio
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model

from midwatch_agents.model_failures import failure_of, passing, reason_of, refusal, url_of
from midwatch_agents.model_retries import Breakers
from midwatch_monitor.errors import ProviderRefusedError, WorkerError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Activity,
    AttemptTransition,
    Budget,
    Change,
    Intervention,
    Lifecycle,
    Outage,
    Step,
    StepKind,
)
from midwatch_tools.inbox import stamp
from midwatch_tools.observation import canonical
from midwatch_tools.pauses import Pause, TellPause, pause_records
from midwatch_tools.tool_calls import kept_result

CUT_SHORT = "[midwatch] canceled: it gave no answer, and a person was asked. Do not wait for it."
"""Result of a call that hung. If it ran again, it would hang again, and no answer would be read."""

ParkedQuestion = tuple[int, Intervention]


def silence_questions(due: Sequence[ParkedQuestion]) -> tuple[ParkedQuestion, ...]:
    """Return the questions that a person is asked because the attempt is silent."""
    return tuple(
        (id, each)
        for id, each in due
        if each.action is Action.ASK_OPERATOR and any(key.rule == "silence" for key in each.answers)
    )


async def park(
    recorder: Recorder,
    questions: Sequence[ParkedQuestion],
    *,
    budget: Budget | None,
    history: Sequence[ModelMessage],
) -> None:
    """Store in one commit that the attempt waits for a person, and results of its hung calls."""
    request = sum(isinstance(message, ModelResponse) for message in history)
    calls = _unanswered_calls(recorder, history, request)
    await recorder.record(
        *(_cut_short(call, request) for call in calls),
        *(stamp(id, recorder.last_step + len(calls)) for id, _ in questions),
        Change(lifecycle=Lifecycle.INPUT_REQUIRED, activity=Activity.WAITING, budget=budget),
        AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason=questions[-1][1].message),
        results=[
            result
            for call in calls
            for result in kept_result(f"{request}:{call.tool_call_id}", returned=CUT_SHORT)
        ],
    )


def _unanswered_calls(
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


def is_temporary(error: WorkerError) -> bool:
    """Whether the same request may succeed later."""
    return error.__cause__ is not None and passing(error.__cause__)


async def wait_for_provider(recorder: Recorder, error: WorkerError, seconds: float) -> None:
    """Record that the provider is down, and wait before the next try."""
    known, fault = recorder.outage, error.__cause__ or error
    pause = Pause(
        url=known.url if known else url_of(fault), reason=reason_of(fault), seconds=seconds
    )
    await pause_recorder(recorder)(pause)
    await asyncio.sleep(seconds)


def raise_refusal(error: WorkerError, breakers: Breakers, model: Model) -> None:
    """Raise ProviderRefusedError if the first request to an agent's own model was refused."""
    fault, who = error.__cause__, f"the agent's model {model.model_name}"
    failure = failure_of(fault) if fault is not None else None
    if fault is not None and failure is not None and breakers.of(model).refuses(failure, who):
        raise refusal(fault, who=who, url=(model.base_url or "").rstrip("/")) from error


async def park_refused(recorder: Recorder, error: ProviderRefusedError) -> None:
    """Store that the attempt waits for a provider that is not asked until the run is resumed."""
    known, at = recorder.outage, recorder.clock()
    since = known.since if known else at
    away = Outage(url=error.url, reason=error.reason, since=since)
    await recorder.record(Change(activity=Activity.IDLE, outage=away))


def pause_recorder(recorder: Recorder) -> TellPause:
    """Return a function that records the pauses of any model used for an attempt."""

    async def tell(pause: Pause | None) -> None:
        if records := pause_records(recorder.outage, pause, recorder.clock()):
            await recorder.record(*records)

    return tell
