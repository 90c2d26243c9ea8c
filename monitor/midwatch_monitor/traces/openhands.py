"""Conversations of OpenHands: events of the 0.x server and of the SDK (1.x).

A file is one JSON array of events, a document that contains one (as `trajectory`, `history`,
`events` or `items`), or one event a line. One step for each action of the agent, and for each
message without one. People's messages, recalls and changes of state are not steps. A 1.x
conversation stored as a folder of `event-*.json` files is not read: join them into one file, one
event a line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.traces.foreign import CallNumbers, JsonNode, TraceItem, Workplace
from midwatch_monitor.traces.json_stream import Damage, first_items, first_lines, items, lines
from midwatch_monitor.traces.tool_calls import finish_call

ActionEffect = Callable[[Workplace, str], tuple[Edit, ...]]
"""Returns what an action changes if it succeeds."""


def _no_edits(_place: Workplace, _path: str) -> tuple[Edit, ...]:
    return ()


def _write_effect(content: str | None = None) -> ActionEffect:
    """Return the effect of changing a file, with its complete content if the action has it."""
    return lambda place, path: place.write(path, content)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAction:
    """An action of the agent; without a tool it is a message."""

    step: Step
    """As reported: with the given path, and the tokens of the whole answer."""
    key: str
    """The key with which its result refers to it."""
    response: str = ""
    """Id of the model's answer that it came with; empty if unknown."""
    spent_usd: float = 0.0
    """Cost of the whole run up to this action."""
    effect: ActionEffect = _no_edits
    waits: bool = True
    """Whether a result will follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of an action."""

    keys: tuple[str, ...]
    """Keys of the action, best first."""
    at: datetime | None = None
    ok: bool | None = None
    exit_code: int | None = None
    output: str = ""
    content: str | None = None
    """Complete content of the changed file."""
    cwd: str = ""
    """The shell's folder after the action."""


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


def _whole_content(changed: JsonNode) -> str | None:
    """Return a file's complete content, if it is given."""
    return changed.text if isinstance(changed.value, str) else None


_SHELLS = frozenset({"terminal", "execute_bash", "bash"})
_EDITORS = frozenset({"file_editor", "str_replace_editor", "planning_file_editor"})
_OTHERS = frozenset({"Condensation", "CondensationRequest", "UserRejectObservation"})
_SDK_ASIDE = frozenset({"kind", "security_risk", "summary"})
"""Fields of an action that do not distinguish it."""


def _is_sdk_event(node: JsonNode) -> bool:
    """Whether it is an event of the SDK: its class is named `…Event`, with few exceptions."""
    kind = node["kind"].text
    return kind in _OTHERS or (kind.endswith("Event") and kind != "Event")


def _read_sdk(event: JsonNode) -> AgentAction | ActionResult | None:
    """Return an event's action or result; `None` if it is neither."""
    match event["kind"].text:
        case "ActionEvent":
            return _sdk_act(event)
        case "MessageEvent" if event["source"].text == "agent":
            return _sdk_message(event)
        case "ObservationEvent":
            return _sdk_answer(event)
        case "AgentErrorEvent":
            return _sdk_refusal(event, event["error"].text)
        case "UserRejectObservation":
            return _sdk_refusal(event, event["rejection_reason"].text)
        case _:
            return None


def _sdk_act(event: JsonNode) -> AgentAction:
    action, tool = event["action"], event["tool_name"].text or event["tool_call"]["name"].text
    # An invalid action exists only as the model wrote it.
    given = action if action.is_object else event["tool_call"]["arguments"].decoded
    is_command = tool in _SHELLS
    return AgentAction(
        step=Step(
            number=0,
            kind=StepKind.TOOL if tool else StepKind.MESSAGE,
            at=event["timestamp"].time,
            tool=tool,
            args=given["command"].text if is_command else given.without(_SDK_ASIDE).canonical,
            path=given["path"].text or given["file_path"].text,
            text=event["thought"].said,
            call=event["tool_call_id"].text,
        ),
        key=event["tool_call_id"].text or event["id"].text,
        response=event["llm_response_id"].text,
        effect=_call_effect(given, command=is_command, editor=tool in _EDITORS),
    )


def _sdk_message(event: JsonNode) -> AgentAction:
    return AgentAction(
        step=Step(
            number=0,
            kind=StepKind.MESSAGE,
            at=event["timestamp"].time,
            text=event["llm_message"]["content"].said,
        ),
        key=event["tool_call_id"].text or event["id"].text,
        response=event["llm_response_id"].text,
        waits=False,
    )


def _sdk_answer(event: JsonNode) -> ActionResult:
    seen = event["observation"]
    failed = bool(seen["is_error"] or seen["error"].text)
    return ActionResult(
        keys=(event["tool_call_id"].text, event["action_id"].text),
        at=event["timestamp"].time,
        ok=not failed,
        exit_code=_exit_code(seen),
        output=seen["content"].said or seen["output"].text or seen["error"].text,
        content=_whole_content(seen["new_content"]),
        cwd=seen["metadata"]["working_dir"].text,
    )


