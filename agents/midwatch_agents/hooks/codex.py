"""The hooks of Codex: Claude Code's layout in a file of its own.

After a call there is no stop: `continue: false` replaces the output there, and the turn goes on.
What a command answered is bare text, without an exit code.
"""

from midwatch_agents.hooks.adapter import HookAdapter, HookKind, StopForm

CODEX = HookAdapter(
    name="codex",
    folder=".codex",
    folder_variable="CODEX_HOME",
    file="hooks.json",
    events={
        "SessionStart": HookKind.SESSION_START,
        "UserPromptSubmit": HookKind.PROMPT,
        "PreToolUse": HookKind.BEFORE_TOOL,
        "PostToolUse": HookKind.AFTER_TOOL,
        "Stop": HookKind.TURN_END,
        "SessionEnd": HookKind.SESSION_END,
    },
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"}),
    stop_at={"PreToolUse": StopForm.DENY_TOOL},
    matcher=".*",
    note=(
        "Codex runs no hook that is not trusted, and says nothing about it: trust these in Codex, "
        "or start it with --dangerously-bypass-hook-trust"
    ),
)
