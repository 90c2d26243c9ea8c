"""One session with an agent that speaks ACP: what it is told, and what it tells."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
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
    AgentCall,
    choose_option,
    cost_of,
    is_ours,
    text_of,
    tokens_of,
)
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.traces.foreign import JsonNode

log = logging.getLogger(__name__)

_START_SECONDS = 120
_CANCEL_SECONDS = 10
"""How long an agent may take to end a turn that was cancelled."""
_SETTLE_SECONDS = 0.5
"""How long the arguments of a call are waited for: some agents tell them later, some never."""

PermissionQuestion = asyncio.Future[bool | None]
"""Whether something is permitted; `None` once the answer does not matter any more."""


class CallStart:
    """The agent has begun a tool call of its own."""

    def __init__(self, call: AgentCall) -> None:
        self.call = call
        self.asked: asyncio.Queue[PermissionQuestion | None] = asyncio.Queue()
        """The permissions that it waits for; `None` once it is over."""
        self.told = False
        """Whether whoever attends to the session has heard of it."""
        self.settling: asyncio.TimerHandle | None = None
        """Has it told even if no more of its arguments come."""
        self._questions: list[PermissionQuestion] = []

    async def permission(self) -> bool | None:
        """Ask whoever attends to the call; `None` if it is over before an answer."""
        asked = PermissionQuestion()
        self._questions.append(asked)
        self.asked.put_nowait(asked)
        return await asked

    def withdraw(self) -> None:
        """Wait for no permission any more."""
        for asked in self._questions:
            if not asked.done():
                asked.set_result(None)

    def settle(self) -> None:
        """Wait for no more of its arguments."""
        if self.settling is not None:
            self.settling.cancel()

    def end(self) -> None:
        """Nothing more is told of the call."""
        self.settle()
        self.withdraw()
        self.asked.put_nowait(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    reason: str = ""
    tokens: tuple[int, int] = (0, 0)
    error: str = ""
    """Why it broke off, if it did."""


AgentEvent = CallStart | ToolCallPart | TurnEnd
"""A part is the call of one of Midwatch's tools."""


