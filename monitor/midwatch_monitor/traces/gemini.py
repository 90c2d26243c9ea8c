"""Sessions of Gemini CLI (`session-*.jsonl`), also as single documents (`*.json`).

One step for each tool call, and for each answer without one. A message is written again under its
id when more of it is known; the last version counts. Calls are written once they have ended, so an
answer whose calls still run looks like one without a call: it ends its turn until a call appears.
Patches (`$set`, `$rewindTo`) are not steps: something undone later was still done.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path

from midwatch_monitor.records import Event, Step
from midwatch_monitor.traces.foreign import JsonNode, ModelAnswer, Tools, TraceItem, finish_call
from midwatch_monitor.traces.json_stream import (
    Damage,
    first_keys,
    first_lines,
    items,
    text_at,
)
from midwatch_monitor.traces.session_reader import (
    DocumentTail,
    SessionReader,
    SessionTail,
    Tail,
    read_items,
    read_session,
    typed_text,
)

_TOOLS = Tools(
    shell="run_shell_command",
    writing=frozenset({"replace", "write_file"}),
    whole="write_file",
    folder="dir_path",
)
_ENDED = frozenset({"success", "error", "cancelled"})
_EXIT_CODE = re.compile(r"^Exit Code: (\d+)\s+(?:Signal|Background|Process|</|\Z)", re.MULTILINE)
_MESSAGES = "messages"
_MAX_ROOT = 4096
"""Longest path of a folder that is read, in characters."""


def recognise(path: Path) -> bool:
    """Whether the head of the file has a line with `projectHash`, or a message of `gemini`."""
    return _is_document(path) or any(
        "projectHash" in line or (line["type"].text == "gemini" and "content" in line)
        for line in first_lines(path)
    )


def _is_document(path: Path) -> bool:
    """Whether it is one document with all messages, the way older versions store sessions."""
    return first_keys(path, _MESSAGES) is not None and bool(text_at(path, "projectHash"))


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the events of a session."""
    reader = GeminiSession(folder=project_folder(path))
    if not _is_document(path):
        yield from read_session(path, reader)
        return
    begin = TraceItem(number=0, node=_head_of(path))
    yield from read_items(chain([begin], items(path, _MESSAGES)), reader)


def head(path: Path) -> Iterator[JsonNode]:
    """Return the first lines of a session, or the metadata of its document."""
    return iter([_head_of(path)]) if _is_document(path) else first_lines(path)


def tail(path: Path) -> SessionTail:
    """Return a follower of a session that is still being written."""
    if _is_document(path):
        return DocumentTail(path, _MESSAGES, _head_of(path))
    return Tail(path)


def _head_of(path: Path) -> JsonNode:
    keys = ("sessionId", "projectHash", "kind")
    return JsonNode({key: text_at(path, key) for key in keys})


def project_folder(path: Path) -> str:
    """Return a session's folder from the `.project_root` beside `chats`; empty if unknown."""
    for folder in path.absolute().parents[1:3]:
        try:
            with (folder / ".project_root").open(encoding="utf-8") as file:
                return file.read(_MAX_ROOT).strip()
        except (OSError, UnicodeDecodeError):
            continue
    return ""


class GeminiSession(SessionReader):
    """Reads one session. `folder` is where it works, which its lines do not say."""

    def take(self, line: JsonNode) -> Iterator[Event]:
        match line["type"].text:
            case "gemini":
                yield from self._read_answer(line)
            case "user":
                yield from self._read_user_line(line)
            case _ if "projectHash" in line:
                self._read_header(line)
            case _:
                return

    def _read_header(self, line: JsonNode) -> None:
        folder = next((each.text for each in line["directories"]), "")
        self.heading.add(id=line["sessionId"].text)
        self._enter_folder(self.heading.folder or folder)

    def _read_user_line(self, line: JsonNode) -> Iterator[Event]:
        yield from self._message_step()
        if any("functionResponse" in part for part in line["content"]):
            return
        said = typed_text((line["displayContent"] or line["content"]).said)
        if said:
            self.heading.add(prompt=said)
            yield from self._to_model(line["timestamp"].time)

    def _read_answer(self, line: JsonNode) -> Iterator[Event]:
        key, at = line["id"].text, line["timestamp"].time
        answer = yield from self._answer_for(key, at)
        if not answer.called:
            said, tokens = line["content"].said, line["tokens"]["total"].count
            answer.step = replace(answer.step, text=said, tokens=tokens)
        if line["toolCalls"]:
            yield from self._to_model(at)
            for call in line["toolCalls"]:
                yield from self._read_call(answer, call, call["timestamp"].time or at)
        elif answer.step.text and not answer.called:
            yield from self._to_person(at)

    def _read_call(
        self, answer: ModelAnswer, call: JsonNode, at: datetime | None
    ) -> Iterator[Step]:
        yield from self._open_call(answer, _TOOLS, call, call["args"], at)
        if call["status"].text in _ENDED and (step := self._calls.close(call["id"].text)):
            yield self._calls.number(_with_result(step, call, at))


def response_text(parts: JsonNode) -> str:
    """Return what the model is told about a call, from the parts of a message."""
    responses = (part["functionResponse"]["response"] for part in parts)
    return "\n".join(
        filter(None, (each["output"].said or each["error"].said for each in responses))
    )


def _with_result(step: Step, call: JsonNode, at: datetime | None) -> Step:
    told, shown = response_text(call["result"]), call["resultDisplay"].text
    failed, shell = call["status"].text != "success", step.tool == _TOOLS.shell
    found = _EXIT_CODE.search(told) if shell else None
    code = int(found[1]) if found else None
    if shell and not failed and not call["args"]["is_background"]:
        code = code or 0  # only other exit codes are reported
    ok = not failed and code in (None, 0)
    # The text for the model contains the process id, which differs each time.
    output = (shell and shown) or told or shown
    return finish_call(step, at=at, ok=ok, exit_code=code, output=output)
