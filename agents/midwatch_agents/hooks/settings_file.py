"""Adds Midwatch's hooks to an agent's settings, and removes them.

Pure: takes the text of a file and returns the new text. Everything else stays in place.
"""

import json
import re
import shlex
from pathlib import Path
from typing import cast

from midwatch_agents.hooks.adapters import HookAdapter
from midwatch_monitor.errors import UsageError
from midwatch_monitor.traces.foreign import JsonNode

_TIMEOUT = 5
"""Seconds that an agent waits for a hook. Ours ends earlier."""

Json = dict[str, object]


def install_hooks(text: str | None, adapter: HookAdapter, command: str) -> str:
    """Return settings that call `command` at the agent's events; `None` means no settings yet.

    If exactly these entries already exist, the text is returned unchanged; other entries of ours
    are replaced. Raises UsageError for settings that cannot be rewritten without loss.
    """
    entry = _entry(adapter, command)
    settings = _parse(text or "", adapter, command)
    groups = [(event, each) for event, found in _groups(settings).items() for each in found]
    ours = [(event, each) for event, each in groups if _calls_us(each, adapter)]
    if len(ours) == len(adapter.events) and dict(ours) == dict.fromkeys(adapter.events, entry):
        return text or ""
    _take_out(settings, adapter)
    hooks = _groups(settings)
    for event in adapter.events:
        hooks.setdefault(event, []).append(entry)
    return _write(settings | {"hooks": hooks}, text)


def uninstall_hooks(text: str | None, adapter: HookAdapter) -> str | None:
    """Return the settings without our entries and whatever that leaves empty.

    `None` if nothing is left of a file that `install_hooks` created. Raises UsageError for settings
    that cannot be rewritten without loss.
    """
    if text is None:
        return None
    settings = _parse(text, adapter, "")
    blank = text[len(text.rstrip()) :]
    made_anew, was_blank = (text == _write(settings, each) for each in (None, blank))
    if not _take_out(settings, adapter):
        return text
    if settings or not (made_anew or was_blank):
        return _write(settings, text)
    return None if made_anew else blank


def called_programs(text: str, adapter: HookAdapter) -> list[str]:
    """Return the program of each hook in the settings that calls Midwatch. Raises UsageError if
    they cannot be read.
    """
    groups = (JsonNode(e) for found in _groups(_parse(text, adapter, "")).values() for e in found)
    calls = (_hook_program(hook.value, adapter) for group in groups for hook in group["hooks"])
    return [each for each in calls if each]


def hooks_switch(text: str, adapter: HookAdapter) -> str:
    """Return the name of the setting that turns all hooks off; empty if none does. Raises
    UsageError if they cannot be read.
    """
    settings = JsonNode(_parse(text, adapter, ""))
    if settings["disableAllHooks"].value is True:
        return "disableAllHooks"
    return "hooksConfig.enabled" if settings["hooksConfig"]["enabled"].value is False else ""


def _entry(adapter: HookAdapter, command: str) -> Json:
    timeout = _TIMEOUT * 1000 if adapter.timeout_in_ms else _TIMEOUT
    hook: Json = {"type": "command", "command": command, "timeout": timeout}
    return {"matcher": adapter.matcher, "hooks": [hook]}


def _parse(text: str, adapter: HookAdapter, command: str) -> Json:
    if not text.strip():
        return {}
    try:
        settings: Json = json.loads(text, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        raise _refusal(f"are not plain JSON ({error})", adapter, command) from error
    if not JsonNode(settings).is_object:
        raise _refusal("are not a JSON object", adapter, command)
    hooks = JsonNode(settings.get("hooks", {}))
    if not hooks.is_object or not all(isinstance(each, list) for each in hooks.members.values()):
        raise _refusal("have `hooks` in an unknown layout", adapter, command)
    return settings


def _without_twins(pairs: list[tuple[str, object]]) -> Json:
    """Return an object. Raises ValueError for a repeated key, whose first value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def _refusal(why: str, adapter: HookAdapter, command: str) -> UsageError:
    """Return the error that says what to do by hand: add our entry if `command` is given, else
    remove it.
    """
    if not command:
        return UsageError(
            f"the settings {why}; remove the hooks that call `{_command_of(adapter)}` by hand"
        )
    entry = json.dumps(_entry(adapter, command))
    events = ", ".join(adapter.events)
    return UsageError(f"the settings {why}; add by hand to each of {events} in `hooks`: {entry}")


def _groups(settings: Json) -> dict[str, list[object]]:
    return cast("dict[str, list[object]]", settings.get("hooks", {}))


def _command_of(adapter: HookAdapter) -> str:
    return f"midwatch hook {adapter.name}"


def _hook_program(hook: object, adapter: HookAdapter) -> str:
    """Return the program of a hook whose command is a program named `midwatch`, quoted or not, with
    exactly our arguments; empty for any other hook.
    """
    called, _, none_behind = JsonNode(hook)["command"].text.partition(f" hook {adapter.name}")
    try:
        (program,) = shlex.split(called)
    except ValueError:  # several words, or an unclosed quote
        return ""
    ways = {shlex.quote(program), f'"{program}"', f"'{program}'"}
    ours = not none_behind and called in ways and Path(program).name == "midwatch"
    return program if ours else ""


def _calls_us(group: object, adapter: HookAdapter) -> bool:
    return any(_hook_program(hook.value, adapter) for hook in JsonNode(group)["hooks"])


def _take_out(settings: Json, adapter: HookAdapter) -> bool:
    """Remove our entries and what becomes empty; return whether there were any."""
    hooks = _groups(settings)
    found = [event for event, groups in hooks.items() if any(_calls_us(g, adapter) for g in groups)]
    for event in found:
        hooks[event] = [left for group in hooks[event] for left in _without_ours(group, adapter)]
        if not hooks[event]:
            del hooks[event]
    if found and not hooks:
        del settings["hooks"]
    return bool(found)


def _without_ours(group: object, adapter: HookAdapter) -> list[object]:
    """Return a group without our hook; nothing if it has no other."""
    if not _calls_us(group, adapter):
        return [group]
    left = [
        hook.value for hook in JsonNode(group)["hooks"] if not _hook_program(hook.value, adapter)
    ]
    return [{**JsonNode(group).members, "hooks": left}] if left else []


def _write(settings: Json, before: str | None) -> str:
    """Return JSON with the layout of the previous text: its indentation, escapes and line ends.

    A new file, a file that was blank and an object that was empty are indented differently, so that
    they can be told apart.
    """
    if before is None:
        return json.dumps(settings, indent="  ", ensure_ascii=False) + "\n"
    found = re.search(r"^\{\r?\n([ \t]+)", before.lstrip())
    anew = "    " if before.strip() else "   "
    indent = found[1] if found else None if before.strip()[1:].strip(" \r\n}") else anew
    text = json.dumps(settings, indent=indent, ensure_ascii=before.isascii())
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    return text + before[len(before.rstrip()) :]
