"""What agents' hooks have in common, and the table in which an agent says how its own differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.session_files import KEPT


class HookKind(StrEnum):
    """What a call of a hook says of the turn and the session."""

    PROMPT = "prompt"
    TURN_END = "turn end"
    SESSION_END = "session end"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One call of a hook. Texts are empty where the agent does not tell."""

    agent: str
    kind: HookKind
    session: str
    transcript: str
    """A path, as is `folder`."""
    folder: str
    sub_agent: str
    """The id of the sub-agent that is at work."""
    payload: JsonNode

    @property
    def name(self) -> str:
        """What the agent calls the event."""
        return self.payload["hook_event_name"].text


class StopForm(StrEnum):
    """How an agent is told to stop."""

    END_TURN = "end turn"
    """`continue: false`: its turn is over at once."""
    DENY_TOOL = "deny tool"
    """`permissionDecision: deny`: the call is not made, and the model reads why."""
    DENY = "deny"
    """`decision: deny`: the same in another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAdapter:
    """The hooks of one agent."""

    name: str
    file: str = "settings.json"
    events: Mapping[str, HookKind]
    """The events that Midwatch has itself called at."""
    guidance_at: frozenset[str]
    """The events at which additional context reaches the model."""
    stop_at: Mapping[str, StopForm]
    matcher: str = "*"
    """What stands for every tool in its settings."""
    timeout_in_ms: bool = False
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """What Claude Code calls the tools of the agent that do the same."""
    exit_code: str = ""
    """A regular expression that finds it in what a command answered, where it stands there."""
    note: str = ""
    """What a person has to do beside installing."""

    def settings_file(self, environ: Mapping[str, str], home: Path) -> Path:
        """Where the agent of this user reads its hooks from."""
        return KEPT[self.name].folder_of(environ, home) / self.file
