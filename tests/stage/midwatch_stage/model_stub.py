"""A chat-completions model on loopback that plays a script, for coding agents started as they are.

The first user message names the script, `SCRIPT=fix|loop|slow|reflect|hang`, and may name the
folder of the files, `WORKDIR=/absolute`. The stub keeps no state between requests: how far the
script is follows from the tool results in the request, so any number of sessions may share it.
"""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from midwatch_stage.ports import LOOPBACK

NAME = "stub-model"
FAILING = 'python3 -c "import sys; sys.exit(3)"'
"""The command that the script `loop` repeats."""
SLOW = "sleep 20"
"""The command of the script `slow`."""
FILE, CONTENT = "hello.txt", "hello"
"""The file that the scripts write, and what stands in it then."""
SIDE_ANSWER = "A short title"
"""The answer to a request that offers no tools."""

_REFLECTION = {"progress_percent": 50, "confidence": 60, "decision": "continue"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls, as the agent names it."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the scripts read of one request."""

    user_messages: tuple[str, ...]
    called: tuple[str, ...]
    """The tools that the model called, in order."""
    results: int
    """How many tool results it was given: the number of the step."""
    offered: tuple[str, ...]
    """The tools that it may call."""

    @classmethod
    def read(cls, body: Any) -> Self:
        """The conversation in the body of a request."""
        messages: list[Any] = body["messages"]
        return cls(
            tuple(_text(each["content"]) for each in messages if each["role"] == "user"),
            tuple(
                call["function"]["name"]
                for each in messages
                for call in each.get("tool_calls") or ()
            ),
            sum(each["role"] == "tool" for each in messages),
            tuple(each["function"]["name"] for each in body.get("tools") or ()),
        )

    @property
    def script(self) -> str:
        """The script that the first user message names."""
        named = re.search(r"SCRIPT=(\w+)", self._first)
        return named[1] if named else "fix"

    @property
    def file(self) -> str:
        """The path of the file to write."""
        folder = re.search(r"WORKDIR=(/[^\s\"'<]*)", self._first)
        return f"{folder[1].rstrip('/')}/{FILE}" if folder else FILE

    @property
    def is_nudged(self) -> bool:
        """Whether a user message is an intervention of Midwatch."""
        return any("[midwatch" in each and "#" in each for each in self.user_messages)

    @property
    def reflect_tool(self) -> str | None:
        """The tool for reflecting, whatever prefix the agent gave it."""
        return next((each for each in self.offered if each.endswith("reflect")), None)

    @property
    def _first(self) -> str:
        return next((each for each in self.user_messages if "SCRIPT=" in each), "")


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _bash(command: str, description: str) -> ToolCall:
    return ToolCall("bash", {"command": command, "description": description})


def _write(at: Conversation) -> ToolCall:
    return ToolCall("write", {"filePath": at.file, "content": CONTENT})


def _step(at: Conversation, *calls: ToolCall, last: str) -> ToolCall | str:
    return calls[at.results] if at.results < len(calls) else last


def _fix(at: Conversation, *before: ToolCall) -> ToolCall | str:
    show = _bash(f"cat {shlex.quote(at.file)}", "Shows the file")
    return _step(at, *before, _write(at), show, last=f"{FILE} is written.")


def _loop(at: Conversation) -> ToolCall | str:
    if not at.is_nudged:
        return _bash(FAILING, "Runs the check")
    return f"{FILE} is written after all." if "write" in at.called else _write(at)


def _slow(at: Conversation) -> ToolCall | str:
    return _step(at, _bash(SLOW, "Waits"), last="It has waited.")


def _reflect(at: Conversation) -> ToolCall | str:
    tool = at.reflect_tool
    return _fix(at, ToolCall(tool, _REFLECTION)) if tool else _fix(at)


_SCRIPTS: dict[str, Callable[[Conversation], ToolCall | str]] = {
    "fix": _fix,
    "loop": _loop,
    "slow": _slow,
    "reflect": _reflect,
}


def _chunks(answer: ToolCall | str, step: int) -> Sequence[dict[str, Any]]:
    """The choices of the answer's stream, a tool's arguments in two pieces as models send them."""
    if isinstance(answer, str):
        return _choice({"role": "assistant", "content": answer}), _choice({}, "stop")
    arguments = json.dumps(answer.arguments)
    half = len(arguments) // 2
    begun = {
        "index": 0,
        "id": f"call_{step}",
        "type": "function",
        "function": {"name": answer.tool, "arguments": ""},
    }
    pieces = (
        {"index": 0, "function": {"arguments": each}}
        for each in (arguments[:half], arguments[half:])
    )
    return (
        _choice({"role": "assistant", "content": None, "tool_calls": [begun]}),
        *(_choice({"tool_calls": [each]}) for each in pieces),
        _choice({}, "tool_calls"),
    )


def _choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


@dataclass
class ModelStub:
    """Plays the scripts, and keeps what it was asked."""

    url: str = ""
    """What an agent's configuration takes as the base URL."""
    requests: list[Any] = field(default_factory=list[Any])
    """The bodies of the requests for completions, in order of their arrival."""
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    @asynccontextmanager
    async def serve(cls) -> AsyncGenerator[Self]:
        """A stub on a free port, while the context lasts."""
        stub = cls()
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", stub._models)
        app.router.add_post("/v1/chat/completions", stub._complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            stub.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}/v1"
            yield stub
        finally:
            stub._closing.set()
            await runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": NAME, "object": "model"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        at = Conversation.read(body)
        if not at.offered:
            return await self._stream(request, body, SIDE_ANSWER, at.results)
        if at.script == "hang":
            await self._closing.wait()
            raise web.HTTPServiceUnavailable
        if at.script not in _SCRIPTS:  # an agent asks no second time after 400
            raise web.HTTPBadRequest(text=f"no script {at.script}")
        return await self._stream(request, body, _SCRIPTS[at.script](at), at.results)

    async def _stream(
        self, request: web.Request, body: Any, answer: ToolCall | str, step: int
    ) -> web.StreamResponse:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        said = [json.dumps({**head, "choices": [each]}) for each in _chunks(answer, step)]
        said += [json.dumps({**head, "choices": [], "usage": usage}), "[DONE]"]
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for each in said:
            await response.write(f"data: {each}\n\n".encode())
        await response.write_eof()
        return response
