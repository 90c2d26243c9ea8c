"""Sessions of Codex (`rollout-*.jsonl`).

One step for each tool call, and for each answer without one. A call ends with the first line that
has its result: what Codex observed (`item_completed`), or what the model was told. Token counts
follow an answer and go to the next complete step. People's own commands, thoughts and settings are
not steps.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from posixpath import join

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.shell import command_line
from midwatch_monitor.shell.target import patch_blocks
from midwatch_monitor.shell.tools import SHELL_TOOLS
from midwatch_monitor.traces.foreign import JsonNode, ModelAnswer, finish_call
from midwatch_monitor.traces.json_stream import first_lines
from midwatch_monitor.traces.session_reader import SessionReader, typed_text

_KINDS = frozenset({"session_meta", "turn_context", "response_item", "event_msg"})
_SHELLS = SHELL_TOOLS - {"exec"}  # Codex's `exec` runs JavaScript
_PATCH = "apply_patch"
_SOURCES = frozenset({"", "agent", "unified_exec_startup"})
"""Sources of commands that the model requested."""
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_RUNNING = "Process running with session ID"


def recognise(path: Path) -> bool:
    """Whether the head of the file has a line of a known type with a `payload`."""
    return any(
        line["type"].text in _KINDS and line["payload"].is_object for line in first_lines(path)
    )


class CodexSession(SessionReader):
    def __init__(self) -> None:
        super().__init__()
        self._total = 0
        self._tokens = 0
        """Tokens not yet assigned to a step."""

    def take(self, line: JsonNode) -> Iterator[Event]:
        payload, at = line["payload"], line["timestamp"].time
        match line["type"].text:
            case "session_meta":
                self._read_meta(payload)
            case "turn_context":
                self._enter_folder(payload["cwd"].text)
            case "response_item":
                yield from self._read_response_item(payload, at)
            case "event_msg":
                yield from self._read_event(payload, at)
            case "token_usage_record":
                yield from self._count_tokens(payload["thread_token_usage"])
            case _:
                return

    def finish(self) -> Iterator[Event]:
        """Yield the open steps, with the tokens not yet assigned to a step."""
        yield from self._end_answer()
        yield from map(self._add_tokens, self._calls.rest())

    def _read_meta(self, meta: JsonNode) -> None:
        self.heading.add(id=meta["id"].text)
        self._enter_folder(meta["cwd"].text)

    def _read_response_item(self, item: JsonNode, at: datetime | None) -> Iterator[Step]:
        """Take in the model's words and calls, and the results it was told."""
        key = item["call_id"].text
        match item["type"].text:
            case "message" if item["role"].text == "assistant":
                self._current_answer(at).say(item["content"].said)
            case "function_call" | "custom_tool_call" | "local_shell_call" as kind:
                answer = self._current_answer(at)
                if not self._calls.knows(key):
                    yield from self._calls.open(key, answer.call(self._call_step(kind, item, at)))
            case "function_call_output" | "custom_tool_call_output":
                yield from self._end_answer()
                if step := self._calls.close(key):
                    yield self._number_step(_as_told(step, item["output"], at))
            case _:
                return

    def _read_event(self, event: JsonNode, at: datetime | None) -> Iterator[Event]:
        """Take in what Codex reports about itself."""
        match event["type"].text:
            case "task_started" | "turn_started":
                yield from self._to_model(at)
            case "task_complete" | "turn_complete" | "turn_aborted":
                yield from self._end_answer()
                yield from self._to_person(at)
            case "token_count":
                yield from self._count_tokens(event["info"]["total_token_usage"])
            case "user_message":
                self.heading.add(prompt=typed_text(event["message"].text))
            case "item_completed":
                yield from self._read_item(event["item"], at)
            case _:
                return

    def _read_item(self, item: JsonNode, at: datetime | None) -> Iterator[Step]:
        kind, key = item["type"].text, item["id"].text
        if kind == "UserMessage":
            self.heading.add(prompt=typed_text(item["content"].said))
        if kind not in {"CommandExecution", "McpToolCall", "FileChange"}:
            return
        if key and not self._calls.knows(key) and item["source"].text in _SOURCES:
            yield from self._calls.open(
                key, self._current_answer(at).call(self._read_unrequested_call(item, at))
            )
        if step := self._calls.close(key):
            yield self._number_step(_as_seen(step, item, at))

    def _current_answer(self, at: datetime | None) -> ModelAnswer:
        """Return the current answer."""
        return self._current or self._begin_answer(at)

    def _end_answer(self) -> Iterator[Step]:
        yield from map(self._add_tokens, self._message_step())
        self._current = None

    def _count_tokens(self, usage: JsonNode) -> Iterator[Step]:
        """Take in the cost of all answers so far; the current answer is over."""
        total = usage["total_tokens"].count
        self._tokens += max(total - self._total, 0)
        self._total = total
        yield from self._end_answer()

    def _number_step(self, step: Step) -> Step:
        return self._add_tokens(self._calls.number(step))

    def _add_tokens(self, step: Step) -> Step:
        tokens, self._tokens = self._tokens, 0
        return replace(step, tokens=tokens)

    def _call_step(self, kind: str, item: JsonNode, at: datetime | None) -> Step:
        """Open a call."""
        if kind == "local_shell_call":
            tool, given = "local_shell", item["action"]
        else:
            tool = "__".join(filter(None, (item["namespace"].text, item["name"].text)))
            given = item["arguments"].decoded if "arguments" in item else item["input"]
        step = Step(number=0, kind=StepKind.TOOL, at=at, tool=tool, call=item["call_id"].text)
        if tool in _SHELLS:
            folder = given["workdir"].text or given["working_directory"].text
            return self._command_step(step, _command_text(given), folder)
        if tool == _PATCH:
            return self._patch_step(step, given.text or given["input"].text)
        return replace(step, args=given.canonical)

    def _read_unrequested_call(self, item: JsonNode, at: datetime | None) -> Step:
        """Open a call that no line attributes to the model."""
        step = Step(number=0, kind=StepKind.TOOL, at=at, call=item["id"].text)
        match item["type"].text:
            case "CommandExecution":
                folder = item["cwd"].text.removeprefix("file://")
                return self._command_step(
                    replace(step, tool="exec_command"), _command_text(item), folder
                )
            case "McpToolCall":
                tool = f"mcp__{item['server'].text}__{item['tool'].text}"
                return replace(step, tool=tool, args=item["arguments"].canonical)
            case _:
                paths = map(self._place.path, item["changes"].members)
                return replace(step, tool=_PATCH, edits=tuple(Edit(path=each) for each in paths))

    def _command_step(self, step: Step, command: str, folder: str) -> Step:
        self._place.enter(join(self.heading.folder, folder))
        return replace(step, args=command, edits=self._place.run(command))

    def _patch_step(self, step: Step, patch: str) -> Step:
        edits = tuple(
            Edit(path=self._place.path(each.path), deleted=each.deleted)
            for each in patch_blocks(patch)
        )
        return replace(step, args=patch, path=edits[0].path if edits else "", edits=edits)


