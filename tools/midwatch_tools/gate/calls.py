"""A call as it is known again: what it does, what it is called, whether it only looks. Pure."""

import re
from dataclasses import replace

from midwatch_monitor.records import Edit, Step
from midwatch_monitor.rules.identity import command, identify
from midwatch_monitor.shell.claimed_edits import claims_edit, looks
from midwatch_tools.observation import cut_line

_JOINTS = re.compile(r"&&|\|\||[;|\n]")
_LOOKS = re.compile(
    r"\s*(?:(?:cat|cd|echo|file|find|grep|head|less|ls|nl|pwd|rg|stat|tail|tree|wc|which|type)\b"
    r"|git (?:-\S+ )*(?:status|diff|log|show|blame|grep)\b|$)"
)
"""Commands that change nothing, as long as they are not redirected into a file."""
_WORDS = 100
"""Characters of a command by which it is called."""


def action(step: Step) -> int:
    """What is done: as the rules compare it, but of an edit its very words."""
    precise = (Edit(path=step.path),) if claims_edit(step.tool, step.args) else ()
    return identify(replace(step, edits=precise), command(step))


def called(step: Step) -> str:
    """The call in words that the worker knows again: the command, or the tool with its file."""
    line = " ".join(command(step).split()) or f"{step.tool} {step.path}".strip()
    return f"`{cut_line(line, _WORDS)}`"


def only_looks(step: Step) -> bool:
    """Whether it changes nothing by what it is: it reads a file, or lists some."""
    line = command(step)
    if not line:
        return looks(step.tool, step.args)
    return ">" not in line and all(_LOOKS.match(part) for part in _JOINTS.split(line))
