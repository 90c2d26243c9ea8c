"""Observes tool calls from outside, and records each one before the model sees its result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.tools import RunContext
from pydantic_core import PydanticSerializationError

from midwatch_monitor.config.problem import error_line
from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.records import (
    Activity,
    Change,
    Edit,
    Record,
    Result,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.identity import END_UNKNOWN, HELD_BACK
from midwatch_monitor.shell.claimed_edits import claimed_edits
from midwatch_tools.gate.gate import ALLOWED, AttemptGate, Permission
from midwatch_tools.observation import (
    act_words,
    canonical,
    cut,
    named_path,
    read_result,
    said_with,
)
from midwatch_tools.session import MAX_DOING, Session
from midwatch_tools.tree import Tree


class _Kept(BaseModel):
    how: Literal["returned", "retry", "failed"]
    value: JsonValue = None


_JSON = TypeAdapter[JsonValue](JsonValue)


def kept_result(
    call: str, *, returned: object = None, error: BaseException | None = None
) -> tuple[Result, ...]:
    """Return the result of a call as the journal keeps it; empty if it cannot be given again."""
    if not call:
        return ()
    try:
        if error is None:
            kept = _Kept(how="returned", value=_JSON.validate_python(returned, strict=True))
        elif isinstance(error, ModelRetry):
            kept = _Kept(how="retry", value=error.message)
        elif isinstance(error, ToolFailed):
            kept = _Kept(how="failed", value=str(error))
        else:
            return ()
        return (Result(call=call, body=kept.model_dump_json().encode()),)
    except (ValidationError, PydanticSerializationError):
        return ()  # not plain JSON: the tool is run again after a crash


class KeptResults:
    """The kept results of an attempt, by tool call."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._bodies = {result.call: result.body for result in results}

    def __contains__(self, call: str) -> bool:
        return call in self._bodies

    def give(self, call: str) -> JsonValue:
        """Return or raise whatever the call returned or raised the first time."""
        try:
            kept = _Kept.model_validate_json(self._bodies[call])
        except ValidationError:  # its message would quote the content
            raise JournalCorruptError(f"the stored result of call {call!r} is not valid") from None
        if kept.how == "retry":
            raise ModelRetry(str(kept.value))
        if kept.how == "failed":
            raise ToolFailed(str(kept.value))
        return kept.value


log = logging.getLogger(__name__)

ToolHandler = Callable[[dict[str, Any]], Awaitable[Any]]

UNWATCHED = "The work is not watched at the moment; go on with it."
"""The answer of Midwatch's own tools while the journal cannot be used."""

