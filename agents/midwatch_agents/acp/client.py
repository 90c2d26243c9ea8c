"""One session with an agent that speaks ACP: what it is told, and what it tells."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from acp import PROTOCOL_VERSION
from acp.connection import Connection
from acp.exceptions import RequestError

from midwatch_agents.acp.presets import Steering
from midwatch_agents.acp.tool_server import NAME, Answered
from midwatch_agents.acp.transport import LineTransport
from midwatch_agents.acp.updates import (
    AgentCall,
    Update,
    chosen,
    cost_of,
    is_ours,
    read_update,
    text_of,
    tokens_of,
)
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.traces.foreign import Node

log = logging.getLogger(__name__)

_START_SECONDS = 120.0
_CANCEL_SECONDS = 10.0
"""How long an agent may take to end a turn that was cancelled."""
_SETTLE_SECONDS = 0.5
"""How long the arguments of a call are waited for: some agents tell them later, some never."""
_STEERING = "_session/steering"


@dataclass(slots=True, kw_only=True)
class CallStart:
    """The agent has begun a tool call of its own."""

    call: AgentCall
    asked: "asyncio.Queue[asyncio.Future[bool | None] | None]" = field(
        default_factory=asyncio.Queue[asyncio.Future[bool | None] | None]
    )
    """The permissions that it waits for; `None` once it is over."""
    _open: "list[asyncio.Future[bool | None]]" = field(
        default_factory=list["asyncio.Future[bool | None]"]
    )

    async def permission(self) -> bool | None:
        """Ask whoever attends to the call; `None` if it is over before an answer."""
        asked: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._open.append(asked)
        self.asked.put_nowait(asked)
        return await asked

    def end(self) -> None:
        """Nothing more is told of the call."""
        self.withdraw()
        self.asked.put_nowait(None)

    def withdraw(self) -> None:
        """Wait for no permission any more."""
        for asked in self._open:
            if not asked.done():
                asked.set_result(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCall:
    """The agent calls one of Midwatch's tools, and waits for the answer."""

    id: str
    tool: str
    args: Mapping[str, object]
    answer: "asyncio.Future[Answered]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """The agent has ended its turn."""

    reason: str = ""
    tokens: tuple[int, int] = (0, 0)
    error: str = ""
    """Why it broke off, if it did."""


Event = CallStart | OwnCall | TurnEnd


class QueuedEvent(NamedTuple):
    """An event, and what the agent said before it."""

    event: Event
    text: str


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
        self.events: asyncio.Queue[QueuedEvent] = asyncio.Queue()
        self.ours: Sequence[str] = ()
        """The names of Midwatch's tools: calls of them are told by themselves."""
        self.id = ""
        self.cost_usd = 0.0
        """What the session has cost so far, where the agent tells it."""
        self._text: list[str] = []
        self._calls: dict[str, CallStart] = {}
        self._told: set[str] = set()
        """Calls that were begun, or are ours."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._turns: set[asyncio.Task[None]] = set()
        self._loading = False
        self._numbers = 0

    async def open(self, folder: Path, server: Sequence[str], *, before: str) -> bool:
        """Begin a session in a folder, with a tool server; answers whether it is the one `before`.

        Raises WorkerError where the agent does not answer, or refuses.
        """
        greeting = await self._ask(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": False, "writeTextFile": False},
                    "terminal": False,
                },
                "clientInfo": {"name": NAME, "version": "1"},
            },
        )
        program, *args = server
        wanted: dict[str, object] = {
            "cwd": str(folder),
            "mcpServers": [{"name": NAME, "command": program, "args": args, "env": []}],
        }
        loads = bool(greeting["agentCapabilities"]["loadSession"])
        if before and loads and await self._load(before, wanted):
            return True
        session = await self._ask("session/new", wanted)
        self.id = session["sessionId"].text
        return False

    async def _load(self, before: str, wanted: dict[str, object]) -> bool:
        self._loading = True  # it tells its whole history again
        try:
            await self._ask("session/load", {"sessionId": before, **wanted})
        except WorkerError as error:
            log.warning("an earlier session is not gone on with: %s", error)
            return False
        finally:
            self._loading = False
        self.id = before
        return True

    @property
    def working(self) -> bool:
        """Whether a turn is under way."""
        return bool(self._turns)

    async def say(self, text: str) -> None:
        """Tell the agent something, in the way that it understands while it works."""
        if not self.working or self._steering is Steering.JOIN:
            self._prompt(text)
            return
        if self._steering is Steering.METHOD and await self._steered(text):
            return
        await self.cancel()
        self._prompt(text)

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
        self._give_up()
        self.forget_ends()

    def forget_ends(self) -> None:
        """Pass over the ends of turns that nobody has heard of yet."""
        kept = [self.events.get_nowait() for _ in range(self.events.qsize())]
        for heard in kept:
            if not isinstance(heard.event, TurnEnd):
                self.events.put_nowait(heard)

    async def close(self) -> None:
        """Hear nothing more."""
        for timer in self._timers.values():
            timer.cancel()
        for turn in self._turns:
            turn.cancel()
        self._give_up()
        await asyncio.sleep(0)  # what it waits for is answered now
        await self._connection.close()

    def want(self, tool: str, args: Mapping[str, object]) -> "asyncio.Future[Answered]":
        """The agent calls one of Midwatch's tools; the answer comes later."""
        self._numbers += 1
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        wanted = OwnCall(id=f"midwatch-{self._numbers}", tool=tool, args=args, answer=answer)
        self._put(wanted)
        return answer

    # -- what goes out ---------------------------------------------------------------------

    async def _ask(self, method: str, params: dict[str, object]) -> Node:
        try:
            async with asyncio.timeout(_START_SECONDS):
                found = await self._connection.send_request(method, params)
        except TimeoutError:
            why = f"did not answer `{method}` within {_START_SECONDS:.0f} s"
            raise WorkerError(f"the agent {why}") from None
        except RequestError as error:
            raise WorkerError(f"the agent refuses `{method}`: {error}") from None
        except ConnectionError:  # no outage of a provider, which would be waited for
            raise WorkerError("the agent has ended") from None
        return Node(found)

    async def _steered(self, text: str) -> bool:
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self._connection.send_request(_STEERING, self._words(text))
        except (RequestError, ConnectionError, TimeoutError) as error:
            log.info("the agent cannot be told in its turn, which is cancelled: %s", error)
            return False
        return True

    def _words(self, text: str) -> dict[str, object]:
        return {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]}

    def _prompt(self, text: str) -> None:
        turn = asyncio.create_task(self._turn(text))
        self._turns.add(turn)

    async def _turn(self, text: str) -> None:
        """Prompt, and wait for the turn's end. Of turns that were joined only the last counts."""
        own = asyncio.current_task()
        try:
            words = self._words(text)
            answer = Node(await self._connection.send_request("session/prompt", words))
            end = TurnEnd(reason=answer["stopReason"].text, tokens=tokens_of(answer))
        except RequestError as error:
            end = TurnEnd(error=f"the agent refuses the prompt: {error}")
        except ConnectionError:
            end = TurnEnd(error="the agent has ended")
        if own is not None:
            self._turns.discard(own)
        if not self._turns:
            self._give_up()
            self._put(end)

    def _put(self, event: Event) -> None:
        said, self._text = "".join(self._text), []
        self.events.put_nowait(QueuedEvent(event, said))

    # -- what comes in ---------------------------------------------------------------------

    async def _hear(self, method: str, params: object, notified: bool) -> Any:
        said = Node(params)
        if method == "session/update":
            if not self._loading:
                self._learn(read_update(said["update"]))
            return None
        if method == "session/request_permission":
            return await self._permit(said)
        if notified:
            return None
        raise RequestError.method_not_found(method)

    def _learn(self, update: Update) -> None:
        match update.kind_of_update:
            case "agent_message_chunk":
                self._text.append(text_of(update.content))
            case "usage_update":
                self.cost_usd = cost_of(update) or self.cost_usd
            case "tool_call" | "tool_call_update" if update.call:
                self._follow(update)
            case _:
                pass

    async def _permit(self, asked: Node) -> dict[str, object]:
        update = read_update(asked["toolCall"])
        # A command can be called whatever its author likes.
        ours = update.kind in {"", "other"} and is_ours(update.title, self.ours)
        allow = ours or self._allows
        if update.call and not ours:
            self._follow(update)
            begun = self._calls.get(update.call)
            self._begin(update.call)
            if allow is None and begun is not None and not is_ours(begun.call.tool, self.ours):
                allow = await begun.permission()
        option = None if allow is None else chosen(asked["options"], allow=allow)
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": option}}

    def _follow(self, update: Update) -> None:
        begun = self._calls.get(update.call)
        if begun is None:
            if update.call in self._told:
                return
            begun = CallStart(call=AgentCall(id=update.call))
            self._calls[update.call] = begun
        begun.call.tell(update)
        if begun.call.running:
            self._begin(update.call)
        else:
            self._begin_later(update.call)
        if begun.call.over:
            begun.end()
            self._calls.pop(update.call, None)

    def _begin_later(self, call: str) -> None:
        if (timer := self._timers.pop(call, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[call] = loop.call_later(_SETTLE_SECONDS, self._begin, call)

    def _begin(self, call: str) -> None:
        """Tell of a call, once; not of those of Midwatch's own tools, which tell of themselves."""
        if (timer := self._timers.pop(call, None)) is not None:
            timer.cancel()
        begun = self._calls.get(call)
        if begun is None or call in self._told:
            return
        self._told.add(call)
        if not is_ours(begun.call.tool, self.ours):
            self._put(begun)

    def _give_up(self) -> None:
        """No more is told of the calls that have not ended."""
        for begun in self._calls.values():
            begun.end()
        self._calls.clear()
