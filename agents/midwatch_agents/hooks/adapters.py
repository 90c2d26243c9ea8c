"""The agents whose hooks are known, by the name that `midwatch hook` takes."""

from collections.abc import Mapping
from types import MappingProxyType

from midwatch_agents.hooks.adapter import HookAdapter
from midwatch_agents.hooks.claude_code import CLAUDE_CODE
from midwatch_agents.hooks.codex import CODEX
from midwatch_agents.hooks.gemini import GEMINI
from midwatch_agents.hooks.qwen import QWEN

ADAPTERS: Mapping[str, HookAdapter] = MappingProxyType(
    {each.name: each for each in (CLAUDE_CODE, CODEX, GEMINI, QWEN)}
)
