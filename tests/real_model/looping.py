"""A scripted worker that reads the same file for ever, whatever it is told."""

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role

READING = Turn(calls=(Call(tool="read_file", args='{"path": "notes.txt"}'),))


def script_for(role: Role, key: str) -> Script:
    """What the worker does."""
    return Script(phases=(Phase(turns=(READING,)),))