class AgentSession:
    """The client's side of one session. Not for use by two tasks at a time."""

    def __init__(
        self, transport: LineTransport, steering: Steering, *, allows: bool | None
    ) -> None:
        """Talk to the agent behind `transport`.

        `allows` what it asks a permission for, or not; `None` has whoever attends to the call say.
        """
        self._connection = Connection(self._hear, transport)
        self._steering = steering
        self._allows = allows
        self.events: asyncio.Queue[tuple[AgentEvent, str]] = asyncio.Queue()
        """What happens, each with what the agent said before it."""
        self.answers: dict[str, asyncio.Future[Answered]] = {}
        """Of Midwatch's tools, by the id of the call: what the agent waits for."""
        self.ours: Sequence[str] = ()
        """The names of Midwatch's tools: calls of them are told by themselves."""
        self.id = ""
        self.cost_usd = 0.0
        """What the session has cost so far, where the agent tells it."""
        self._text = ""
        self._calls: dict[str, CallStart] = {}
        self._over: set[str] = set()
        """The calls of which nothing more is told."""
        self._turns: set[asyncio.Task[None]] = set()
        self._numbers = count(1)

    async def open(self, folder: Path, server: Sequence[str], *, before: str) -> bool:
        """Begin a session in a folder, with a tool server; answers whether it is the one `before`.

        Raises WorkerError where the agent does not answer, or refuses.
        """
        able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": NAME, "version": "1"}
        words = {"clientCapabilities": able, "clientInfo": client}
        greeting = await self._ask("initialize", {"protocolVersion": PROTOCOL_VERSION, **words})
        program, *args = server
        tools = {"name": NAME, "command": program, "args": args, "env": []}
        place = {"cwd": str(folder), "mcpServers": [tools]}
        if before and greeting["agentCapabilities"]["loadSession"]:
            try:
                await self._ask("session/load", {"sessionId": before, **place})
            except WorkerError as error:
                log.warning("an earlier session is not gone on with: %s", error)
            else:
                self.id = before
                return True
        self.id = (await self._ask("session/new", place))["sessionId"].text
        return False

    @property
    def working(self) -> bool:
        """Whether a turn is under way."""
        return bool(self._turns)

    async def say(self, text: str) -> None:
        """Tell the agent something, in the way that it understands while it works."""
        if self.working and self._steering is not Steering.JOIN:
            if self._steering is Steering.METHOD and await self._steered(text):
                return
            await self.cancel()
        self._turns.add(asyncio.create_task(self._turn(text)))

    async def cancel(self) -> None:
        """End the turn; what the agent had begun is over with it, whatever it says."""
        if not self.working:
            return
        with suppress(ConnectionError):  # who is gone has ended its turn as well
            await self._connection.send_notification("session/cancel", {"sessionId": self.id})
        for begun in self._calls.values():
            begun.withdraw()
        _, late = await asyncio.wait(self._turns, timeout=_CANCEL_SECONDS)
        for turn in late:  # of one that does not let go nothing more is expected
            turn.cancel()
        self._turns.clear()
        self._end(*self._calls.values())
        self.forget_ends()

    def forget_ends(self) -> None:
        """Pass over the ends of turns that nobody has heard of yet."""
        kept = [self.events.get_nowait() for _ in range(self.events.qsize())]
        for event, text in kept:
            if not isinstance(event, TurnEnd):
                self.events.put_nowait((event, text))

    async def close(self) -> None:
        """Hear nothing more."""
        for turn in self._turns:
            turn.cancel()
        self._end(*self._calls.values())
        await asyncio.sleep(0)  # what it waits for is answered now
        await self._connection.close()

    def want(self, tool: str, args: Mapping[str, object]) -> asyncio.Future[Answered]:
        """The agent calls one of Midwatch's tools; the answer comes later."""
        id = f"midwatch-{next(self._numbers)}"
        self.answers[id] = asyncio.Future()
        self._put(ToolCallPart(tool, dict(args), tool_call_id=id))
        return self.answers[id]

    async def _ask(
        self, method: str, params: Mapping[str, object], *, seconds: float | None = _START_SECONDS
    ) -> JsonNode:
        try:
            async with asyncio.timeout(seconds):
                return JsonNode(await self._connection.send_request(method, params))
        except TimeoutError:
            raise WorkerError(f"the agent did not answer `{method}` within {seconds} s") from None
        except RequestError as error:
            raise WorkerError(f"the agent refuses `{method}`: {error}") from None
        except ConnectionError:  # no outage of a provider, which would be waited for
            raise WorkerError("the agent has ended") from None

    async def _steered(self, text: str) -> bool:
        try:
            await self._ask("_session/steering", self._words(text), seconds=_CANCEL_SECONDS)
        except WorkerError as error:
            log.info("the agent cannot be told in its turn, which is canceled: %s", error)
            return False
        return True

    def _words(self, text: str) -> dict[str, object]:
        return {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]}

    async def _turn(self, text: str) -> None:
        """Prompt, and wait for the turn's end. Of turns that were joined only the last counts."""
        own = asyncio.current_task()
        try:
            answer = await self._ask("session/prompt", self._words(text), seconds=None)
            end = TurnEnd(reason=answer["stopReason"].text, tokens=tokens_of(answer))
        except WorkerError as error:
            end = TurnEnd(error=str(error))
        if own is not None:
            self._turns.discard(own)
        if not self._turns:
            self._end(*self._calls.values())
            self._put(end)

    def _put(self, event: AgentEvent) -> None:
        self.events.put_nowait((event, self._text))
        self._text = ""

    async def _hear(self, method: str, params: object, notified: bool) -> Any:
        said = JsonNode(params)
        if method == "session/request_permission":
            return await self._permit(said)
        if method == "session/update" and self.id:  # before, it tells its whole history again
            self._learn(said["update"])
        elif not notified:
            raise RequestError.method_not_found(method)
        return None

    def _learn(self, update: JsonNode) -> None:
        kind = update["sessionUpdate"].text
        if kind == "agent_message_chunk":
            self._text += text_of(update["content"])
        elif kind == "usage_update":
            self.cost_usd = cost_of(update) or self.cost_usd
        elif kind in {"tool_call", "tool_call_update"}:
            self._follow(update)

    async def _permit(self, asked: JsonNode) -> dict[str, object]:
        call = asked["toolCall"]
        # A command can be called whatever its author likes.
        ours = call["kind"].text in {"", "other"} and is_ours(call["title"].text, self.ours)
        allow = ours or self._allows
        begun = None if ours else self._follow(call)
        if begun is not None:
            self._begin(begun)
            if allow is None and not is_ours(begun.call.tool, self.ours):
                allow = await begun.permission()
        option = None if allow is None else choose_option(asked["options"], allow=allow)
        taken = {"outcome": "selected", "optionId": option}
        return {"outcome": {"outcome": "cancelled"} if option is None else taken}

    def _follow(self, said: JsonNode) -> CallStart | None:
        """Take in what is said of a call; `None` if it names none, or one that is over."""
        id = said["toolCallId"].text
        if not id or id in self._over:
            return None
        begun = self._calls.setdefault(id, CallStart(AgentCall(id=id)))
        begun.call.tell(said)
        begun.settle()
        if begun.call.running:
            self._begin(begun)
        else:
            loop = asyncio.get_running_loop()
            begun.settling = loop.call_later(_SETTLE_SECONDS, self._begin, begun)
        if begun.call.over:
            self._end(begun)
        return self._calls.get(id)

    def _begin(self, begun: CallStart) -> None:
        """Tell of a call, once; not of those of Midwatch's own tools, which tell of themselves."""
        if not begun.told and not is_ours(begun.call.tool, self.ours):
            self._put(begun)
        begun.told = True

    def _end(self, *calls: CallStart) -> None:
        """No more is told of these calls."""
        for each in calls:
            each.end()
            self._over.add(each.call.id)
            self._calls.pop(each.call.id, None)
