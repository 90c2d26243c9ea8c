"""Events of the OpenHands server, 0.x: an `action` or an `observation` that names its `cause`."""

from midwatch_monitor.traces.node import Node
from midwatch_monitor.traces.openhands_act import CHANGES, Act, Answer, Command, Writing, exit_code

_NO_STEP = frozenset(
    {
        "change_agent_state",
        "condensation",
        "condensation_request",
        "loop_recovery",
        "null",
        "pause",
        "recall",
        "resume",
        "start",
        "stop",
        "system",
    }
)
_LAST_WORDS = frozenset({"finish", "message", "reject"})
"""Actions that nothing comes back for."""
_ASIDE = frozenset(
    {
        "agent",
        "blocking",
        "cwd",
        "confirmation_state",
        "file_urls",
        "hidden",
        "image_urls",
        "impl_source",
        "is_confirmed",
        "is_static",
        "keep_prompt",
        "kernel_init_code",
        "include_extra",
        "security_risk",
        "thought",
        "translated_ipython_code",
        "wait_for_response",
    }
)
"""Arguments that the server adds, or that say why: they make no act another one."""


def is_event(node: Node) -> bool:
    """Whether it is an event of this kind. SWE-agent's entries have both keys, and no source."""
    named = bool(node["action"].text) != bool(node["observation"].text)
    return named and ("source" in node or "cause" in node or "args" in node or "extras" in node)


def reading(event: Node) -> Act | Answer | None:
    """What an event says; `None` where it is no step and no result of one."""
    if event["observation"].text:
        return _answer(event)
    name = event["action"].text
    if not name or name in _NO_STEP or event["source"].text != "agent":
        return None
    return _act(event, name)


def _act(event: Node, name: str) -> Act:
    args, meta = event["args"], event["tool_call_metadata"]
    response = meta["model_response"]
    is_message = name == "message"
    return Act(
        key=_key(event["id"]),
        at=event["timestamp"].time,
        tool="" if is_message else meta["function_name"].text or name,
        args="" if is_message else _args(name, args),
        path=args["path"].text,
        text=args["content"].text if is_message else args["thought"].text,
        call=meta["tool_call_id"].text,
        response=response["id"].text,
        tokens=response["usage"]["total_tokens"].count,
        spent_usd=event["llm_metrics"]["accumulated_cost"].amount,
        doing=_doing(name, args),
        waits=name not in _LAST_WORDS,
    )


def _args(name: str, args: Node) -> str:
    if name == "run":
        return args["command"].text
    return args["code"].text if name == "run_ipython" else args.without(_ASIDE).canonical


def _doing(name: str, args: Node) -> Command | Writing | None:
    if name == "run":
        return None if args["is_input"] else Command(text=args["command"].text)
    if name == "write":
        return Writing(content=args["content"].text)
    if name != "edit":
        return None
    command = args["command"].text
    # Before there were commands, an `edit` was a draft of a part of the file.
    if command and command not in CHANGES:
        return None
    return Writing(content=args["file_text"].text if command == "create" else None)


def _answer(event: Node) -> Answer:
    extras, name = event["extras"], event["observation"].text
    code = extras["metadata"]["exit_code"].whole
    if code is None:
        code = extras["exit_code"].whole
    output = event["content"].text
    content = extras["new_content"]
    return Answer(
        keys=(_key(event["cause"]),),
        at=event["timestamp"].time,
        ok=_went_well(name, output),
        exit_code=exit_code(code) if name == "run" else None,
        output=output,
        content=content.text if isinstance(content.value, str) else None,
        cwd=extras["metadata"]["working_dir"].text,
    )


def _went_well(name: str, output: str) -> bool | None:
    if name in ("error", "user_rejected") or output.startswith("ERROR:"):
        return False
    return True if name in ("edit", "read", "write") else None


def _key(id: Node) -> str:
    return "" if id.value is None else id.canonical
