"""A real provider's client over HTTP, against a server on loopback that answers as it is told."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic_ai import models
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest

from midwatch_agents.models import model_for
from midwatch_agents.patience import PatientModel
from midwatch_monitor.config.settings import (
    PolicySettings,
    RunSettings,
    Sandbox,
    Settings,
    SupervisorSettings,
)
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, TaskSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import (
    Actor,
    Attempt,
    AttemptState,
    Budget,
    Change,
    Decision,
    Ending,
    Lifecycle,
    Step,
    StepKind,
)
from midwatch_supervisor.assignment import assignments
from midwatch_supervisor.decide import Supervisor
from midwatch_supervisor.dossier import Dossier
from midwatch_supervisor.launch import begin, conduct
from midwatch_supervisor.policy import Standing

T = TypeVar("T")
NAME = "gpt-4o"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: str = "{}"
    headers: str = ""
    hangs: bool = False
    """Say nothing until the client gives up."""

    @property
    def wire(self) -> bytes:
        content = self.body.encode()
        head = f"HTTP/1.1 {self.status} Told\r\ncontent-type: application/json\r\n{self.headers}"
        tail = f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        return f"{head}{tail}".encode() + content


@dataclass
class Server:
    """Gives its replies one after the other, the last one for ever, and keeps what it was asked."""

    replies: tuple[Reply, ...]
    port: int = 0
    asked: list[Any] = field(default_factory=list[Any])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        self.asked.append(json.loads(await reader.readexactly(length)))
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if reply.hangs:
            await reader.read()
        else:
            writer.write(reply.wire)
        writer.close()

    def spec(self, **more: Any) -> ModelSpec:
        return ModelSpec(
            name=f"openai-chat:{NAME}", base_url=f"http://127.0.0.1:{self.port}/v1", **more
        )

    @property
    def last_heard(self) -> str:
        """The newest message of the newest request."""
        return json.dumps(self.asked[-1]["messages"][-1])


Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve() -> AsyncGenerator[Serve]:
    """Starts a server: `await serve(reply, reply, …)`."""
    async with AsyncExitStack() as stack:

        async def start(*replies: Reply) -> Server:
            server = Server(replies)
            listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
            await stack.enter_async_context(listening)
            server.port = listening.sockets[0].getsockname()[1]
            return server

        stack.enter_context(models.override_allow_model_requests(True))
        yield start


def completion(message: dict[str, Any], reason: str) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": NAME}
    return Reply(body=json.dumps({**head, "choices": [choice], "usage": usage}))


def calling(tool: str, arguments: str, id: str = "call-1") -> Reply:
    call = {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


def refusal(status: int, headers: str = "") -> Reply:
    error = {"message": f"told to say {status}", "type": "stub", "code": None}
    return Reply(status=status, headers=headers, body=json.dumps({"error": error}))


WRITING = calling("write_file", '{"path": "a.txt", "content": "one"}')
DONE = completion({"content": "It is done."}, "stop")
DECIDING = calling(
    "final_result",
    '{"action": "observe", "diagnosis": "false_alarm", "rationale": "It moves."}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run of one task, after its end."""

    code: int
    state: AttemptState
    steps: tuple[Step, ...]
    budget: Budget


def told(dossiers: list[T]) -> T:
    (only,) = dossiers
    return only


@pytest.fixture
def perform(journal: Journal, tmp_path: Path) -> Callable[[ModelSpec], Awaitable[Finished]]:
    """Runs one task whose worker is a coder with that model: it has to write `a.txt`."""

    async def work(spec: ModelSpec) -> Finished:
        task = TaskSpec.model_validate(
            {"id": "write", "goal": "Write a.txt.", "acceptance": [{"file": "a.txt"}]}
        )
        file = TaskFile(models={Role.WORKER: spec}, tasks=(task,))
        settings = Settings(run=RunSettings(sandbox=Sandbox.OFF))
        wanted = assignments(file, tmp_path)
        deck, jobs = await begin(
            journal, wanted, source="tasks.yaml", settings=settings, home=tmp_path / "home"
        )

        async def follow(_: object) -> None: ...

        code = await conduct(deck, jobs, follow)
        attempt = told(await journal.attempts(jobs[0].task.id))
        dossier = await Dossier.read(journal, attempt)
        assert dossier.state is not None
        return Finished(
            code=code,
            state=dossier.state,
            steps=tuple(dossier.steps),
            budget=dossier.budget,
        )

    return work


Perform = Callable[[ModelSpec], Awaitable[Finished]]


async def test_a_run_over_http_is_recorded_with_what_it_used(serve: Serve, perform: Perform) -> None:
    server = await serve(WRITING, DONE)
    run = await perform(server.spec())
    print(run.state, run.steps, server.asked[-1]["messages"], server.asked[0]["tools"])
    assert (run.code, run.state.reason) == (0, Ending.DONE)
    assert [(step.kind, step.tool, step.ok) for step in run.steps] == [
        (StepKind.TOOL, "write_file", True),
        (StepKind.MESSAGE, "", None),
    ]
    assert run.budget.requests.used == 2
    assert run.budget.tokens.used == 2200
    assert run.budget.cost_usd.used == pytest.approx(0.007)
