"""The client's side of one session with an agent that speaks ACP."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION
from acp.connection import Connection
from acp.exceptions import RequestError
from pydantic_ai.messages import ToolCallPart

from midwatch_agents.acp.presets import Steering
from midwatch_agents.acp.tool_server import NAME, Answered
from midwatch_agents.acp.transport import LineTransport
from midwatch_agents.acp.updates import (
    ENDED,
    AgentCall,
    choose_option,
    cost_of,
    is_ours,
    text_of,
    tokens_of,
)
from midwatch_monitor.errors import AgentDiedError, WorkerError
from midwatch_monitor.traces.foreign import JsonNode

log = logging.getLogger(__name__)

_START_SECONDS = 120
_CANCEL_SECONDS = 10
"""Time for an agent to end a canceled turn."""
_SETTLE_SECONDS = 0.5
"""Time to wait for more arguments of a call before it is taken as begun."""

PermissionQuestion = asyncio.Future[bool | None]
"""Whether something is permitted; `None` once the answer no longer matters."""


class CallStart:
    """A tool call that the agent has begun."""

    def __init__(self, call: AgentCall) -> None:
        self.call = call
        self.asked: asyncio.Queue[PermissionQuestion | None] = asyncio.Queue()
        """The permissions that it is waiting for; `None` once the call is over."""
        self.told = False
        """Whether the call has been added to the session's events."""
        self.settling: asyncio.TimerHandle | None = None
        """Announces the call even if no more of its arguments arrive."""
        self._questions: list[PermissionQuestion] = []

    async def permission(self) -> bool | None:
        """Ask for permission and wait for the answer; `None` if the call ends first."""
        asked = PermissionQuestion()
        self._questions.append(asked)
        self.asked.put_nowait(asked)
        return await asked

    def withdraw(self) -> None:
        """Answer all open permission questions with `None`."""
        for asked in self._questions:
            if not asked.done():
                asked.set_result(None)

    def settle(self) -> None:
        """Stop waiting for more arguments."""
        if self.settling is not None:
            self.settling.cancel()

    def end(self) -> None:
        """Close the call: nothing more is reported about it."""
        self.settle()
        self.withdraw()
        self.asked.put_nowait(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    reason: str = ""
    tokens: tuple[int, int] = (0, 0)
    error: WorkerError | None = None
    """Why the turn broke off, if it did."""


AgentEvent = CallStart | ToolCallPart | TurnEnd
"""A `ToolCallPart` is a call to one of Midwatch's tools."""


class AgentSession:
    """The client's side of one session. Not for use by two tasks at the same time."""

    def __init__(
        self, transport: LineTransport, steering: Steering, *, allows: bool | None
    ) -> None:
        """Talk to the agent behind `transport`.

        `allows` answers all permission requests; with `None`, each is passed on with its call.
        """
        self._connection = Connection(self._handle_message, transport)
        self._steering = steering
        self._allows = allows
        self.events: asyncio.Queue[tuple[AgentEvent, str]] = asyncio.Queue()
        """Events, each with the agent's text before it."""
        self.answers: dict[str, asyncio.Future[Answered]] = {}
        """Pending results of Midwatch's tools, by call id: the agent is waiting for them."""
        self.ours: Sequence[str] = ()
        """The names of Midwatch's tools, whose calls are reported by the tool server."""
        self.id = ""
        self.cost_usd = 0.0
        """Cost of the session so far, if the agent reports it."""
        self._text = ""
        self._calls: dict[str, CallStart] = {}
        self._over: set[str] = set()
        """Ids of calls that are closed."""
        self._known: Collection[str] = ()
        """Ids of calls before the session was resumed; some agents replay them afterwards."""
        self._turns: set[asyncio.Task[None]] = set()
        self._numbers = count(1)

    async def open(
        self, folder: Path, server: Sequence[str], *, before: str, known: Collection[str]
    ) -> bool:
        """Open a session in a folder, with a tool server; return whether session `before` was
        resumed, whose calls are `known`.

        Raises WorkerError if the agent refuses or does not answer.
        """
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": NAME, "version": "1"}
        words = {"clientCapabilities": able, "clientInfo": client}
        greeting = await self._send_request(
            "initialize", {"protocolVersion": PROTOCOL_VERSION, **words}
        )
        program, *args = server
        tools = {"name": NAME, "command": program, "args": args, "env": []}
        place = {"cwd": str(folder), "mcpServers": [tools]}
        if before and greeting["agentCapabilities"]["loadSession"]:
            try:
                await self._send_request("session/load", {"sessionId": before, **place})
            except WorkerError as error:
                log.warning("an earlier session cannot be continued: %s", error)
            else:
                self.id, self._known = before, known
                return True
        self.id = (await self._send_request("session/new", place))["sessionId"].text
        return False

    @property
    def working(self) -> bool:
        """Whether a turn is under way."""
        return bool(self._turns)

    async def say(self, text: str) -> None:
        """Send the agent a message; while it works, in the way that it supports."""
        if self.working and self._steering is not Steering.JOIN:
            if self._steering is Steering.METHOD and await self._steer_turn(text):
                return
            await self.cancel()
        self._turns.add(asyncio.create_task(self._run_turn(text)))

    async def cancel(self) -> None:
        """Cancel the turn and all calls that the agent has begun."""
        if not self.working:
            return
        with suppress(ConnectionError):  # an agent that is gone has ended its turn, too
            await self._connection.send_notification("session/cancel", {"sessionId": self.id})
        for begun in self._calls.values():
            begun.withdraw()
        _, late = await asyncio.wait(self._turns, timeout=_CANCEL_SECONDS)
        for turn in late:  # nothing more is expected from an agent that does not end its turn
            turn.cancel()
        self._turns.clear()
        self._close_calls(*self._calls.values())
        self.forget_ends()

    def forget_ends(self) -> None:
        """Drop the turn ends that have not been read."""
        kept = [self.events.get_nowait() for _ in range(self.events.qsize())]
        for event, text in kept:
            if not isinstance(event, TurnEnd):
                self.events.put_nowait((event, text))

    async def close(self) -> None:
        """Close the session."""
        for turn in self._turns:
            turn.cancel()
        self._close_calls(*self._calls.values())
        await asyncio.sleep(0)  # lets the answers to its questions go out
        await self._connection.close()

    def want(self, tool: str, args: Mapping[str, object]) -> asyncio.Future[Answered]:
        """Report a call to one of Midwatch's tools, and return a future for its result."""
        id = f"midwatch-{next(self._numbers)}"
        self.answers[id] = asyncio.Future()
        self._queue_event(ToolCallPart(tool, dict(args), tool_call_id=id))
        return self.answers[id]

    async def _send_request(
        self, method: str, params: Mapping[str, object], *, seconds: float | None = _START_SECONDS
    ) -> JsonNode:
        try:
            async with asyncio.timeout(seconds):
                return JsonNode(await self._connection.send_request(method, params))
        except TimeoutError:
            raise WorkerError(f"the agent did not answer `{method}` within {seconds} s") from None
        except RequestError as error:
            raise WorkerError(f"the agent refuses `{method}`: {error}") from None
        except ConnectionError:  # not a provider's outage, for which the work would wait
            raise AgentDiedError("the agent has ended") from None

    async def _steer_turn(self, text: str) -> bool:
        try:
            await self._send_request(
                "_session/steering", self._prompt_params(text), seconds=_CANCEL_SECONDS
            )
        except WorkerError as error:
            log.info(
                "the agent takes no message during its turn, so the turn is canceled: %s", error
            )
            return False
        return True

    def _prompt_params(self, text: str) -> dict[str, object]:
        return {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]}

    async def _run_turn(self, text: str) -> None:
        """Send a prompt and wait for the turn's end. Of joined turns, only the last is reported."""
        own = asyncio.current_task()
        try:
            answer = await self._send_request(
                "session/prompt", self._prompt_params(text), seconds=None
            )
            end = TurnEnd(reason=answer["stopReason"].text, tokens=tokens_of(answer))
        except WorkerError as error:
            end = TurnEnd(error=error)
        if own is not None:
            self._turns.discard(own)
        if not self._turns:
            self._close_calls(*self._calls.values())
            self._queue_event(end)

    def _queue_event(self, event: AgentEvent) -> None:
        self.events.put_nowait((event, self._text))
        self._text = ""

    async def _handle_message(self, method: str, params: object, notified: bool) -> Any:
        said = JsonNode(params)
        if method == "session/request_permission":
            return await self._answer_permission(said)
        if method == "session/update" and self.id:  # before that, it replays its whole history
            self._read_update(said["update"])
        elif not notified:
            raise RequestError.method_not_found(method)
        return None

    def _read_update(self, update: JsonNode) -> None:
        kind = update["sessionUpdate"].text
        if kind == "agent_message_chunk":
            self._text += text_of(update["content"])
        elif kind == "usage_update":
            self.cost_usd = cost_of(update) or self.cost_usd
        elif kind in {"tool_call", "tool_call_update"}:
            self._update_call(update)

    async def _answer_permission(self, asked: JsonNode) -> dict[str, object]:
        call = asked["toolCall"]
        # A worker could give any command the name of one of our tools.
        ours = call["kind"].text in {"", "other"} and is_ours(call["title"].text, self.ours)
        allow = ours or self._allows
        begun = None if ours else self._update_call(call)
        if begun is not None:
            self._report_call(begun)
            if allow is None and not is_ours(begun.call.tool, self.ours):
                allow = await begun.permission()
            begun.call.refused = allow is False
        option = None if allow is None else choose_option(asked["options"], allow=allow)
        taken = {"outcome": "selected", "optionId": option}
        return {"outcome": {"outcome": "cancelled"} if option is None else taken}

    def _update_call(self, said: JsonNode) -> CallStart | None:
        """Take in an update of a call; return `None` if it names none or a closed one."""
        id = said["toolCallId"].text
        ended = said["status"].text in ENDED
        replayed = ended and id in self._known and id not in self._calls
        if not id or id in self._over or replayed:
            return None
        begun = self._calls.setdefault(id, CallStart(AgentCall(id=id)))
        begun.call.tell(said)
        begun.settle()
        if begun.call.running:
            self._report_call(begun)
        elif not begun.call.unfilled:
            loop = asyncio.get_running_loop()
            begun.settling = loop.call_later(_SETTLE_SECONDS, self._report_call, begun)
        if begun.call.over:
            self._close_calls(begun)
        return self._calls.get(id)

    def _report_call(self, begun: CallStart) -> None:
        """Report a call once, unless it is to one of Midwatch's tools, which report themselves."""
        if not begun.told and not is_ours(begun.call.tool, self.ours):
            self._queue_event(begun)
        begun.told = True

    def _close_calls(self, *calls: CallStart) -> None:
        """Close these calls."""
        for each in calls:
            each.end()
            self._over.add(each.call.id)
            self._calls.pop(each.call.id, None)