_NOT_RUN = (ApprovalRequired, CallDeferred, SkipToolExecution)
"""These postpone a call or replace its result; the call is recorded when it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUnderWay:
    """A tool call in its run, with validated arguments."""

    ctx: RunContext[Any]
    call: ToolCallPart
    args: dict[str, Any]


class ToolCallWatch:
    """Watches the tool calls of one run, and the files in its workspace."""

    def __init__(
        self,
        session: Session,
        remembered: KeptResults,
        tree: Tree | None,
        *,
        resumed: bool,
        foreign: bool,
        tolerate: Callable[[Awaitable[object]], Awaitable[None]],
        entrance: AttemptGate,
    ) -> None:
        self.session = session
        self.entrance = entrance
        self._remembered = remembered
        self._tree = tree
        self._tolerate = tolerate
        self._running = 0
        """Number of calls that are not recorded yet."""
        self._writing = 0
        """Number of calls whose tools are still running."""
        self._starting = asyncio.Lock()
        self._stash: dict[str, tuple[Record, ...]] = {}
        # A change made while no process was watching is most likely from the interrupted call.
        self._trust_next = resumed
        self._foreign = foreign

    def stash(self, ctx: RunContext[Any], *records: Record) -> None:
        """Keep records from one of Midwatch's own tools, to be committed with the tool's result."""
        self._stash[ctx.tool_call_id or ""] = records

    def report(self, ctx: RunContext[Any], output: str, *records: Record, ok: bool = True) -> None:
        """Keep records in the same way, preceded by the tool call itself as a step."""
        tool = ctx.tool_name or ""
        step = Step(number=0, kind=StepKind.TOOL, tool=tool, ok=ok, output=output)
        self.stash(ctx, step, *records)

    async def before_request(self, ctx: RunContext[Any]) -> None:
        """Record the calls that no hook reported, then deliver what is due before a request."""
        for call, reason in _find_refused(ctx.messages):
            await self._record_refusal(ctx, call, reason)
        await self.session.before_request(ctx)

    async def around(self, act: CallUnderWay, handler: ToolHandler) -> Any:
        """Run a tool call once and record it with its edits before the model sees the result."""
        if (key := self._result_key(act.call)) in self._remembered:
            return self._remembered.give(key)
        verdict = await self._verdict(act)
        if verdict.refusal:
            return await self._turn_away(act, HELD_BACK + verdict.refusal)
        if verdict.wait:
            await self._wait_to_retry(act.call, verdict.wait)
        async with self._starting:  # no call of this turn may write until the look is over
            foreign = await self._foreign_edits(act.args)
            self._running += 1
        try:
            return await self._observe(act, foreign, handler)
        finally:
            self._running -= 1

    async def _verdict(self, act: CallUnderWay) -> Permission:
        """Return whether the call may run; a broken gate stops nothing."""
        if self.entrance.is_open:
            return ALLOWED
        try:
            return await self.entrance.ask(self._step(act), act.ctx.messages)
        except Exception:
            log.exception("the gate cannot judge a call of %s; it runs", act.call.tool_name)
            return ALLOWED

    async def _turn_away(self, act: CallUnderWay, reason: str) -> str:
        """Answer a call that does not run, without using up one of the tool's retries."""
        step = replace(self._step(act), ok=False, output=reason)
        kept = kept_result(self._result_key(act.call), returned=reason)
        if not self._is_recorded(act.call):
            await self._tolerate(self.session.record(step, *self.session.act_ended(), results=kept))
        return reason

    async def _wait_to_retry(self, call: ToolCallPart, seconds: float) -> None:
        """Wait before a transient failure is tried again."""
        doing = f"waits {seconds:g} s before it retries"
        record = self.session.record
        await self._tolerate(record(Change(activity=Activity.WAITING, doing=doing)))
        await asyncio.sleep(seconds)
        doing = cut(self.session.masked(act_words(call)), MAX_DOING)
        await self._tolerate(record(Change(activity=Activity.COMMAND, doing=doing)))

    async def _observe(
        self, act: CallUnderWay, foreign: tuple[Edit, ...], handler: ToolHandler
    ) -> Any:
        try:
            result = await self._run_counted(handler, act.args)
        except _NOT_RUN:
            raise
        except (Exception, SystemExit) as error:
            await self._tolerate(self._record(act, foreign, error=error))
            raise
        await self._tolerate(self._record(act, foreign, result=result))
        return result

    async def _run_counted(self, handler: ToolHandler, args: dict[str, Any]) -> Any:
        self._writing += 1
        try:
            return await handler(args)
        finally:
            self._writing -= 1

    def _result_key(self, call: ToolCallPart) -> str:
        """Return the key of a call's result. It includes the request, because some providers reuse
        ids in later turns.
        """
        return f"{self.session.requests}:{call.tool_call_id}" if call.tool_call_id else ""

    def _is_recorded(self, call: ToolCallPart) -> bool:
        return self.session.recorder.knows(call.tool_call_id, request=self.session.requests)

    async def record_invalid(
        self, ctx: RunContext[Any], call: ToolCallPart, error: Exception
    ) -> None:
        """Record a call that never ran because its arguments were not valid."""
        await self._record_refusal(ctx, call, _reason(error))

    async def _record_refusal(self, ctx: RunContext[Any], call: ToolCallPart, reason: str) -> None:
        if self._is_recorded(call):
            return
        args = call.args if isinstance(call.args, str) else canonical(call.args or {})
        act = CallUnderWay(ctx=ctx, call=call, args={})
        step = replace(self._step(act), args=args, ok=False, output=reason)
        await self.session.record(step, *self.session.act_ended())

    async def _foreign_edits(self, args: Mapping[str, object]) -> tuple[Edit, ...]:
        """Return edits by others since the last call; none are assumed while calls run."""
        if self._tree is None:
            return ()
        await self._tree.expect(named_path(args))
        if self._running or self._foreign:  # a foreign agent's call has begun before we hear of it
            return ()
        if self._trust_next:
            self._trust_next = False
            return ()
        return await self._tree.changes(Writer.PERSON)

    async def _own_edits(self, tree: Tree, args: Mapping[str, object]) -> tuple[Edit, ...]:
        """Return the edits of a call; while others run, only of the file its arguments name."""
        # A call that is only being recorded has already looked and will not look again.
        return await tree.changes(Writer.WORKER, named_path(args), only_named=self._writing > 0)

    async def _record(
        self,
        act: CallUnderWay,
        foreign: tuple[Edit, ...],
        *,
        result: object = None,
        error: BaseException | None = None,
    ) -> None:
        call = act.call
        own = self._stash.pop(call.tool_call_id, None)
        kept = (
            kept_result(self._result_key(call), returned=result, error=error)
            if self.session.resumable
            else ()
        )
        if own is not None:
            records = [
                self._at_turn(act, record) if isinstance(record, Step) else record for record in own
            ]
            await self.session.record(*records, *self.session.act_ended(), results=kept)
            if pace := self.session.pace():
                await self.session.record(*pace)
            return
        observed = self._observe_step(act, result, error)
        if self._tree is None:
            own_edits = claimed_edits(call.tool_name, act.args) if observed.ok else ()
        else:
            own_edits = await self._own_edits(self._tree, act.args)
        step = replace(observed, edits=(*foreign, *own_edits))
        if not self._is_recorded(call):
            await self.session.record(step, *self.session.act_ended(), results=kept)

    def _observe_step(self, act: CallUnderWay, result: object, error: BaseException | None) -> Step:
        reading = read_result(
            act.call.tool_name,
            result if error is None else _reason(error),
            failed=error is not None,
            max_chars=self.session.settings.run.max_output_chars,
            masked=self.session.masked,
        )
        unknown = error is not None and _reason(error) == END_UNKNOWN
        return replace(
            self._step(act),
            ok=None if unknown else reading.ok,
            exit_code=reading.exit_code,
            output=reading.output,
            output_digest=reading.digest,
        )

    def _step(self, act: CallUnderWay) -> Step:
        step = Step(
            number=0,
            kind=StepKind.TOOL,
            tool=act.call.tool_name,
            args=canonical(act.args),
            path=named_path(act.args),
        )
        return self._at_turn(act, step)

    def _at_turn(self, act: CallUnderWay, step: Step) -> Step:
        """Return the step with its request; text and tokens of a turn go to its first call."""
        response = said_with(act.ctx.messages, act.call)
        return replace(
            step,
            request=self.session.requests,
            call=act.call.tool_call_id,
            text=response.text or "" if response else "",
            tokens=response.usage.total_tokens if response else 0,
            cost_usd=self.session.cost_of(response) if response else 0.0,
        )


def _find_refused(messages: Sequence[ModelMessage]) -> list[tuple[ToolCallPart, str]]:
    """Return the calls of the last turn that were returned to the model with a reason."""
    handed_back: dict[str, str] = {}
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            calls = message.tool_calls
            return [
                (c, handed_back[c.tool_call_id]) for c in calls if c.tool_call_id in handed_back
            ]
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and part.retry is not None:
                handed_back[part.tool_call_id] = part.model_response_str()
    return []


def _reason(error: BaseException) -> str:
    told = _tool_error(error)
    if isinstance(told, ModelRetry | ToolFailed):
        return told.message
    if isinstance(told, ValidationError):
        return f"its arguments are not valid: {error_line(told.errors(include_url=False))}"
    return f"{type(told).__name__}: {told}"


def _tool_error(error: BaseException) -> BaseException:
    """Return what a tool raised; pydantic-ai may have wrapped it."""
    cause = error.__cause__
    return cause if isinstance(cause, ModelRetry | ToolFailed) else error