def _sdk_refusal(event: JsonNode, reason: str) -> ActionResult:
    keys = event["tool_call_id"].text, event["action_id"].text
    return ActionResult(keys=keys, at=event["timestamp"].time, ok=False, output=reason)


_NO_STEP = frozenset(
    (
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


def _read_server(event: JsonNode) -> AgentAction | ActionResult | None:
    """Return an event's action or result; `None` if it is neither."""
    if event["observation"].text:
        return _server_answer(event)
    name = event["action"].text
    if not name or name in _NO_STEP or event["source"].text != "agent":
        return None
    return _server_act(event, name)


def _server_act(event: JsonNode, name: str) -> AgentAction:
    args, meta = event["args"], event["tool_call_metadata"]
    response = meta["model_response"]
    is_message = name == "message"
    return AgentAction(
        step=Step(
            number=0,
            kind=StepKind.MESSAGE if is_message else StepKind.TOOL,
            at=event["timestamp"].time,
            tool="" if is_message else meta["function_name"].text or name,
            args="" if is_message else _server_args(name, args),
            path=args["path"].text,
            text=args["content"].text if is_message else args["thought"].text,
            tokens=response["usage"]["total_tokens"].count,
            call=meta["tool_call_id"].text,
        ),
        key=_server_key(event["id"]),
        response=response["id"].text,
        spent_usd=event["llm_metrics"]["accumulated_cost"].amount,
        effect=_server_effect(name, args),
        waits=name not in _LAST_WORDS,
    )


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


def _server_answer(event: JsonNode) -> ActionResult:
    extras, name = event["extras"], event["observation"].text
    output = event["content"].text
    return ActionResult(
        keys=(_server_key(event["cause"]),),
        at=event["timestamp"].time,
        ok=_success_of(name, output),
        exit_code=_exit_code(extras) if name == "run" else None,
        output=output,
        content=_whole_content(extras["new_content"]),
        cwd=extras["metadata"]["working_dir"].text,
    )


def _success_of(name: str, output: str) -> bool | None:
    if name in ("error", "user_rejected") or output.startswith("ERROR:"):
        return False
    return True if name in ("edit", "read", "write") else None


def _server_key(id: JsonNode) -> str:
    return "" if id.value is None else id.canonical


_ARRAYS = ("", "trajectory", "history", "events", "items")
_LOOKED_AT = 200
"""Number of events searched for the working folder before the first one is read."""
_RECOGNISED_BY = 20
"""One of this many first events must be known."""


def recognise(path: Path) -> bool:
    """Whether the head of the file contains events of either kind."""
    if _events_key(path) is not None:
        return True
    return any(_is_event(line) for line in islice(first_lines(path), _RECOGNISED_BY))


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the steps of a conversation lazily, in order of completion."""
    array = _events_key(path)
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
        sdk = _is_sdk_event(event)
        match _read_sdk(event) if sdk else _read_server(event):
            case AgentAction() as act:
                yield from self._read_action(act)
            case ActionResult() as answer:
                yield from self._read_result(answer)
            case None:
                return

    def finish(self) -> Iterator[Step]:
        """Yield the steps still open at the end."""
        return self._calls.rest()

    def _read_action(self, act: AgentAction) -> Iterator[Step]:
        if self._calls.knows(act.key):
            return
        first = not act.response or act.response != self._response
        self._requests += first
        self._response = act.response
        spent, self._spent = self._spent, max(act.spent_usd, self._spent)
        step = replace(
            act.step,
            request=self._requests,
            path=self._place.path(act.step.path),
            edits=act.effect(self._place, act.step.path),
            tokens=act.step.tokens if first else 0,
            cost_usd=self._spent - spent,
        )
        if act.waits:
            yield from self._calls.open(act.key, step)
        else:
            yield self._calls.number(step)

    def _read_result(self, answer: ActionResult) -> Iterator[Step]:
        keys = tuple(filter(None, answer.keys)) or ("",)
        step = next(filter(None, map(self._calls.close, keys)), None)
        if self._place.root:
            self._place.enter(answer.cwd)
        if step is None:
            return
        code, output = answer.exit_code, answer.output
        ok = code == 0 if code is not None else answer.ok
        done = finish_call(step, at=answer.at, ok=ok, exit_code=code, output=output)
        if len(done.edits) == 1 and answer.content is not None:
            done = replace(done, edits=(replace(done.edits[0], digest=digest(answer.content)),))
        yield self._calls.number(done)


def _events_key(path: Path) -> str | None:
    """Return the key of the document's array of events, if the file is such a document."""
    for array in _ARRAYS:
        if any(_is_event(node) for node in islice(first_items(path, array), _RECOGNISED_BY)):
            return array
    return None


def _events(path: Path, array: str | None) -> Iterator[TraceItem | Damage]:
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
