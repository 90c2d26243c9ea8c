"""The hooks of qwen-code: Claude Code's names and layout, with tools of its own.

After a call there is no stop: `continue: false` replaces the output, and the turn goes on.
"""

from midwatch_agents.hooks.adapter import HookAdapter, HookKind, StopForm

QWEN = HookAdapter(
    name="qwen",
    folder=".qwen",
    events={
        "SessionStart": HookKind.SESSION_START,
        "UserPromptSubmit": HookKind.PROMPT,
        "PreToolUse": HookKind.BEFORE_TOOL,
        "PostToolUse": HookKind.AFTER_TOOL,
        "PostToolUseFailure": HookKind.AFTER_TOOL,
        "Stop": HookKind.TURN_END,
        "SessionEnd": HookKind.SESSION_END,
    },
    guidance_at=frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    stop_at={"PreToolUse": StopForm.DENY_TOOL},
    tools={"run_shell_command": "Bash", "write_file": "Write", "edit": "Edit", "read_file": "Read"},
    exit_code=r"^Exit Code: (\d+)$",
)
