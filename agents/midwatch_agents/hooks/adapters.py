"""The agents whose hooks are known, by the name that `midwatch hook` takes."""

from collections.abc import Mapping
from types import MappingProxyType

from midwatch_agents.hooks.adapter import HookAdapter, HookKind, StopForm

_EVENTS = {
    "SessionStart": HookKind.OTHER,
    "UserPromptSubmit": HookKind.PROMPT,
    "PreToolUse": HookKind.OTHER,
    "PostToolUse": HookKind.OTHER,
    "Stop": HookKind.TURN_END,
    "SessionEnd": HookKind.SESSION_END,
}

_CLAUDE_CODE = HookAdapter(
    name="claude-code",
    events=_EVENTS | {"PostToolUseFailure": HookKind.OTHER, "SubagentStop": HookKind.OTHER},
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}),
    stop_at={"PreToolUse": StopForm.END_TURN, "PostToolUse": StopForm.END_TURN},
)
# After a call neither Codex nor qwen-code can be stopped: `continue: false` replaces the output
# there, and the turn goes on. What a command answered is for Codex bare text, without an exit code.
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
# Gemini CLI gives no ids of calls, passes no context on before a tool, and ignores Claude Code's
# form of a denial.
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
