"""Sessions of qwen-code (`.jsonl`).

One step for each tool call, and for each answer without one, which ends the turn. Text typed by
people, notices and the program's own records (`system`) are not steps.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from midwatch_monitor.records import Event, Step
from midwatch_monitor.traces.foreign import JsonNode, Tools, finish_call
from midwatch_monitor.traces.gemini import response_text
from midwatch_monitor.traces.json_stream import first_lines
from midwatch_monitor.traces.session_reader import SessionReader, typed_text

_TOOLS = Tools(
    shell="run_shell_command",
    writing=frozenset({"edit", "write_file", "notebook_edit"}),
    whole="write_file",
    folder="directory",
)
_SPEAKERS = frozenset({"user", "assistant", "tool_result"})
_EXIT_CODE = re.compile(r"^Exit Code: (\d+)\nSignal: ", re.MULTILINE)


def recognise(path: Path) -> bool:
    """Whether the head of the file has a line by a speaker whose message has `parts`."""
    return any(
        line["type"].text in _SPEAKERS and "parts" in line["message"] for line in first_lines(path)
    )


class QwenSession(SessionReader):
    def take(self, line: JsonNode) -> Iterator[Event]:
        self.heading.add(id=line["agentId"].text or line["sessionId"].text)
        self._enter_folder(line["cwd"].text)
        match line["type"].text:
            case "assistant":
                yield from self._read_answer(line)
            case "tool_result":
                yield from self._read_results(line)
            case "user":
                yield from self._read_user_line(line)
            case _:
                return

    def _read_user_line(self, line: JsonNode) -> Iterator[Event]:
        if line["subtype"] or line["provenance"].text not in {"", "real_user"}:
            return
        said = typed_text(
            line["systemPayload"]["displayText"].text or line["message"]["parts"].said
        )
        if said:
            self.heading.add(prompt=said)
            yield from self._to_model(line["timestamp"].time)

    def _read_answer(self, line: JsonNode) -> Iterator[Event]:
        parts, at = line["message"]["parts"], line["timestamp"].time
        if not parts:
            return
        tokens = line["usageMetadata"]["totalTokenCount"].count
        answer = yield from self._answer_for("", at, tokens=tokens)
        answer.say(JsonNode([part.value for part in parts if not part["thought"]]).said)
        calls = [part["functionCall"] for part in parts if part["functionCall"]]
        for call in calls:
            yield from self._open_call(answer, _TOOLS, call, call["args"], at)
        if not calls:
            yield from self._message_step()
            yield from self._to_person(at)

    def _read_results(self, line: JsonNode) -> Iterator[Step]:
        told = line["toolCallResult"]
        for part in line["message"]["parts"]:
            response = part["functionResponse"]
            key = response["id"].text or told["callId"].text
            step = self._calls.close(key) if response else None
            if step is not None:
                own = told if key == told["callId"].text else JsonNode()
                yield self._calls.number(_with_result(step, part, own, line))


def _with_result(step: Step, part: JsonNode, told: JsonNode, line: JsonNode) -> Step:
    output, shown = response_text(JsonNode([part.value])), told["resultDisplay"]
    failed = "error" in part["functionResponse"]["response"]
    failed = failed or told["status"].text not in {"", "success"}
    code: int | None = None
    if step.tool == _TOOLS.shell:
        found = _EXIT_CODE.search(output)
        code = shown["exitCode"].whole
        if found and not shown.is_object:
            code = int(found[1])
        # The text for the model contains the process id, which differs each time.
        output = shown["output"].text or shown.text or output
    ok = not failed and code in (None, 0)
    return finish_call(step, at=line["timestamp"].time, ok=ok, exit_code=code, output=output)
