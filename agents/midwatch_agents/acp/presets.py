"""The agents known by name: how to start and steer each one, and where it keeps its state.

Their behaviour was observed by running them; see `docs/agents.md`.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.util import find_spec

from midwatch_monitor.config.tasks import WorkerSpec
from midwatch_monitor.errors import MissingExtraError, UsageError


class Steering(StrEnum):
    """How to send an agent a message while it works."""

    CANCEL = "cancel"
    """Its turn is canceled, and a new one begins with the message. Works with every agent."""
    JOIN = "join"
    """It is prompted at once and reads the message with its next request."""
    METHOD = "method"
    """With `_session/steering`, an extension of the protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One kind of agent."""

    command: tuple[str, ...]
    state: tuple[str, ...] = ()
    """Where it keeps its login, settings and sessions; writable even in a sandbox."""
    steering: Steering = Steering.CANCEL
    env: Mapping[str, str] = field(default_factory=dict[str, str])


ACP = "acp"
"""The kind of worker whose specification names the command."""

_XDG = (".config", ".local/share", ".local/state", ".cache")

PRESETS: Mapping[str, Preset] = {
    "claude-code": Preset(
        command=("claude-agent-acp",),
        state=("~/.claude", "~/.claude.json"),
        steering=Steering.METHOD,
    ),
    "codex": Preset(command=("codex-acp",), state=("~/.codex",)),
    "gemini": Preset(command=("gemini", "--acp"), state=("~/.gemini",)),
    "qwen": Preset(command=("qwen", "--acp"), state=("~/.qwen",)),
    "opencode": Preset(
        command=("opencode", "acp"),
        state=tuple(f"~/{each}/opencode" for each in _XDG),
        steering=Steering.JOIN,
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
    "openhands": Preset(
        command=("openhands", "acp"), state=("~/.openhands",), steering=Steering.JOIN
    ),
}


def speaks_acp(spec: WorkerSpec) -> bool:
    """Whether a worker is an ACP agent."""
    return spec.kind == ACP or spec.kind in PRESETS


def brings_model(spec: WorkerSpec) -> bool:
    """Whether a worker has a model of its own: an ACP agent, or a ready-made one."""
    return bool(spec.agent) or speaks_acp(spec)


def preset_of(spec: WorkerSpec, name: str) -> Preset:
    """Return how to start a worker of this kind.

    Raises UsageError for a program that does not exist, and MissingExtraError.
    """
    if find_spec("acp") is None:
        raise MissingExtraError(f"worker {name}, an ACP agent,", "acp")
    known = PRESETS.get(spec.kind, Preset(command=()))
    command = tuple(spec.command) or known.command
    if not command:
        raise UsageError(
            f"worker {name}: `kind: acp` needs a `command`, such as [my-agent, --acp]; "
            f"kinds that do not are {', '.join(PRESETS)}"
        )
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"worker {name}: there is no program {command[0]!r} on the PATH; install it, or give "
            "its location in `command`"
        )
    steering = Steering(spec.steering or known.steering)
    return replace(known, command=command, state=known.state + spec.state, steering=steering)
