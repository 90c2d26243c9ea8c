"""The model that plays scripts for coding agents, asked as they ask it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout

from midwatch_stage.model_script import FAILING, SIDE_ANSWER, SLOW
from midwatch_stage.model_stub import ModelStub
from midwatch_stage.model_wire import NAME

OFFERED = ("bash", "write", "midwatch_reflect")


class Agent:
    """Calls whatever tools the model asks for; each of them answers the same."""

    def __init__(self, stub: ModelStub, client: ClientSession, *offered: str) -> None:
        self._stub, self._client = stub, client
        self._offered = offered
        self.messages: list[dict[str, Any]] = []
        self.usage: dict[str, int] = {}

    def say(self, text: str) -> None:
        """A user message."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    async def step(self) -> str | tuple[str, dict[str, Any]]:
        """One request: the model's text, or the tool it called and the arguments."""
        tools = [{"type": "function", "function": {"name": each}} for each in self._offered]
        body = {"model": NAME, "stream": True, "messages": self.messages, "tools": tools}
        async with self._client.post(f"{self._stub.url}/chat/completions", json=body) as response:
            assert response.content_type == "text/event-stream"
            events = (await response.text()).split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        chunks = [json.loads(each.removeprefix("data: ")) for each in events[:-2]]
        self.usage = chunks[-1]["usage"]
        choices = [choice for each in chunks for choice in each["choices"]]
        deltas = [each["delta"] for each in choices]
        if choices[-1]["finish_reason"] == "stop":
            return "".join(each.get("content", "") for each in deltas)
        assert choices[-1]["finish_reason"] == "tool_calls"
        pieces = [call for each in deltas for call in each.get("tool_calls", ())]
        name, id = pieces[0]["function"]["name"], pieces[0]["id"]
        arguments = "".join(each["function"]["arguments"] for each in pieces)
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self.messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "(no output)"},
        ]
        return name, json.loads(arguments)


@pytest.fixture
async def stub() -> AsyncGenerator[ModelStub]:
    """One that listens."""
    async with ModelStub.serve() as stub:
        yield stub


@pytest.fixture
async def client() -> AsyncGenerator[ClientSession]:
    """Connections to it."""
    async with ClientSession() as client:
        yield client


@pytest.fixture
def agent(stub: ModelStub, client: ClientSession) -> Agent:
    """One that offers the model all that the scripts call."""
    return Agent(stub, client, *OFFERED)


async def test_it_lists_its_model(stub: ModelStub, client: ClientSession) -> None:
    async with client.get(f"{stub.url}/models") as response:
        assert [each["id"] for each in (await response.json())["data"]] == [NAME]


async def test_fix_writes_a_file_shows_it_and_ends(agent: Agent) -> None:
    agent.say("SCRIPT=fix WORKDIR=/a/folder/ Please.")
    assert await agent.step() == (
        "write",
        {"filePath": "/a/folder/hello.txt", "content": "hello"},
    )
    assert await agent.step() == (
        "bash",
        {"command": "cat /a/folder/hello.txt", "description": "Shows the file"},
    )
    assert await agent.step() == "hello.txt is written."
    assert agent.usage == {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


async def test_loop_repeats_one_command_until_it_is_nudged(stub: ModelStub, agent: Agent) -> None:
    agent.say("SCRIPT=loop")
    for _ in range(3):
        assert await agent.step() == ("bash", {"command": FAILING, "description": "Runs the check"})
    agent.say("[midwatch 0a1b2c3d #7 from your policy] Write the file instead.")
    assert await agent.step() == ("write", {"filePath": "hello.txt", "content": "hello"})
    assert await agent.step() == "hello.txt is written after all."
    ids = [each["tool_call_id"] for each in agent.messages if each["role"] == "tool"]
    assert len(set(ids)) == len(ids) == 4
    asked = [
        "[midwatch 0a1b2c3d #7 from your policy]" in json.dumps(each["messages"])
        for each in stub.requests
    ]
    assert asked == [False, False, False, True, True]


async def test_slow_waits_once(agent: Agent) -> None:
    agent.say("SCRIPT=slow")
    assert await agent.step() == ("bash", {"command": SLOW, "description": "Waits"})
    assert await agent.step() == "It has waited."


async def test_reflect_calls_the_tool_before_it_works(agent: Agent) -> None:
    agent.say("SCRIPT=reflect")
    reflection = {"progress_percent": 50, "confidence": 60, "decision": "continue"}
    assert await agent.step() == ("midwatch_reflect", reflection)
    assert (await agent.step())[0] == "write"
    assert (await agent.step())[0] == "bash"
    assert await agent.step() == "hello.txt is written."


async def test_reflect_works_at_once_without_the_tool(
    stub: ModelStub, client: ClientSession
) -> None:
    agent = Agent(stub, client, "bash", "write")
    agent.say("SCRIPT=reflect")
    assert (await agent.step())[0] == "write"


async def received(stub: ModelStub, count: int) -> None:
    while len(stub.requests) < count:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


async def test_hang_answers_nothing_and_closes_at_once(client: ClientSession) -> None:
    async with asyncio.timeout(60) as limit, ModelStub.serve() as stub:
        agent = Agent(stub, client, *OFFERED)
        agent.say("SCRIPT=hang")
        asked = asyncio.ensure_future(agent.step())
        await received(stub, 1)
        url, body = f"{stub.url}/chat/completions", stub.requests[0]
        waiting = asyncio.ensure_future(client.post(url, json=body, timeout=ClientTimeout(60)))
        await received(stub, 2)
        done, _ = await asyncio.wait({asked, waiting}, timeout=0.2)
        assert not done
        asked.cancel()
        limit.reschedule(asyncio.get_running_loop().time() + 5)
    assert (await waiting).status == 503


async def test_a_request_without_tools_is_answered_at_once(
    stub: ModelStub, client: ClientSession
) -> None:
    agent = Agent(stub, client)
    agent.say("Generate a title")
    agent.say("SCRIPT=hang")
    assert await agent.step() == SIDE_ANSWER


async def test_gemini_is_told_the_same_in_its_own_words(
    stub: ModelStub, client: ClientSession
) -> None:
    url = f"{stub.gemini_url}/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    declared = [{"name": each} for each in ("run_shell_command", "write_file")]
    first = {"role": "user", "parts": [{"text": "SCRIPT=loop WORKDIR=/a"}]}
    body: dict[str, Any] = {"contents": [first], "tools": [{"functionDeclarations": declared}]}

    async def step() -> Any:
        async with client.post(url, json=body) as response:
            said = json.loads((await response.text()).removeprefix("data: "))
        content = said["candidates"][0]["content"]
        body["contents"].append(content)
        return content["parts"][0]

    call = (await step())["functionCall"]
    assert call["name"] == "run_shell_command"
    assert call["args"]["command"] == FAILING
    nudge = {"text": "[midwatch 0a1b2c3d #7 from your policy] Write the file instead."}
    result = {"functionResponse": {"name": call["name"], "response": {"output": ""}}}
    body["contents"].append({"role": "user", "parts": [result, nudge]})
    arguments = {"file_path": "/a/hello.txt", "content": "hello"}
    assert await step() == {"functionCall": {"name": "write_file", "args": arguments}}
    assert await step() == {"text": "hello.txt is written after all."}
