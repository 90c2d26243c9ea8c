"""Runs of mini-swe-agent (`.traj.json`, versions 1 and 2): one step for each assistant message.

The command of a message is in one fenced block (1.x) or in `extra.actions` (2.x). A message with
several blocks or none, which the agent refuses, is a `message` step with the refusal as output.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from midwatch_monitor.records import Event, Step, StepKind
from midwatch_monitor.shell import Shell
from midwatch_monitor.traces.foreign import NOTHING_RAN, JsonNode
from midwatch_monitor.traces.json_stream import Damage, first_keys, items, text_at

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_ANY_BLOCK = re.compile(r"```[\w-]*\s*\n(.*?)\n```", re.DOTALL)
_RETURN_CODE = re.compile(r"\s*<returncode>\s*(-?\d+)\s*</returncode>\s*")
_TIMED_OUT = re.compile(r"\s*(?:The last command .*? timed out|<exception>)", re.DOTALL)
_FORMAT_ERROR = "FormatError"


def recognise(path: Path) -> bool:
    """Whether it is a document with `messages` that have roles."""
    keys = first_keys(path, "messages")
    return keys is not None and "role" in keys


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the steps of a run lazily, in order."""
    run = _Run(text_at(path, "info", "config", "environment", "cwd"))
    for item in items(path, "messages"):
        if isinstance(item, Damage):
            yield item
        elif (step := run.take(item.node)) is not None:
            yield step
    if (last := run.finish()) is not None:
        yield last


@dataclass(slots=True, kw_only=True)
class _Turn:
    """An assistant message waiting for its results."""

    message: JsonNode
    results: list[JsonNode] = field(default_factory=lambda: list[JsonNode]())


class _Run:
    """Reads one run. A message becomes a step when the next one begins."""

    def __init__(self, cwd: str) -> None:
        self._shell = Shell()
        self._cwd = cwd
        self._number = 0
        self._turn: _Turn | None = None

    def take(self, message: JsonNode) -> Step | None:
        """Return the step that this message completes, if any."""
        if message["role"].text == "assistant":
            done = self.finish()
            self._turn = _Turn(message=message)
            return done
        if self._turn is not None and _is_result(message, self._turn.results):
            self._turn.results.append(message)
        return None

    def finish(self) -> Step | None:
        """Return the step of the message that is still waiting, if any."""
        turn, self._turn = self._turn, None
        if turn is None:
            return None
        self._number += 1
        step = _make_step(self._number, turn)
        if step.kind is StepKind.MESSAGE or step.exit_code in NOTHING_RAN:
            return step
        return replace(step, edits=self._shell.edits(step.args, cwd=self._cwd))


def _is_result(message: JsonNode, results: Sequence[JsonNode]) -> bool:
    """Whether a message is a result rather than something said later.

    Version 2 leaves out an answer that it refuses, so the refusal belongs to no step here.
    """
    if not results:
        return True
    return message["role"].text == "tool" and results[-1]["role"].text == "tool"


def _make_step(number: int, turn: _Turn) -> Step:
    content = turn.message["content"].said
    commands = _commands(turn.message, content) or _run_anyway(turn, content)
    extra = turn.message["extra"]
    usage = extra["response"]["usage"]
    step = Step(
        number=number,
        kind=StepKind.MESSAGE,
        at=_turn_time(turn),
        request=number,
        text=content.strip() or turn.message["reasoning_content"].text,
        tokens=usage["total_tokens"].count,
        cost_usd=extra["cost"].amount or usage["cost"].amount,
    )
    if not commands or any(_is_refusal(result) for result in turn.results):
        refusal = "\n".join(result["content"].said for result in turn.results)
        return replace(step, ok=False if turn.results else None, output=refusal)
    exit_code, ok = _outcome(turn.results)
    return replace(
        step,
        kind=StepKind.TOOL,
        tool="bash",
        args="\n".join(commands),
        ok=ok,
        exit_code=exit_code,
        output="\n".join(_output(result) for result in turn.results),
        text=_BLOCK.sub("", content).strip() or turn.message["reasoning_content"].text,
        call=_call_id(turn.message),
    )


def _commands(message: JsonNode, content: str) -> tuple[str, ...]:
    """Return the commands that a message asks for; empty if the agent would refuse it."""
    actions = tuple(action["command"].text for action in message["extra"]["actions"])
    if not actions:
        calls = (call["function"]["arguments"].decoded for call in message["tool_calls"])
        actions = tuple(arguments["command"].text for arguments in calls)
    if not actions:
        blocks = _BLOCK.findall(content)
        actions = (str(blocks[0]).strip(),) if len(blocks) == 1 else ()
    return actions if all(actions) else ()


def _run_anyway(turn: _Turn, content: str) -> tuple[str, ...]:
    """Return what ran without looking like a command: agents may use other kinds of blocks."""
    if all(_read_result(result)[0] is None for result in turn.results):
        return ()
    block = _ANY_BLOCK.search(content)
    return (block[1].strip() if block else content.strip(),)


def _outcome(results: Sequence[JsonNode]) -> tuple[int | None, bool | None]:
    """Return exit code and success; for several results, those of the first failed one."""
    read = [_read_result(result) for result in results]
    failed = next((each for each in read if each[1] is False), None)
    if failed is not None:
        return failed
    return read[-1] if read else (None, None)


def _read_result(result: JsonNode) -> tuple[int | None, bool | None]:
    content, extra = result["content"].said, result["extra"]
    found = _RETURN_CODE.match(content)
    code = extra["returncode"].whole if "returncode" in extra else int(found[1]) if found else None
    if code is not None:
        return code, code == 0
    if _TIMED_OUT.match(content):
        return None, False
    # The end of a run does not mean that its last command failed, unless the agent itself crashed.
    if result["role"].text == "exit":
        return None, True if extra["exit_status"].text == "Submitted" else None
    return None, None


def _output(result: JsonNode) -> str:
    if "raw_output" in result["extra"] and result["extra"]["raw_output"]:
        return result["extra"]["raw_output"].text
    content = _RETURN_CODE.sub("", result["content"].said, count=1)
    head, opened, rest = content.partition("<output>\n")
    body, closed, _ = rest.rpartition("</output>")
    return body if opened and closed and not head.strip() else content


def _is_refusal(result: JsonNode) -> bool:
    if result["extra"]["interrupt_type"].text == _FORMAT_ERROR:
        return True
    return result["content"].said.startswith("Please always provide EXACTLY ONE action")


def _call_id(message: JsonNode) -> str:
    calls = [*message["extra"]["actions"], *message["tool_calls"]]
    return next((call["tool_call_id"].text or call["id"].text for call in calls), "")


def _turn_time(turn: _Turn) -> datetime | None:
    """Return when the last result came, else when the model answered."""
    times = [result["extra"]["timestamp"].time for result in turn.results]
    known = next((time for time in reversed(times) if time is not None), None)
    extra = turn.message["extra"]
    return known or extra["timestamp"].time or extra["response"]["created"].time
