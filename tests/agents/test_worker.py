"""Workers from their specification: what they are given, and what is told when it is not there."""

import re
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.model_retries import Breaker, PatientModel
from midwatch_agents.sandbox import MARK, SandboxKind
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_agents.worker import Worker, WorkerPlace, import_object, mcp_source
from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.config.tasks import WorkerKind, WorkerSpec
from midwatch_monitor.errors import UsageError, WorkerError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Attempt, Step
from midwatch_tests.reading import records_of
from midwatch_tools.attempt_watch import AttemptWatch

OWN = {"reflect", "report_error"}
CODING = {"read_file", "write_file", "edit_file", "list_files", "grep", "run_command"}
SOURCE = '''
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.test import TestModel

def double(number: int) -> int:
    """Double a number."""
    return 2 * number

def request(ctx: RunContext[object]) -> str:
    return f"request {ctx.run_step}"

agent = Agent(TestModel(custom_output_text="From the agent.", call_tools=[]))
seven = 7
'''


@pytest.fixture(scope="module", autouse=True)
def somebodys_module(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """A module of tools and an agent, importable as `somebodys`."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "somebodys.py").write_text(SOURCE)
    (folder / "broken_by_itself.py").write_text("1 / 0\n")
    sys.path.append(str(folder))
    yield
    sys.path.remove(str(folder))


def patient_model(model: Model) -> Model:
    return PatientModel(model, tries=1, breaker=Breaker(ProviderSettings()))


@dataclass
class RecordingModel:
    """A model that makes some calls in its first turn, then ends, and keeps what it was given."""

    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    tools: set[str] = field(default_factory=set[str])
    told: str = ""
    prompts: int = 0

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools = {tool.name for tool in info.function_tools}
        requests = [message for message in messages if isinstance(message, ModelRequest)]
        self.told = requests[-1].instructions or ""
        parts = [part for request in requests for part in request.parts]
        self.prompts = sum(isinstance(part, UserPromptPart) for part in parts)
        if self.calls and len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(name, args) for name, args in self.calls])
        return ModelResponse(parts=[TextPart("Done.")])

    @property
    def model(self) -> Model:
        return patient_model(FunctionModel(self.answer))


Work = Callable[..., Awaitable[str]]


@pytest.fixture
def work(claim: Callable[..., Awaitable[Recorder]], workspace: Path) -> Work:
    """Has a worker work: `await work(worker)`."""

    async def run(worker: Worker, *, history: Sequence[ModelMessage] = ()) -> str:
        station = WorkerPlace(
            paths=SandboxPaths(folder=workspace),
            sandbox_kind=SandboxKind.NONE,
            network=False,
            mark="1.1",
        )
        watch = AttemptWatch(await claim(), root=workspace)
        return await worker.run("Do it.", station=station, watch=watch, history=history)

    return run


def worker(recording_model: RecordingModel, **spec: Any) -> Worker:
    return Worker(WorkerSpec.model_validate(spec), name="w", model=recording_model.model)


@pytest.fixture
def steps(journal: Journal, attempt: Attempt) -> Callable[[], Awaitable[list[Step]]]:
    return lambda: records_of(journal, Step, attempt.id)


Steps = Callable[[], Awaitable[list[Step]]]


async def test_a_coder_has_files_a_shell_and_the_watchs_tools(work: Work) -> None:
    recording_model = RecordingModel()
    assert await work(worker(recording_model)) == "Done."
    assert recording_model.tools == CODING | OWN


async def test_a_coder_is_told_its_instructions_before_the_protocol_and_the_repositorys(
    work: Work, workspace: Path
) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.")
    recording_model = RecordingModel()
    await work(worker(recording_model, instructions="Be brief."))
    assert recording_model.told.startswith("Be brief.")
    assert "## Midwatch" in recording_model.told
    assert "Use tabs." in recording_model.told


async def test_a_coders_commands_run_in_the_workspace_under_the_mark(
    work: Work, workspace: Path, steps: Steps
) -> None:
    command = f"echo ${MARK} | tee mark.txt; exit 3"
    await work(worker(RecordingModel([("run_command", {"command": command})])))
    step = (await steps())[0]
    assert (step.tool, step.ok, step.exit_code) == ("run_command", False, 3)
    assert "1.1" in step.output
    assert (workspace / "mark.txt").read_text() == "1.1\n"


async def test_a_task_worker_has_only_the_tools_that_are_named(work: Work, steps: Steps) -> None:
    recording_model = RecordingModel([("double", {"number": 21}), ("request", {})])
    tools = ["somebodys:double", "somebodys:request"]
    await work(worker(recording_model, kind=WorkerKind.TASK, tools=tools))
    assert recording_model.tools == {"double", "request"} | OWN
    outputs = {step.tool: step.output for step in await steps() if step.tool}
    assert outputs == {"double": "42", "request": "request 1"}


async def test_a_ready_agent_needs_no_model_and_is_watched_too(work: Work, steps: Steps) -> None:
    ready = Worker(WorkerSpec(agent="somebodys:agent"), name="w", model=None)
    assert await work(ready) == "From the agent."
    assert [step.text for step in await steps()] == ["From the agent."]


async def test_with_a_history_the_prompt_is_not_given_again(work: Work) -> None:
    recording_model = RecordingModel()
    call = ToolCallPart("run_command", {"command": "true"})
    begun = [ModelRequest.user_text_prompt("Do it."), ModelResponse(parts=[call])]
    assert await work(worker(recording_model), history=begun) == "Done."
    assert recording_model.prompts == 1


async def test_a_model_that_fails_is_a_workers_error_with_its_reason(work: Work) -> None:
    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ModelHTTPError(401, "m", "no such key")

    failing = Worker(WorkerSpec(), name="w", model=patient_model(FunctionModel(fail)))
    with pytest.raises(WorkerError, match="status_code: 401, model_name: m, body: no such key"):
        await work(failing)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"tools": ["somebodys"]}, "worker w, tool: write 'somebodys' as package.module:name"),
        ({"tools": ["json:"]}, "write 'json:' as package.module:name"),
        ({"tools": [".json:dumps"]}, ".json cannot be imported: TypeError"),
        ({"tools": ["broken_by_itself:x"]}, "ZeroDivisionError: division by zero"),
        ({"tools": ["somebodys:triple"]}, "worker w, tool: somebodys has no 'triple'"),
        ({"tools": ["somebodys:seven"]}, "worker w: the tool somebodys:seven is not a function"),
        ({"agent": "somebodys:seven"}, "somebodys:seven is not a pydantic-ai agent"),
        ({"agent": "nobodys:agent"}, "nobodys cannot be imported: ModuleNotFoundError: No module"),
        ({"mcp": ["serve 'it"]}, 'the MCP server "serve \'it" is neither a URL nor a command'),
        ({"mcp": [""]}, "'' is neither a URL nor a command"),
    ],
)
def test_a_worker_that_cannot_be_built_says_why(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        worker(RecordingModel(), **spec)


def test_an_mcp_server_may_be_a_url_or_a_command_with_quotes() -> None:
    assert mcp_source("https://example.org/mcp") == "https://example.org/mcp"
    server = {"command": "python", "args": ["my server.py", "--all"], "keep_alive": False}
    assert mcp_source("python 'my server.py' --all") == {"mcpServers": {"server": server}}


def test_a_module_of_this_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_tools.py").write_text("def greet() -> str:\n    return 'hello'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    greet = import_object("shop_tools:greet", "tool")
    assert callable(greet)
    assert greet() == "hello"


def test_a_worker_without_a_model_says_where_to_name_one() -> None:
    with pytest.raises(UsageError, match="worker w: no model; set `models:"):
        Worker(WorkerSpec(), name="w", model=None)
