"""Sessions of Claude Code (`.jsonl`), as stored or as printed by `--output-format stream-json`.

One step for each tool call, and for each answer without one; an answer may be spread over several
lines. Sub-agents are left out: their work is the result of the call that started them. A file whose
first message is a sub-agent's (`isSidechain`) is that sub-agent's own session. Text typed by
people, `isMeta` lines, summaries, snapshots and synthetic answers (API errors) are not steps.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from midwatch_monitor.records import Event
from midwatch_monitor.traces.foreign import JsonNode, Tools, finish_call
from midwatch_monitor.traces.json_stream import first_lines
from midwatch_monitor.traces.session_reader import SessionReader, typed_text

_TOOLS = Tools(
    shell="Bash",
    writing=frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"}),
    whole="Write",
)
_ASKING = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that wait for the person at the agent's own terminal."""
_SPEAKERS = frozenset({"user", "assistant"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_INTERRUPTED = "[Request interrupted by user"
_STOPPED = "hook_stopped_continuation"
"""The only sign that a hook ended the turn: Claude Code calls no `Stop` hook then."""
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)\b")
_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def recognise(path: Path) -> bool:
    """Whether the head of the file has a line of type `user` or `assistant` with a message."""
    return any(_is_message(line) for line in first_lines(path))


class ClaudeCodeSession(SessionReader):
    def __init__(self) -> None:
        super().__init__()
        self._sidechain: bool | None = None

    def take(self, line: JsonNode) -> Iterator[Event]:
        id = line["agentId"].text or line["sessionId"].text or line["session_id"].text
        self.heading.add(id=id)
        self._enter_folder(line["cwd"].text)
        if line["attachment"]["type"].text == _STOPPED and self._belongs_to_session(line):
            yield from self._to_person(line["timestamp"].time)
        if not _is_message(line) or not self._belongs_to_session(line):
            return
        if line["type"].text == "assistant":
            yield from self._read_answer(line)
        else:
            yield from self._read_user_line(line)

    def _belongs_to_session(self, line: JsonNode) -> bool:
        sidechain = bool(line["isSidechain"] or line["parent_tool_use_id"])
        if self._sidechain is None:
            self._sidechain = sidechain
        return sidechain == self._sidechain and not line["isMeta"]

    def _read_user_line(self, line: JsonNode) -> Iterator[Event]:
        """Take in the results of calls, or a person's message."""
        at, content = line["timestamp"].time, line["message"]["content"]
        for block in content:
            if block["type"].text == "tool_result":
                yield from self._read_result(line, block)
        said = "" if line["isCompactSummary"] else typed_text(content.said)
        if said.startswith(_INTERRUPTED):
            yield from self._to_person(at)
        elif said and not any(block["type"].text == "tool_result" for block in content):
            self.heading.add(prompt=said)
            yield from self._to_model(at)

    def _read_answer(self, line: JsonNode) -> Iterator[Event]:
        message, at = line["message"], line["timestamp"].time
        if line["isApiErrorMessage"] or message["model"].text == "<synthetic>":
            return
        key = message["id"].text or line["uuid"].text
        usage, cost = message["usage"], line["costUSD"].amount
        tokens = sum(usage[kind].count for kind in _USAGE)
        answer = yield from self._answer_for(key, at, tokens=tokens, cost_usd=cost)
        content = message["content"]
        answer.say("\n\n".join(filter(None, [content.text, *(b["text"].text for b in content)])))
        for block in content:
            if block["type"].text == "tool_use":
                yield from self._open_call(answer, _TOOLS, block, block["input"], at)
                if block["name"].text in _ASKING:
                    yield from self._to_person(at)
        if _ends_turn(message) and not answer.called:
            yield from self._message_step()
            yield from self._to_person(at)

    def _read_result(self, line: JsonNode, block: JsonNode) -> Iterator[Event]:
        step = self._calls.close(block["tool_use_id"].text)
        if step is None:
            return
        at, output, failed = line["timestamp"].time, _output(line, block), bool(block["is_error"])
        if step.tool in _ASKING:
            yield from self._to_model(at)
        code = _exit_code(line, output, failed=failed) if step.tool == _TOOLS.shell else None
        done = finish_call(step, at=at, ok=not failed, exit_code=code, output=output)
        yield self._calls.number(done)


def _ends_turn(message: JsonNode) -> bool:
    """Whether the model is done. Its thoughts are on a separate line before its text."""
    content = message["content"]
    thinks = content and all(block["type"].text in _THINKING for block in content)
    return message["stop_reason"].text == "end_turn" and (bool(content.text) or not thinks)


def _exit_code(line: JsonNode, output: str, *, failed: bool) -> int | None:
    """Return a command's exit code; `None` if it was refused, stopped, or runs in the background.

    Also `None` if it succeeded and only text is stored: some agents' hooks report nothing else.
    """
    if not failed:
        kept = line["toolUseResult"]
        return None if kept["backgroundTaskId"] or isinstance(kept.value, str) else 0
    found = _EXIT_CODE.match(output)
    return int(found[1]) if found else None


def _is_message(line: JsonNode) -> bool:
    return line["type"].text in _SPEAKERS and "content" in line["message"]


def _output(line: JsonNode, block: JsonNode) -> str:
    """Return the result as the model saw it, else as it was stored next to that."""
    content, kept = block["content"], line["toolUseResult"]
    return content.said or "\n".join(filter(None, [kept["stdout"].text, kept["stderr"].text]))
