"""A worker: the pydantic-ai agent that does one attempt."""

import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from midwatch_agents.acp.presets import ACP, PRESETS, preset_of, speaks_acp
from midwatch_agents.models import NONE
from midwatch_agents.sandbox import MARK, SandboxKind, place_capability
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import ModelSpec, WorkerKind, WorkerSpec
from midwatch_monitor.errors import MissingExtraError, UsageError, WorkerError
from midwatch_tools.attempt_watch import AttemptWatch

if TYPE_CHECKING:
    from midwatch_agents.acp.agent_model import AgentModel


def import_object(path: str, what: str) -> object:
    """The object at an import path; `what` says in errors what it was for."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{what}: write {path!r} as package.module:name")
    module = import_named(module_name, what)
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise UsageError(f"{what}: {module_name} has no {name!r}") from error


def import_named(module: str, what: str) -> ModuleType:
    """A module that is installed or lies in this folder; `what` says in errors what it was for."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # after all that is installed
    try:
        return import_module(module)
    except Exception as error:  # whatever a module of somebody else does while it is imported
        raise UsageError(
            f"{what}: {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error


_FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files", "grep")
_ALLOWS = {"allow": True, "reject": False, "ask": None}
_TOOL_RETRIES = 5
"""Wrong calls of one tool in a row before the worker counts as broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """Where a worker works."""

    paths: SandboxPaths
    sandbox_kind: SandboxKind
    network: bool
    mark: str
    """Of the attempt, in the environment of all its commands."""

    def capability(self) -> AbstractCapability[object]:
        """The workspace for an agent."""
        return place_capability(
            self.paths, self.sandbox_kind, network=self.network, env={MARK: self.mark}
        )


def wrong_parts(spec: WorkerSpec, name: str) -> Iterator[tuple[tuple[str | int, ...], UsageError]]:
    """What a worker names that there is not, each at its keys.

    Its modules are imported. No model is looked at, and no program: they are of a machine.
    """
    parts: list[tuple[tuple[str | int, ...], Callable[[], object]]] = [
        (("kind",), partial(_check_kind, spec, name))
    ]
    if spec.agent:
        parts += [(("agent",), partial(_ready_agent, spec))]
    elif not speaks_acp(spec):
        parts += [(("tools", at), partial(_tool, path, name)) for at, path in enumerate(spec.tools)]
        parts += [(("mcp", at), partial(mcp_source, each)) for at, each in enumerate(spec.mcp)]
    for keys, needed in parts:
        try:
            needed()
        except UsageError as error:
            yield keys, error


def check_has_model(spec: WorkerSpec, name: str, model: ModelSpec | None) -> None:
    """Raise UsageError where nothing would do a worker's work."""
    if (model is None or model.name == NONE) and not spec.agent and not speaks_acp(spec):
        raise UsageError(f"worker {name}: no model; set `models: {{worker: …}}` in the task file")


class Worker:
    """One agent, ready to run attempts."""

    def __init__(self, spec: WorkerSpec, *, name: str, model: Model | None) -> None:
        """Set the worker up.

        Raises UsageError for a tool or an agent that cannot be imported, and MissingExtraError
        where an optional dependency is missing.
        """
        _check_kind(spec, name)
        self._preset = preset_of(spec, name) if speaks_acp(spec) else None
        if model is None:
            check_has_model(spec, name, None)
        self.name = name
        self._spec = spec
        if self._preset is not None:
            model = None
        self._agent = _ready_agent(spec) if spec.agent else _own_agent(spec, name, model)
        brought = self._agent.model if spec.agent else None
        self.own_model = brought if isinstance(brought, Model) else None
        """The model that a ready agent brought along; the others wait for their providers."""
        codes = spec.kind is WorkerKind.CODER and not spec.agent
        self._coding_capabilities = _coding_capabilities() if codes else []

    @property
    def foreign(self) -> bool:
        """Whether it is an agent of another maker, which runs its tools itself."""
        return self._preset is not None

    async def run(
        self,
        prompt: str | None,
        *,
        station: Station,
        watch: AttemptWatch,
        history: Sequence[ModelMessage],
    ) -> str:
        """Work until the worker says that it is done; answers its last words.

        With a history the run goes on where that ends. Raises WorkerError with the true reason
        when the model or the agent fails. Cancelling it ends its commands too.
        """
        if (last := self._last_words(history)) is not None:
            return last
        async with self._at_work(station) as agent:
            if agent is not None:
                watch.hold = agent.hold
                agent.permit = watch.permit
            try:
                result = await self._agent.run(
                    prompt if not history else None,
                    message_history=list(history) or None,
                    model=agent,
                    toolsets=[agent.toolset] if agent is not None else None,
                    capabilities=[station.capability(), watch, *self._coding_capabilities],
                    # Not that of the history: an attempt may go on elsewhere, in another folder.
                    workspace="new",
                    usage_limits=UsageLimits(request_limit=None),
                )
            except AgentRunError as error:
                raise WorkerError(f"{type(error).__name__}: {error}") from error
            return str(result.output)

    @asynccontextmanager
    async def _at_work(self, station: Station) -> "AsyncGenerator[AgentModel | None]":
        """The agent of another maker in its process, if the worker is one."""
        if self._preset is None:
            yield None
            return
        from midwatch_agents.acp.agent import agent_model

        async with agent_model(
            self._preset,
            name=self._spec.kind,
            paths=station.paths,
            sandbox_kind=station.sandbox_kind,
            mark=station.mark,
            allows=_ALLOWS[self._spec.permission],
        ) as agent:
            yield agent

    def _last_words(self, history: Sequence[ModelMessage]) -> str | None:
        """The text that a history ends with; pydantic-ai would ask the model once more."""
        last = history[-1] if history else None
        if not isinstance(last, ModelResponse) or self._agent.output_type is not str:
            return None
        return None if last.tool_calls else last.text


def _check_kind(spec: WorkerSpec, name: str) -> None:
    if not speaks_acp(spec) and not isinstance(spec.kind, WorkerKind):
        known = ", ".join((*WorkerKind, ACP, *PRESETS))
        raise UsageError(f"worker {name}: there is no kind {spec.kind!r}; there are {known}")


def _own_agent(spec: WorkerSpec, name: str, model: Model | None) -> Agent[object, Any]:
    return Agent[object, str](
        model,
        name=name,
        instructions=spec.instructions or None,
        tools=[_tool(path, name) for path in spec.tools],
        toolsets=[_mcp(address) for address in spec.mcp],
        retries=_TOOL_RETRIES,
    )


def _tool(path: str, worker: str) -> Callable[..., Any]:
    tool = import_object(path, f"worker {worker}, tool")
    if not callable(tool):
        raise UsageError(f"worker {worker}: the tool {path} is not a function")
    return tool


def _ready_agent(spec: WorkerSpec) -> Agent[object, Any]:
    agent = import_object(spec.agent, "agent")
    if not isinstance(agent, Agent):
        raise UsageError(f"{spec.agent} is no pydantic-ai agent")
    return cast("Agent[object, Any]", agent)


def _mcp(address: str) -> AbstractToolset[object]:
    source = mcp_source(address)
    try:
        from pydantic_ai.mcp import MCPToolset
    except ImportError as error:
        raise MissingExtraError(f"the MCP server {address}", "mcp") from error
    return MCPToolset[object](source)


def mcp_source(address: str) -> str | dict[str, Any]:
    """Where an MCP server is, as its client takes it: a URL, or a command that it starts.

    A command is split as a shell would, but no shell runs it, and it ends with the attempt.
    """
    if address.startswith(("http://", "https://")):
        return address
    try:
        program, *args = shlex.split(address)
    except ValueError as error:  # a quotation without an end, or nothing at all
        raise UsageError(f"the MCP server {address!r} is no URL and no command: {error}") from error
    return {"mcpServers": {"server": {"command": program, "args": args, "keep_alive": False}}}


def _coding_capabilities() -> list[AbstractCapability[Any]]:
    """Files, a shell and the repository's own instructions, as the harness has them."""
    try:
        from pydantic_ai_harness import FileSystem, RepoContext, Shell
    except ImportError as error:
        raise MissingExtraError("a coder", "coder") from error
    return [
        FileSystem[Any](content_hashes=False, tools=_FILE_TOOLS, max_retries=_TOOL_RETRIES),
        # Only commands that end: what runs on would outlive the attempt.
        Shell[Any](tools=("run_command",), denied_commands=(), default_timeout=120.0),
        RepoContext[Any](),
    ]
