"""A server of models on loopback that speaks OpenAI's API and answers as it is told."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from midwatch_monitor.config.tasks import ModelSpec
from midwatch_tests.ports import LOOPBACK

NAME = "gpt-4o"
"""The model; its prices are known."""

_EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: str = "{}"
    headers: str = ""
    after_seconds: float = 0.0
    hangs: bool = False
    """Say nothing until the client gives up."""
    breaks: bool = False
    """End the connection in the middle of the answer."""

    @property
    def wire(self) -> bytes:
        """The bytes of the answer."""
        content = self.body.encode()
        kind = _EVENTS if self.body.startswith("data:") else "application/json"
        head = f"HTTP/1.1 {self.status} Told\r\ncontent-type: {kind}\r\n{self.headers}"
        tail = f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        return f"{head}{tail}".encode() + content

    @property
    def streamed(self) -> "Reply":
        """The same answer to a client that asked for a stream: as one piece, then its end."""
        answer = json.loads(self.body)
        if self.status != 200 or "choices" not in answer:
            return self
        choice = answer["choices"][0]
        delta = dict(choice["message"])
        if calls := delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
        head = {key: answer[key] for key in ("id", "created", "model")}
        head["object"] = "chat.completion.chunk"
        piece = {"index": 0, "delta": delta, "finish_reason": None}
        end: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        said = [
            json.dumps({**head, "choices": [piece]}),
            json.dumps({**head, "choices": [end], "usage": answer["usage"]}),
            "[DONE]",
        ]
        return replace(self, body="".join(f"data: {each}\n\n" for each in said))


@dataclass
class ModelServer:
    """Gives its replies one after the other, the last one for ever, and keeps what it was asked."""

    replies: Sequence[Reply]
    by_turn: bool = False
    """Choose the reply by the answers that the conversation already has: then any number of
    attempts may ask, and each is told the same story."""
    until: str = ""
    """Whoever was told this has the last reply, whatever the turn."""
    closes_after: int | None = None
    """Of so many requests it takes the last; then nobody listens."""
    port: int = 0
    """0 takes any free one."""
    asked: list[Any] = field(default_factory=list[Any])
    """The bodies of the requests."""
    _listening: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """What a task file takes as `base_url`."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    def spec(self, **more: Any) -> ModelSpec:
        """This server's model, as a task file names it."""
        return ModelSpec(name=f"openai-chat:{NAME}", base_url=self.url, **more)

    async def open(self) -> None:
        """Listen, after a `close` on the same port as before."""
        self._listening = await asyncio.start_server(self._answer, LOOPBACK, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more: from now on connections are refused."""
        if self._listening is not None:
            self._listening.close()
            await self._listening.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        except asyncio.IncompleteReadError:  # whoever connected has nothing to ask, or speaks TLS
            writer.close()
            return
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        self.asked.append(body)
        reply = self._reply(body)
        if len(self.asked) == self.closes_after and self._listening is not None:
            self._listening.close()
        if reply.hangs:
            await reader.read()
        else:
            await asyncio.sleep(reply.after_seconds)
            wire = (reply.streamed if body.get("stream") else reply).wire
            writer.write(wire[:-1] if reply.breaks else wire)
        writer.close()

    def _reply(self, body: Any) -> Reply:
        if self.until and self.until in json.dumps(body["messages"]):
            return self.replies[-1]
        turn = len(self.asked) - 1
        if self.by_turn:
            turn = sum(each["role"] == "assistant" for each in body["messages"])
        return self.replies[min(turn, len(self.replies) - 1)]


@asynccontextmanager
async def serving(
    *replies: Reply, by_turn: bool = False, until: str = ""
) -> AsyncGenerator[ModelServer]:
    """A server with these replies, while the context lasts."""
    server = ModelServer(replies, by_turn=by_turn, until=until)
    await server.open()
    try:
        yield server
    finally:
        await server.close()


def completion(message: dict[str, Any], reason: str) -> Reply:
    """A model's answer, which took 1,000 tokens in and 100 out."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": NAME}
    return Reply(body=json.dumps({**head, "choices": [choice], "usage": usage}))


def calling(tool: str, arguments: str, id: str = "call-1") -> Reply:
    """An answer that calls a tool."""
    call = {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


def saying(text: str) -> Reply:
    """An answer of words only, which ends a worker's run."""
    return completion({"content": text}, "stop")


def refusal(status: int, headers: str = "", code: str = "", words: str = "") -> Reply:
    """An error, as such servers word it."""
    message = words or f"told to say {status}"
    error = {"message": message, "type": "stub", "code": code or None}
    return Reply(status=status, headers=headers, body=json.dumps({"error": error}))


WRITING = calling("write_file", '{"path": "a.txt", "content": "one"}')
DONE = saying("It is done.")
GRAMMAR = "failed to parse grammar"
"""What a llama.cpp server says, with status 500, where it can make no grammar of a schema."""


def looping(times: int) -> tuple[Reply, ...]:
    """A worker's turns that write one file and run its failing test, again and again."""
    return tuple(
        reply
        for turn in range(times)
        for reply in (
            calling(
                "write_file", json.dumps({"path": "a.py", "content": f"x = {turn}\n"}), f"w-{turn}"
            ),
            calling("run_command", '{"command": "python -c \\"assert 1 == 2\\""}', f"r-{turn}"),
        )
    )
