"""Conversations of OpenHands: events of the 0.x server and of the SDK (1.x).

A file is one JSON array of events, a document that contains one (as `trajectory`, `history`,
`events` or `items`), or one event a line; or a folder has a file `event-*.json` for each event, in
the order of their names. One step for each action of the agent, and for each
message without one. People's messages, recalls and changes of state are not steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.traces.foreign import CallNumbers, JsonNode, TraceItem, Workplace, finish_call
from midwatch_monitor.traces.json_stream import (
    Damage,
    document,
    first_items,
    first_lines,
    items,
    lines,
)

ActionEffect = Callable[[Workplace, str], tuple[Edit, ...]]
"""Returns what an action changes if it succeeds."""


def _no_edits(_place: Workplace, _path: str) -> tuple[Edit, ...]:
    return ()


def _write_effect(content: str | None = None) -> ActionEffect:
    """Return the effect of changing a file, with its complete content if the action has it."""
    return lambda place, path: place.write(path, content)


_CHANGES = frozenset({"create", "str_replace", "insert", "undo_edit"})
"""The file editor's commands that write."""


def _call_effect(given: JsonNode, *, command: bool, editor: bool) -> ActionEffect:
    """Return what a call to the shell or an editor changes if it succeeds."""
    word = given["command"].text
    if command:
        return _no_edits if given["is_input"] else lambda place, _: place.run(word)
    if not editor or word not in _CHANGES:
        return _no_edits
    return _write_effect(given["file_text"].text if word == "create" else None)


def _exit_code(seen: JsonNode) -> int | None:
    """Return the exit code of a command; -1 means that it is still running."""
    code, other = seen["exit_code"].whole, seen["metadata"]["exit_code"].whole
    code = other if code is None else code
    return None if code == -1 else code


_SHELLS = frozenset({"terminal", "execute_bash", "bash"})
_EDITORS = frozenset({"file_editor", "str_replace_editor", "planning_file_editor"})
_OTHERS = frozenset({"Condensation", "CondensationRequest", "UserRejectObservation"})
_SDK_ASIDE = frozenset({"kind", "security_risk", "summary"})
"""Fields of an action that do not distinguish it."""


def _is_sdk_event(node: JsonNode) -> bool:
    """Whether it is an event of the SDK: its class is named `…Event`, with few exceptions."""
    kind = node["kind"].text
    return kind in _OTHERS or (kind.endswith("Event") and kind != "Event")


_NO_STEP = frozenset(
    (
        "",
        *("change_agent_state", "condensation", "condensation_request", "loop_recovery", "null"),
        *("pause", "recall", "resume", "start", "stop", "system"),
    )
)
_LAST_WORDS = frozenset({"finish", "message", "reject"})
"""Actions without a result."""
_SERVER_ASIDE = frozenset(
    (
        *("agent", "blocking", "cwd", "confirmation_state", "file_urls", "hidden", "image_urls"),
        *("impl_source", "is_confirmed", "is_static", "keep_prompt", "kernel_init_code"),
        *("include_extra", "security_risk", "thought", "translated_ipython_code"),
        "wait_for_response",
    )
)
"""Arguments that the server adds or that give a reason: they do not distinguish an act."""


def _is_server_event(node: JsonNode) -> bool:
    """Whether it is an event of the server. SWE-agent's entries have both keys, but no source."""
    named = bool(node["action"].text) != bool(node["observation"].text)
    return named and ("source" in node or "cause" in node or "args" in node or "extras" in node)


def _server_args(name: str, args: JsonNode) -> str:
    if name == "run":
        return args["command"].text
    return args["code"].text if name == "run_ipython" else args.without(_SERVER_ASIDE).canonical


def _server_effect(name: str, args: JsonNode) -> ActionEffect:
    if name == "write":
        return _write_effect(args["content"].text)
    # In versions without commands, an `edit` was a draft of part of the file.
    if name == "edit" and not args["command"].text:
        return _write_effect()
    return _call_effect(args, command=name == "run", editor=name == "edit")


