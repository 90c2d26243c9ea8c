"""A model on loopback that plays a script, for coding agents started as they are.

It speaks OpenAI's chat completions, as opencode's `@ai-sdk/openai-compatible` asks for them, and
Gemini's API, as Gemini CLI does; both as streams. The first user message names the script,
`SCRIPT=fix|loop|fail|slow|reflect|hang`, and may name the folder of the files,
`WORKDIR=/absolute`. How far the script is follows from the conversation alone, so any number of
sessions may play at a time. Tools are named and called as opencode has them.
"""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from midwatch_tests.ports import LOOPBACK

FAILING = 'python3 -c "import sys; sys.exit(3)"'
"""The command that the script `loop` repeats."""
SLOW = "until test -e ~/go; do sleep 0.1; done"
"""The command of the script `slow`: it waits for a file in the agent's home."""
FILE, CONTENT = "hello.txt", "hello"
"""The file that the scripts write, and what stands in it then."""
SIDE_ANSWER = "A short title"
"""The answer to a request that offers no tools."""
_NUDGE = re.compile(r"\[midwatch [0-9a-f]{8} #\d+ ")
REFLECTION = {"progress_percent": 50, "confidence": 60, "decision": "continue"}


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
        return any(_NUDGE.search(each) for each in self.user_messages)

    @property
    def reflect_tool(self) -> str | None:
        """The tool for reflecting, whatever prefix the agent gave it."""
        return next((each for each in self.offered if each.endswith("reflect")), None)

    @property
    def _first(self) -> str:
        return next((each for each in self.user_messages if "SCRIPT=" in each), "")


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


def _fail(at: Conversation) -> ToolCall | str:
    """Never twice the same call: some agents end a loop themselves."""
    return _bash(f"{FAILING} # {at.results}", "Runs the check") if at.results < 30 else "I give up."


def _slow(at: Conversation) -> ToolCall | str:
    return _step(at, _bash(SLOW, "Waits"), last="It has waited.")


def _reflect(at: Conversation) -> ToolCall | str:
    tool = at.reflect_tool
    return _fix(at, ToolCall(tool, REFLECTION)) if tool else _fix(at)


_SCRIPTS: dict[str, Callable[[Conversation], ToolCall | str]] = {
    "fix": _fix,
    "loop": _loop,
    "fail": _fail,
    "slow": _slow,
    "reflect": _reflect,
}


def _scripted(at: Conversation) -> ToolCall | str | None:
    """The tool that the model calls next, or its last words, or nothing at all (`hang`)."""
    if not at.offered:
        return SIDE_ANSWER
    if at.script == "hang":
        return None
    return _SCRIPTS[at.script](at)


# -- the answers as two APIs have them

NAME = "stub-model"
"""The model, as the list of models names it."""
_GEMINI_TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "bash": ("run_shell_command", {}),
    "write": ("write_file", {"filePath": "file_path"}),
}
"""The scripts' tools and those of their arguments that Gemini CLI names otherwise."""
_SCRIPT_TOOLS = {name: tool for tool, (name, _) in _GEMINI_TOOLS.items()}


def _read_chat(body: Any) -> Conversation:
    """The conversation in a request for chat completions."""
    messages: list[Any] = body["messages"]
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return Conversation(
        user_messages=tuple(_text(each["content"]) for each in messages if each["role"] == "user"),
        called=tuple(each["function"]["name"] for each in calls),
        results=sum(each["role"] == "tool" for each in messages),
        offered=tuple(each["function"]["name"] for each in body.get("tools") or ()),
    )


def _chat_events(model: str, answer: ToolCall | str, step: int) -> Iterator[str]:
    """The events of the answer's stream; the last one but the end has the usage."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    for delta in _deltas(answer, step):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield json.dumps({**head, "choices": [choice]})
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": reason}
    yield json.dumps({**head, "choices": [end]})
    yield json.dumps({**head, "choices": [], "usage": usage})
    yield "[DONE]"


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _deltas(answer: ToolCall | str, step: int) -> Iterator[dict[str, Any]]:
    """A tool's arguments come in two pieces, as models send them."""
    if isinstance(answer, str):
        yield {"role": "assistant", "content": answer}
        return
    begun = {"name": answer.tool, "arguments": ""}
    call = {"index": 0, "id": f"call_{step}", "type": "function", "function": begun}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    arguments = json.dumps(answer.arguments)
    half = len(arguments) // 2
    for piece in (arguments[:half], arguments[half:]):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _read_gemini(body: Any) -> Conversation:
    """The conversation in a request to generate content."""
    parts = [(each["role"], part) for each in body["contents"] for part in each["parts"]]
    calls: list[str] = [part["functionCall"]["name"] for _, part in parts if "functionCall" in part]
    declared: list[str] = [
        each["name"]
        for tool in body.get("tools") or ()
        for each in tool.get("functionDeclarations") or ()
    ]
    return Conversation(
        user_messages=tuple(part.get("text", "") for role, part in parts if role == "user"),
        called=tuple(_SCRIPT_TOOLS.get(each, each) for each in calls),
        results=sum("functionResponse" in part for _, part in parts),
        offered=tuple(_SCRIPT_TOOLS.get(each, each) for each in declared),
    )


def _gemini_answer(answer: ToolCall | str) -> str:
    """The whole answer as one event."""
    if isinstance(answer, str):
        part: dict[str, Any] = {"text": answer}
    else:
        name, renamed = _GEMINI_TOOLS.get(answer.tool, (answer.tool, {}))
        arguments = {renamed.get(key, key): value for key, value in answer.arguments.items()}
        part = {"functionCall": {"name": name, "args": arguments}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage})


# -- the server


@dataclass
class ModelStub:
    """Plays the scripts, and keeps what it was asked."""

    gemini_url: str = ""
    """What Gemini CLI takes as `GOOGLE_GEMINI_BASE_URL`."""
    requests: list[Any] = field(default_factory=list[Any])
    """The bodies of the requests for an answer, in order of their arrival."""
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        """What opencode's configuration takes as `baseURL`."""
        return f"{self.gemini_url}/v1"

    @classmethod
    @asynccontextmanager
    async def serve(cls) -> AsyncGenerator[Self]:
        """A stub on a free port, while the context lasts."""
        stub = cls()
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", stub._models)
        app.router.add_post("/v1/chat/completions", stub._chat)
        app.router.add_post("/v1beta/models/{model}:streamGenerateContent", stub._gemini)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            stub.gemini_url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
            yield stub
        finally:
            stub._closing.set()
            await runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": NAME, "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._asked(request)
        at = _read_chat(body)
        said = await self._answer(at)
        return await _stream(request, _chat_events(body["model"], said, at.results))

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        said = await self._answer(_read_gemini(await self._asked(request)))
        return await _stream(request, [_gemini_answer(said)])

    async def _asked(self, request: web.Request) -> Any:
        body = await request.json()
        self.requests.append(body)
        return body

    async def _answer(self, at: Conversation) -> ToolCall | str:
        try:
            said = _scripted(at)
        except KeyError as unknown:  # after 400 an agent does not ask again
            raise web.HTTPBadRequest(text=f"no script {unknown}") from None
        if said is None:
            await self._closing.wait()
            raise web.HTTPServiceUnavailable
        return said


async def _stream(request: web.Request, events: Iterable[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for each in events:
        await response.write(f"data: {each}\n\n".encode())
    await response.write_eof()
    return response
