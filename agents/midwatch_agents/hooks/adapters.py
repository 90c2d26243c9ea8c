"""The agents whose hooks are known, by the name that `midwatch hook` takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.session_reader import KEPT


class HookKind(StrEnum):
    """What a hook event says about the turn and the session."""

    PROMPT = "prompt"
    TURN_END = "turn end"
    SUB_AGENT_END = "sub-agent end"
    SESSION_END = "session end"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One hook event. Texts are empty if the agent does not send them."""

    agent: str
    kind: HookKind
    session: str
    transcript: str
    """A path, like `folder`."""
    folder: str
    sub_agent: str
    """The id of the sub-agent that is working."""
    payload: JsonNode

    @property
    def name(self) -> str:
        """The agent's name for the event."""
        return self.payload["hook_event_name"].text

    @property
    def call(self) -> str:
        """The id of the tool call that the event is about."""
        return self.payload["tool_use_id"].text


class StopForm(StrEnum):
    """How an agent is told to stop."""

    END_TURN = "end turn"
    """`continue: false`: the turn ends at once."""
    DENY_TOOL = "deny tool"
    """`permissionDecision: deny`: the call is not made, and the model reads why."""
    DENY_AND_END = "deny and end"
    """Both of these."""
    DENY = "deny"
    """`decision: deny`: the same in another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAdapter:
    """The hooks of one agent."""

    name: str
    file: str = "settings.json"
    events: Mapping[str, HookKind]
    """The events at which Midwatch is called."""
    guidance_at: frozenset[str]
    """The events at which additional context reaches the model."""
    stop_at: Mapping[str, StopForm]
    matcher: str = "*"
    """The pattern that matches every tool in its settings."""
    timeout_in_ms: bool = False
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Claude Code's names for the agent's equivalent tools."""
    exit_code: str = ""
    """A regular expression that finds the exit code in a command's output, if it is there."""
    note: str = ""
    """What a person has to do after the installation."""

    def settings_file(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the file from which this user's agent reads its hooks."""
        return KEPT[self.name].folder_of(environ, home) / self.file


_EVENTS = {
    "SessionStart": HookKind.OTHER,
    "UserPromptSubmit": HookKind.PROMPT,
    "PreToolUse": HookKind.OTHER,
    "PostToolUse": HookKind.OTHER,
    "Stop": HookKind.TURN_END,
    "SessionEnd": HookKind.SESSION_END,
}

# Claude Code ignores `continue: false` around a call that fails. After the whole batch of calls it
# always ends the turn.
_CLAUDE_CODE = HookAdapter(
    name="claude-code",
    events=_EVENTS
    | {
        "PostToolUseFailure": HookKind.OTHER,
        "PostToolBatch": HookKind.OTHER,
        "SubagentStop": HookKind.SUB_AGENT_END,
    },
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}),
    stop_at={
        "PreToolUse": StopForm.DENY_AND_END,
        "PostToolUse": StopForm.END_TURN,
        "PostToolBatch": StopForm.END_TURN,
        "Stop": StopForm.END_TURN,  # this outweighs another hook that lets the turn go on
    },
)
# Neither Codex nor qwen-code can be stopped after a call: `continue: false` only replaces the
# output there. Codex reports a command's output as bare text, without an exit code.
_CODEX = HookAdapter(
    name="codex",
    file="hooks.json",
    events=_EVENTS,
    guidance_at=_CLAUDE_CODE.guidance_at,
    stop_at={"PreToolUse": StopForm.DENY_TOOL},
    matcher=".*",
    note=(
        "Codex runs no hook that is not trusted, and says nothing about it: trust these in Codex, "
        "or start it with --dangerously-bypass-hook-trust"
    ),
)
_QWEN = HookAdapter(
    name="qwen",
    events=_EVENTS | {"PostToolUseFailure": HookKind.OTHER},
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    stop_at={"PreToolUse": StopForm.DENY_TOOL},
    tools={"run_shell_command": "Bash", "write_file": "Write", "edit": "Edit", "read_file": "Read"},
    exit_code=r"^Exit Code: (\d+)$",
)
# Gemini CLI sends no call ids, ignores context before a tool, and ignores Claude Code's form of a
# denial.
_GEMINI = HookAdapter(
    name="gemini",
    events={
        "SessionStart": HookKind.OTHER,
        "BeforeAgent": HookKind.PROMPT,
        "BeforeTool": HookKind.OTHER,
        "AfterTool": HookKind.OTHER,
        "AfterAgent": HookKind.TURN_END,
        "SessionEnd": HookKind.SESSION_END,
    },
    guidance_at=frozenset({"SessionStart", "BeforeAgent", "AfterTool"}),
    stop_at={"BeforeTool": StopForm.DENY, "AfterTool": StopForm.END_TURN},
    timeout_in_ms=True,
)
ADAPTERS: Mapping[str, HookAdapter] = MappingProxyType(
    {each.name: each for each in (_CLAUDE_CODE, _CODEX, _GEMINI, _QWEN)}
)