def _success_of(name: str, output: str) -> bool | None:
    if name in ("error", "user_rejected") or output.startswith("ERROR:"):
        return False
    return True if name in ("edit", "read", "write") else None


def _server_key(id: JsonNode) -> str:
    return "" if id.value is None else id.canonical


def _sdk_key(event: JsonNode) -> str:
    return event["tool_call_id"].text or event["id"].text


_ARRAYS = ("", "trajectory", "history", "events", "items")
_LOOKED_AT = 200
"""Number of events searched for the working folder before the first one is read."""
_RECOGNISED_BY = 20
"""One of this many first events must be known."""


def recognise(path: Path) -> bool:
    """Whether the head of the file or folder contains events of either kind."""
    if path.is_dir():
        first = (each.node for each in _folder_events(path) if isinstance(each, TraceItem))
    elif _events_key(path) is not None:
        return True
    else:
        first = first_lines(path)
    return any(map(_is_event, islice(first, _RECOGNISED_BY)))


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the steps of a conversation lazily, in order of completion."""
    array = None if path.is_dir() else _events_key(path)
    run = _Run(_root_folder(path, array))
    for item in _events(path, array):
        if isinstance(item, Damage):
            yield item
        else:
            yield from run.take(item.node)
    yield from run.finish()


class _Run:
    """Reads one conversation."""

    def __init__(self, root: str) -> None:
        self._place = Workplace(root)
        self._calls = CallNumbers()
        self._requests = 0
        self._response = ""
        self._spent = 0.0

    def take(self, event: JsonNode) -> Iterator[Step]:
        """Yield the steps that this event completes."""
        if _is_sdk_event(event):
            yield from self._take_sdk_event(event)
        elif event["observation"].text:
            yield from self._read_observation(event)
        elif event["source"].text == "agent" and event["action"].text not in _NO_STEP:
            yield from self._read_server_action(event, event["action"].text)

    def finish(self) -> Iterator[Step]:
        """Yield the steps still open at the end."""
        return self._calls.rest()

    def _take_sdk_event(self, event: JsonNode) -> Iterator[Step]:
        match event["kind"].text:
            case "ActionEvent":
                yield from self._read_sdk_action(event)
            case "MessageEvent" if event["source"].text == "agent":
                text = event["llm_message"]["content"].said
                step = Step(number=0, kind=StepKind.MESSAGE, at=event["timestamp"].time, text=text)
                yield from self._act(step, _sdk_key(event), response=event["llm_response_id"].text)
            case "ObservationEvent":
                seen = event["observation"]
                output = seen["content"].said or seen["output"].text or seen["error"].text
                code, ok = _exit_code(seen), not (seen["is_error"] or seen["error"].text)
                yield from self._end_call(event, seen, ok=ok, exit_code=code, output=output)
            case "AgentErrorEvent" | "UserRejectObservation":
                reason = event["error"].text or event["rejection_reason"].text
                yield from self._end_call(event, JsonNode(), ok=False, output=reason)
            case _:
                return

    def _read_sdk_action(self, event: JsonNode) -> Iterator[Step]:
        action, tool = event["action"], event["tool_name"].text or event["tool_call"]["name"].text
        # An invalid action exists only as the model wrote it.
        given = action if action.is_object else event["tool_call"]["arguments"].decoded
        is_command = tool in _SHELLS
        step = Step(
            number=0,
            kind=StepKind.TOOL if tool else StepKind.MESSAGE,
            at=event["timestamp"].time,
            tool=tool,
            args=given["command"].text if is_command else given.without(_SDK_ASIDE).canonical,
            path=given["path"].text or given["file_path"].text,
            text=event["thought"].said,
            call=event["tool_call_id"].text,
        )
        effect = _call_effect(given, command=is_command, editor=tool in _EDITORS)
        response = event["llm_response_id"].text
        yield from self._act(step, _sdk_key(event), response=response, effect=effect)

    def _read_server_action(self, event: JsonNode, name: str) -> Iterator[Step]:
        args, meta = event["args"], event["tool_call_metadata"]
        response, is_message = meta["model_response"], name == "message"
        step = Step(
            number=0,
            kind=StepKind.MESSAGE if is_message else StepKind.TOOL,
            at=event["timestamp"].time,
            tool="" if is_message else meta["function_name"].text or name,
            args="" if is_message else _server_args(name, args),
            path=args["path"].text,
            text=args["content"].text if is_message else args["thought"].text,
            tokens=response["usage"]["total_tokens"].count,
            call=meta["tool_call_id"].text,
        )
        yield from self._act(
            step,
            _server_key(event["id"]),
            response=response["id"].text,
            spent=event["llm_metrics"]["accumulated_cost"].amount,
            effect=None if name in _LAST_WORDS else _server_effect(name, args),
        )

    def _read_observation(self, event: JsonNode) -> Iterator[Step]:
        name, output, extras = event["observation"].text, event["content"].text, event["extras"]
        code, ok = _exit_code(extras) if name == "run" else None, _success_of(name, output)
        yield from self._end_call(event, extras, ok=ok, exit_code=code, output=output)

    def _act(
        self,
        act: Step,
        key: str,
        *,
        response: str,
        spent: float = 0.0,
        effect: ActionEffect | None = None,
    ) -> Iterator[Step]:
        """Take in an action as reported, with the tokens of the whole answer that it came with.

        `response` is that answer's id, if it is known; `spent` the cost in USD of the whole run.
        Without an effect, no result will follow.
        """
        if self._calls.knows(key):
            return
        first = not response or response != self._response
        self._requests += first
        self._response = response
        before, self._spent = self._spent, max(spent, self._spent)
        step = replace(
            act,
            request=self._requests,
            path=self._place.path(act.path),
            edits=effect(self._place, act.path) if effect else (),
            tokens=act.tokens if first else 0,
            cost_usd=self._spent - before,
        )
        if effect:
            yield from self._calls.open(key, step)
        else:
            yield self._calls.number(step)

    def _end_call(
        self,
        event: JsonNode,
        seen: JsonNode,
        *,
        ok: bool | None,
        exit_code: int | None = None,
        output: str,
    ) -> Iterator[Step]:
        """Take in the result of an action; `seen` are the details of what was observed."""
        named = event["tool_call_id"].text, event["action_id"].text, _server_key(event["cause"])
        step = next(filter(None, map(self._calls.close, filter(None, named))), None)
        if not any(named):
            step = self._calls.close("")
        if self._place.root:
            self._place.enter(seen["metadata"]["working_dir"].text)
        if step is None:
            return
        ok = exit_code == 0 if exit_code is not None else ok
        at = event["timestamp"].time
        done = finish_call(step, at=at, ok=ok, exit_code=exit_code, output=output)
        content = seen["new_content"]
        if len(done.edits) == 1 and isinstance(content.value, str):
            done = replace(done, edits=(replace(done.edits[0], digest=digest(content.text)),))
        yield self._calls.number(done)


def _events_key(path: Path) -> str | None:
    """Return the key of the document's array of events, if the file is such a document."""
    for array in _ARRAYS:
        if any(_is_event(node) for node in islice(first_items(path, array), _RECOGNISED_BY)):
            return array
    return None


def _folder_events(folder: Path) -> Iterator[TraceItem | Damage]:
    """Yield the events of the files in a folder; a `Damage` has the number of the file."""
    found = sorted(each for each in folder.glob("event-*.json") if each.is_file())
    for number, path in enumerate(found, 1):
        yield document(path, number)


def _events(path: Path, array: str | None) -> Iterator[TraceItem | Damage]:
    if path.is_dir():
        return _folder_events(path)
    return lines(path) if array is None else items(path, array)


def _is_event(node: JsonNode) -> bool:
    return _is_sdk_event(node) or _is_server_event(node)


def _root_folder(path: Path, array: str | None) -> str:
    """Return the folder of the first command; later paths are relative to it."""
    for item in islice(_events(path, array), _LOOKED_AT):
        if isinstance(item, TraceItem):
            for observed in (item.node["observation"], item.node["extras"]):
                if folder := observed["metadata"]["working_dir"].text:
                    return folder
    return ""
