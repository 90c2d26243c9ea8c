"""What a scripted model answers a coding agent, whatever API the agent speaks.

The first user message names the script, `SCRIPT=fix|loop|fail|slow|reflect|hang`, and may name the
folder of the files, `WORKDIR=/absolute`. How far the script is follows from the conversation
alone, so any number of sessions may play at a time. Tools are named and called as opencode has
them.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FAILING = 'python3 -c "import sys; sys.exit(3)"'
"""The command that the script `loop` repeats."""
SLOW = "until test -e ~/go; do sleep 0.1; done"
"""The command of the script `slow`: it waits for a file in the agent's home."""
FILE, CONTENT = "hello.txt", "hello"
"""The file that the scripts write, and what stands in it then."""
SIDE_ANSWER = "A short title"
"""The answer to a request that offers no tools."""
_NUDGE = re.compile(r"\[midwatch [0-9a-f]{8} #\d+ ")
REFLECTION = {"progress_percent": 50, "confidence": 60, "decision": "continue"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls, as the agent names it."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the scripts read of one request."""

    user_messages: tuple[str, ...]
    called: tuple[str, ...]
    """The tools that the model called, in order."""
    results: int
    """How many tool results it was given: the number of the step."""
    offered: tuple[str, ...]
    """The tools that it may call."""

    @property
    def script(self) -> str:
        """The script that the first user message names."""
        named = re.search(r"SCRIPT=(\w+)", self._first)
        return named[1] if named else "fix"

    @property
    def file(self) -> str:
        """The path of the file to write."""
        folder = re.search(r"WORKDIR=(/[^\s\"'<]*)", self._first)
        return f"{folder[1].rstrip('/')}/{FILE}" if folder else FILE

    @property
    def is_nudged(self) -> bool:
        """Whether a user message is an intervention of Midwatch."""
        return any(_NUDGE.search(each) for each in self.user_messages)

    @property
    def reflect_tool(self) -> str | None:
        """The tool for reflecting, whatever prefix the agent gave it."""
        return next((each for each in self.offered if each.endswith("reflect")), None)

    @property
    def _first(self) -> str:
        return next((each for each in self.user_messages if "SCRIPT=" in each), "")


def _bash(command: str, description: str) -> ToolCall:
    return ToolCall("bash", {"command": command, "description": description})


def _write(at: Conversation) -> ToolCall:
    return ToolCall("write", {"filePath": at.file, "content": CONTENT})


def _step(at: Conversation, *calls: ToolCall, last: str) -> ToolCall | str:
    return calls[at.results] if at.results < len(calls) else last


def _fix(at: Conversation, *before: ToolCall) -> ToolCall | str:
    show = _bash(f"cat {shlex.quote(at.file)}", "Shows the file")
    return _step(at, *before, _write(at), show, last=f"{FILE} is written.")


def _loop(at: Conversation) -> ToolCall | str:
    if not at.is_nudged:
        return _bash(FAILING, "Runs the check")
    return f"{FILE} is written after all." if "write" in at.called else _write(at)


def _fail(at: Conversation) -> ToolCall | str:
    """Never twice the same call: some agents end a loop themselves."""
    return _bash(f"{FAILING} # {at.results}", "Runs the check") if at.results < 30 else "I give up."


def _slow(at: Conversation) -> ToolCall | str:
    return _step(at, _bash(SLOW, "Waits"), last="It has waited.")


def _reflect(at: Conversation) -> ToolCall | str:
    tool = at.reflect_tool
    return _fix(at, ToolCall(tool, REFLECTION)) if tool else _fix(at)


_SCRIPTS: dict[str, Callable[[Conversation], ToolCall | str]] = {
    "fix": _fix,
    "loop": _loop,
    "fail": _fail,
    "slow": _slow,
    "reflect": _reflect,
}


def answer(at: Conversation) -> ToolCall | str | None:
    """The tool that the model calls next, or its last words, or nothing at all (`hang`)."""
    if not at.offered:
        return SIDE_ANSWER
    if at.script == "hang":
        return None
    return _SCRIPTS[at.script](at)