def _command_text(given: JsonNode) -> str:
    """Return the command's text, or the script if it is a shell that runs one."""
    words = [word.text for word in given["command"]]
    return given["cmd"].text or given["command"].text or command_line(words)


def _as_seen(step: Step, item: JsonNode, at: datetime | None) -> Step:
    """Return the call with the result that Codex observed."""
    ok, code = item["status"].text == "completed", None
    result = item["result"]
    if item["type"].text == "CommandExecution":
        code = item["exit_code"].whole
        ok, output = code == 0, item["aggregated_output"].text
    elif item["type"].text == "McpToolCall":
        ok = ok and not result["isError"]
        output = result["content"].said or item["error"]["message"].text
    else:
        output = "\n".join(filter(None, (item["stdout"].text, item["stderr"].text)))
    return finish_call(step, at=at, ok=ok, exit_code=code, output=output)


def _as_told(step: Step, output: JsonNode, at: datetime | None) -> Step:
    """Return the call with the result that the model was told."""
    kept, text, ok = output.decoded, output.said, None
    code = kept["metadata"]["exit_code"].whole
    head, told, rest = text.partition("Output:\n")
    if "metadata" in kept:
        text = kept["output"].text
    elif told:
        text, found = rest, _EXIT_CODE.search(head)
        code = int(found[1]) if found else None
    if code is not None:
        ok = code == 0
    elif step.tool in _SHELLS or step.tool == _PATCH:
        ok = None if _RUNNING in head else False  # it was refused or could not be started
    code = code if step.tool in _SHELLS else None
    return finish_call(step, at=at, ok=ok, exit_code=code, output=text)
