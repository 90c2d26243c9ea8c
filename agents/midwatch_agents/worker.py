"""The worker: a pydantic-ai agent that does one attempt."""

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

from midwatch_agents.acp.presets import ACP, PRESETS, brings_model, preset_of, speaks_acp
from midwatch_agents.models import NONE
from midwatch_agents.sandbox import MARK, SandboxKind, place_capability
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import ModelSpec, WorkerKind, WorkerSpec
from midwatch_monitor.errors import MissingExtraError, UsageError, WorkerError
from midwatch_tools.attempt_watch import AttemptWatch

if TYPE_CHECKING:
    from midwatch_agents.acp.agent_model import AgentModel


def import_object(path: str, what: str) -> object:
    """Return the object at an import path; `what` names its purpose in errors."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{what}: write {path!r} as package.module:name")
    module = import_named(module_name, what)
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise UsageError(f"{what}: {module_name} has no {name!r}") from error


def import_named(module: str, what: str) -> ModuleType:
    """Import an installed module, or one in this folder; `what` names its purpose in errors."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # after all that is installed
    try:
        return import_module(module)
    except Exception as error:  # somebody else's module may do anything when it is imported
        raise UsageError(
            f"{what}: {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error


_FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files", "grep")
_ALLOWS = {"allow": True, "reject": False, "ask": None}
_TOOL_RETRIES = 5
"""Consecutive wrong calls of one tool after which the worker counts as broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlace:
    """Where a worker works."""

    paths: SandboxPaths
    sandbox_kind: SandboxKind
    network: bool
    mark: str
    """The attempt's mark, which is set in the environment of all its commands."""

    def capability(self) -> AbstractCapability[object]:
        """Return the capability that gives an agent this workspace."""
        return place_capability(
            self.paths, self.sandbox_kind, network=self.network, env={MARK: self.mark}
        )


def wrong_parts(spec: WorkerSpec, name: str) -> Iterator[tuple[tuple[str | int, ...], UsageError]]:
    """Yield what a worker's specification names and does not exist, with its keys in the file.

    Its modules are imported. Models and programs are not checked: they depend on the machine.
    """
    parts: list[tuple[tuple[str | int, ...], Callable[[], object]]] = [
        (("kind",), partial(check_kind, spec, name))
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
    """Raise UsageError if a worker has neither a model nor an agent."""
    if (model is None or model.name == NONE) and not brings_model(spec):
        raise UsageError(f"worker {name}: no model; set `models: {{worker: …}}` in the task file")


class Worker:
    """One agent, ready to run attempts."""

    def __init__(self, spec: WorkerSpec, *, name: str, model: Model | None) -> None:
        """Set up the worker.

        Raises UsageError for a tool or an agent that cannot be imported, and MissingExtraError if
        an optional dependency is missing.
        """
        check_kind(spec, name)
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
        """The model of a ready-made agent; unlike others, it does not wait for its provider."""
        codes = spec.kind is WorkerKind.CODER and not spec.agent
        self._coding_capabilities = _coding_capabilities() if codes else []

    @property
    def foreign(self) -> bool:
        """Whether the worker is a third-party agent, which runs its tools itself."""
        return self._preset is not None

    async def run(
        self,
        prompt: str | None,
        *,
        station: WorkerPlace,
        watch: AttemptWatch,
        history: Sequence[ModelMessage],
    ) -> str:
        """Work until the worker says it is done, and return its last message.

        With a history, the run continues from its end. Raises WorkerError with the reason if the
        model or the agent fails. Cancelling the run also ends its commands.
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
                    # Not the history's: an attempt may continue on another machine or folder.
                    workspace="new",
                    usage_limits=UsageLimits(request_limit=None),
                )
            except AgentRunError as error:
                raise WorkerError(f"{type(error).__name__}: {error}") from error
            return str(result.output)

    @asynccontextmanager
    async def _at_work(self, station: WorkerPlace) -> "AsyncGenerator[AgentModel | None]":
        """Start a third-party agent in its own process, if the worker is one."""
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
        """Return the text that a history ends with; else pydantic-ai would ask the model again."""
        last = history[-1] if history else None
        if not isinstance(last, ModelResponse) or self._agent.output_type is not str:
            return None
        return None if last.tool_calls else last.text


def check_kind(spec: WorkerSpec, name: str) -> None:
    """Raise UsageError for a kind of worker that there is not."""
    if not speaks_acp(spec) and not isinstance(spec.kind, WorkerKind):
        known = ", ".join((*WorkerKind, ACP, *PRESETS))
        raise UsageError(f"worker {name}: unknown kind {spec.kind!r}; known: {known}")


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
        raise UsageError(f"{spec.agent} is not a pydantic-ai agent")
    return cast("Agent[object, Any]", agent)


def _mcp(address: str) -> AbstractToolset[object]:
    source = mcp_source(address)
    try:
        from pydantic_ai.mcp import MCPToolset
    except ImportError as error:
        raise MissingExtraError(f"the MCP server {address}", "mcp") from error
    return MCPToolset[object](source)


def mcp_source(address: str) -> str | dict[str, Any]:
    """Return an MCP server's address as its client takes it: a URL, or a command to start.

    A command is split as by a shell, but no shell runs it, and it ends with the attempt.
    """
    if address.startswith(("http://", "https://")):
        return address
    try:
        program, *args = shlex.split(address)
    except ValueError as error:  # an unclosed quote, or nothing at all
        raise UsageError(
            f"the MCP server {address!r} is neither a URL nor a command: {error}"
        ) from error
    return {"mcpServers": {"server": {"command": program, "args": args, "keep_alive": False}}}


def _coding_capabilities() -> list[AbstractCapability[Any]]:
    """Return the harness's capabilities for files, a shell and the repository's instructions."""
    try:
        from pydantic_ai_harness import FileSystem, RepoContext, Shell
    except ImportError as error:
        raise MissingExtraError("a coder", "coder") from error
    return [
        FileSystem[Any](content_hashes=False, tools=_FILE_TOOLS, max_retries=_TOOL_RETRIES),
        # Only commands that end: a background process would outlive the attempt.
        Shell[Any](tools=("run_command",), denied_commands=(), default_timeout=120.0),
        RepoContext[Any](),
    ]
