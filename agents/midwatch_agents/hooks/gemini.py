"""The hooks of Gemini CLI: other names, timeouts in milliseconds, no ids of calls.

Additional context before a tool is not passed on, and Claude Code's form of a denial is ignored.
"""

from midwatch_agents.hooks.adapter import HookAdapter, HookKind, StopForm

GEMINI = HookAdapter(
    name="gemini",
    folder=".gemini",
    events={
        "SessionStart": HookKind.SESSION_START,
        "BeforeAgent": HookKind.PROMPT,
        "BeforeTool": HookKind.BEFORE_TOOL,
        "AfterTool": HookKind.AFTER_TOOL,
        "AfterAgent": HookKind.TURN_END,
        "SessionEnd": HookKind.SESSION_END,
    },
    guidance_at=frozenset({"SessionStart", "BeforeAgent", "AfterTool"}),
    stop_at={"BeforeTool": StopForm.DENY, "AfterTool": StopForm.END_TURN},
    timeout_in_ms=True,
)
