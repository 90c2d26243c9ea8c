"""A model on loopback that plays a script (`model_script`), for coding agents started as they are.

It speaks OpenAI's chat completions, as opencode's `@ai-sdk/openai-compatible` asks for them, and
Gemini's API, as Gemini CLI does; both as streams.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from midwatch_stage.model_script import Conversation, ToolCall, answer
from midwatch_stage.model_wire import NAME, chat_events, gemini_answer, read_chat, read_gemini
from midwatch_stage.ports import LOOPBACK


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
        at = read_chat(body)
        said = await self._answer(at)
        return await _stream(request, chat_events(body["model"], said, at.results))

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        said = await self._answer(read_gemini(await self._asked(request)))
        return await _stream(request, [gemini_answer(said)])

    async def _asked(self, request: web.Request) -> Any:
        body = await request.json()
        self.requests.append(body)
        return body

    async def _answer(self, at: Conversation) -> ToolCall | str:
        try:
            said = answer(at)
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
