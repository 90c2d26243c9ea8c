"""Runs of SWE-agent (`.traj`): one step for each entry of the document's `trajectory`.

A command of SWE-agent's own interface is a tool of that name; everything else is `bash`. Exit codes
are not recorded, so success or refusal is known only from the interface's own messages.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.traces.foreign import JsonNode, Workplace, within
from midwatch_monitor.traces.json_stream import Damage, first_keys, items

_NAMING = frozenset({"open", "create"})
_OPEN_FILE = frozenset({"edit", "insert", "goto", "scroll_up", "scroll_down"})
_EDITOR = frozenset({"str_replace_editor", "edit_anthropic"})
_OWN = (
    _NAMING
    | _OPEN_FILE
    | _EDITOR
    | {"search_dir", "search_file", "find_file", "submit"}
    | {"exit_cost", "exit_context", "exit_format", "exit_error", "exit_forfeit", "exit_api"}
)
_HEADER = re.compile(r"^\[File: (.+) \(\d+ lines total\)\]", re.MULTILINE)
_REFUSED = re.compile(
    r"\s*(?:Usage:|Error:|Your proposed edit has introduced|No file open|Invalid |"
    r"(?:File|Directory) \S+ not found|The path .* does not exist|File already exists at|"
    r"No replacement was performed|EXECUTION (?:TIMED OUT|FAILED)|\S*/commands/\S+: line \d+:)"
)
_TIMED_OUT = re.compile(r"\s*EXECUTION (?:TIMED OUT|FAILED)")
_EDITED = re.compile(
    r"^(?:File updated\.|Text replaced\.|Inserted )|has been edited|File created successfully",
    re.MULTILINE,
)
_WORD = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|(\S+))")


def recognise(path: Path) -> bool:
    """Whether it is a document with a `trajectory` of actions, possibly empty."""
    keys = first_keys(path, "trajectory")
    if keys is None or "source" in keys:  # OpenHands also has trajectories of actions
        return False
    return not keys or "action" in keys


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the steps of a run lazily, in order."""
    run = _Run()
    for item in items(path, "trajectory"):
        yield item if isinstance(item, Damage) else run.step(item.number, item.node)


class _Run:
    """Reads one run: its folder and its open file."""

    def __init__(self) -> None:
        self._place = Workplace()
        self._open_file = ""

    def step(self, number: int, entry: JsonNode) -> Step:
        """Return an entry as a step."""
        state = entry["state"].decoded
        # A text is the state before the action (0.x), an object the state after it (1.x).
        before = not entry["state"].is_object
        if not self._place.root:
            self._place.enter(state["working_dir"].text)
        if before:
            self._read_state(state)
        step = self._make_step(_base_step(number, entry), entry["action"].text.strip())
        if not before:
            self._read_state(state)
        return step

    def _read_state(self, state: JsonNode) -> None:
        self._place.enter(state["working_dir"].text)
        open_file = state["open_file"].text
        self._open_file = "" if open_file == "n/a" else open_file or self._open_file

    def _make_step(self, turn: Step, action: str) -> Step:
        if not action:
            return turn
        word, rest = _split_action(action)
        if word not in _OWN:
            edits = self._place.run(action)
            ok = False if _TIMED_OUT.match(turn.output) else None
            return replace(turn, kind=StepKind.TOOL, tool="bash", args=action, ok=ok, edits=edits)
        path = self._command_path(word, rest, turn.output)
        ok = _outcome(word, rest, turn.output)
        edits = (Edit(path=path),) if ok and path and _writes_file(word, rest) else ()
        return replace(
            turn, kind=StepKind.TOOL, tool=word, args=rest, path=path, ok=ok, edits=edits
        )

    def _command_path(self, word: str, rest: str, output: str) -> str:
        """Return the file that a command is about: shown by the interface, named, or open."""
        if word in _NAMING | _OPEN_FILE and (shown := _HEADER.search(output)):
            return within(shown[1], self._place.root)
        words = _first_words(rest)
        named = ""
        if word in _NAMING:
            named = words[0] if words else ""
        elif word in _EDITOR or word == "search_file":
            named = words[1] if len(words) > 1 else ""
        if word in _OPEN_FILE | {"search_file"}:
            named = named or self._open_file
        return self._place.path(named)


def _base_step(number: int, entry: JsonNode) -> Step:
    """Return the common part of every entry: a message, whose output is a refusal."""
    return Step(
        number=number,
        kind=StepKind.MESSAGE,
        request=number,
        output=entry["observation"].text,
        text=entry["thought"].text or entry["response"].text,
    )


def _split_action(action: str) -> tuple[str, str]:
    word = action.split(maxsplit=1)[0]
    return word, action[len(word) :].strip()


def _first_words(rest: str) -> tuple[str, ...]:
    """Return the first two words of a command's arguments, without quotes."""
    first = _WORD.match(rest)
    second = _WORD.match(rest, first.end()) if first else None
    return tuple(match[match.lastindex or 0] for match in (first, second) if match)


def _writes_file(word: str, rest: str) -> bool:
    if word in _EDITOR:
        return rest.startswith(("create", "str_replace", "insert", "undo_edit"))
    return word in ("edit", "insert", "create")


def _outcome(word: str, rest: str, output: str) -> bool | None:
    """Return whether an interface command succeeded, if the interface says so."""
    if _REFUSED.match(output):
        return False
    if word in ("create", "open") and _HEADER.search(output):
        return True
    if _writes_file(word, rest) and _EDITED.search(output):
        return True
    return None
