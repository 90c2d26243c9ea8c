"""The edits that a call claims in its name and arguments, and how tools refuse them."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import cast

from midwatch_monitor.patterns import PatternSet
from midwatch_monitor.records import Edit
from midwatch_monitor.shell.target import patch_blocks, patched_files, without_components


def digest(content: str) -> str:
    """Return the hexadecimal digest of a content as UTF-8."""
    return blake2b(content.encode(errors="replace"), digest_size=16).hexdigest()


CallArguments = Mapping[str, object] | str
"""The arguments of a call: an object, or any other text."""

_LONGEST = 80
"""Characters of a name that are considered."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PART = frozenset(
    {"append", "edit", "editor", "insert", "modify", "multiedit", "patch", "replace", "update"}
)
"""Words in the names of tools that change only part of a file."""
_DELETING = frozenset({"delete", "remove"})
_CHANGING = _PART | _DELETING | {"create", "overwrite", "save", "write"}
_LOOKING = frozenset(
    {"check", "find", "get", "grep", "list", "open", "preview", "read", "search", "show", "view"}
)
_NO_FILE = frozenset({"dir", "directory", "folder"})
_BESIDE = frozenset(
    {"anthropic", "apply", "based", "block", "code", "diff", "file", "in", "line", "lines"}
    | {"multi", "notebook", "search", "str", "string", "text", "to", "tool", "undo"}
)
"""Other words that a file tool's name may contain; `create_issue` contains yet another."""

_PATH_KEYS = (
    *("path", "file_path", "filename", "file", "target_file", "notebook_path"),
    *("filepath", "filePath"),
)
_PATCH_KEYS = ("patch", "diff", "input", "patch_text", "patchText")
_CONTENT_KEYS = ("file_text", "content", "contents")
_OLD_KEYS = ("old_str", "old_string", "old", "search", "old_text")
_NEW_KEYS = ("new_str", "new_string", "new", "replace", "new_text")
_ADDING = frozenset({"append", "insert"})
_ONE_LINE = re.compile(r"(\d+):\1\b")
_APPENDING = re.compile(r"[^\n]*>>")
_WRITING = re.compile(r"(?<![>&\d-])>(?![>&=])")


def claims_edit(tool: str, args: CallArguments) -> bool:
    """Whether a call says that it changes a file, judging by its tool or an editor's command."""
    return changing(tool) and not _only_looks(tool, args)


def claimed_edits(tool: str, args: CallArguments) -> tuple[Edit, ...]:
    """Return the edits that a call claims; empty if it names no file."""
    return edits_named(tool, args) if claims_edit(tool, args) else ()


def changes_unnamed(tool: str, args: str) -> bool:
    """Whether a call changes a file without naming it: `edit 12:14` changes the open one.

    The arguments are a text, as in a step.
    """
    if not changing(tool) or not _name_words(tool) <= _CHANGING | _BESIDE:
        return False
    given = _parse_arguments(args)
    return claims_edit(tool, given) and not edits_named(tool, given)


def edits_named(tool: str, args: CallArguments, *, path: str = "") -> tuple[Edit, ...]:
    """Return the edits of an editing call: of the file it names, or of its patch.

    `path` is a file that the source names outside the arguments. Only a complete new content has a
    digest; a partial change counts as a change, whatever it did.
    """
    if path := path or named_path(args):
        content = whole_content(tool, args)
        known = "" if content is None else digest(content)
        return (Edit(path=path, digest=known, deleted=_deletes(tool, args)),)
    targets = [
        target
        for text in _patch_texts(args)
        for target in patch_blocks(text) or patched_files(text)
    ]
    edits = [
        Edit(path=without_components(target.path, None), deleted=target.deleted)
        for target in targets
    ]
    return tuple({edit.path: edit for edit in edits}.values())


def named_path(args: CallArguments) -> str:
    """Return the file that the arguments name; empty if none."""
    named = [] if isinstance(args, str) else [args.get(key) for key in _PATH_KEYS]
    return next((path for path in named if path and isinstance(path, str)), "")


def whole_content(tool: str, args: CallArguments) -> str | None:
    """Return the whole content of the file after the call, if the arguments have it."""
    if isinstance(args, str) or _appends(args):
        return None
    words = _name_words(_editor_command(args)) or _name_words(tool)
    return None if words & _PART else _first_text(args, _CONTENT_KEYS)


def adds(tool: str, args: str, line: str) -> bool:
    """Whether an edit only adds to the file, as far as the call shows.

    `line` is the shell command, if it is one. Replacing a single line by its number counts, because
    some tools have no other way to insert.
    """
    if line:
        return _APPENDING.match(line) is not None
    given = _parse_arguments(args)
    if isinstance(given, str):
        return bool(_name_words(tool) & _ADDING) or _ONE_LINE.match(given) is not None
    if (_name_words(tool) | _name_words(_editor_command(given))) & _ADDING or _appends(given):
        return True
    old, new = _first_text(given, _OLD_KEYS), _first_text(given, _NEW_KEYS)
    return bool(old) and new is not None and old in new


def replaced(args: str) -> tuple[str, str]:
    """Return the text that an edit removes, and its replacement; both empty if there is none."""
    given = _parse_arguments(args)
    if isinstance(given, str):
        return "", ""
    return _first_text(given, _OLD_KEYS) or "", _first_text(given, _NEW_KEYS) or ""


def creates(tool: str, args: str, line: str) -> bool:
    """Whether an edit says that it creates a file: a creating tool, or a redirection."""
    if line:
        return _WRITING.search(line[:_HEAD]) is not None
    if "create" in _name_words(tool):
        return True
    given = _parse_arguments(args) if '"create"' in args else args
    return not isinstance(given, str) and _editor_command(given) == "create"


def changing(tool: str) -> bool:
    """Whether a tool's name says that it changes files; an editor may also just view them."""
    return _changes_files(tool[:_LONGEST])


@lru_cache(maxsize=512)
def _changes_files(tool: str) -> bool:
    words = _split_name(tool)
    if not words & _CHANGING or words & _NO_FILE:
        return False
    return not words & _LOOKING or "replace" in words


def looks(tool: str, args: CallArguments) -> bool:
    """Whether a call's name says that it only looks."""
    words = _name_words(tool)
    return bool(words & _LOOKING and "replace" not in words) or _only_looks(tool, args)


def _parse_arguments(args: str) -> CallArguments:
    """Return the object that a text contains, or the text itself."""
    if not args.startswith("{"):
        return args
    try:
        raw: object = json.loads(args)
    except (ValueError, RecursionError):
        return args
    return cast("dict[str, object]", raw) if isinstance(raw, dict) else args


def _only_looks(tool: str, args: CallArguments) -> bool:
    """Whether an editor's command changes nothing: `view`."""
    if isinstance(args, str):
        is_editor = bool(_name_words(tool) & {"editor", "anthropic"})
        return is_editor and bool(_name_words(_first_word(args)) & _LOOKING)
    command = _editor_command(args)
    return bool(command) and not _name_words(command) & _CHANGING


def _deletes(tool: str, args: CallArguments) -> bool:
    command = "" if isinstance(args, str) else _editor_command(args)
    return bool((_name_words(command) or _name_words(tool)) & _DELETING)


def _editor_command(args: Mapping[str, object]) -> str:
    """Return an editor's command, or the first word of a longer text."""
    command = args.get("command")
    return _first_word(command) if isinstance(command, str) else ""


def _first_word(text: str) -> str:
    return next(iter(text[:_LONGEST].split(maxsplit=1)), "")


def _appends(args: Mapping[str, object]) -> bool:
    return bool(args.get("append")) or str(args.get("mode", "")).startswith("a")


def _patch_texts(args: CallArguments) -> list[str]:
    """Return the texts of a call that may be patches."""
    if isinstance(args, str):
        return [args]
    return [text for key in _PATCH_KEYS if isinstance(text := args.get(key), str)]


def _first_text(args: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    """Return the first of these arguments that is a text."""
    return next((text for key in keys if isinstance(text := args.get(key), str)), None)


def _name_words(name: str) -> frozenset[str]:
    """Return the words of a name in lower case, however they are joined."""
    return _split_name(name[:_LONGEST])


@lru_cache(maxsize=512)
def _split_name(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


_HEAD = 400
"""Characters at the beginning of an output that are considered: the rest may quote a file."""
_ERROR = re.compile(r"(?i)\s*(?:(?:<tool_use_error>|\[error\]|error(?: \w+){0,3}:)\s*)+")
_REFUSED = PatternSet(
    r"(?i)\bno replacement (?:was|were) (?:performed|made)"
    r"|\bdid not appear verbatim"
    r"|\b(?:string|text|block|snippet|context|pattern|lines?|old_\w+)\b.*\bnot found\b"
    r"|^not found in\b|\bnot unique\b|\bdoes not match\b"
    r"|\b(?:could not|couldn't|cannot|failed to|did not|unable to) "
    r"(?:apply|create|edit|find|insert|locate|match|replace|write)\b"
    r"|\b(?:0|multiple) occurrences\b|\bfound (?:\d+ (?:matches|occurrences) of|multiple)\b"
    r"|^usage: "
    r"|\byour proposed edit has introduced"
    r"|\bfile\b.*\balready exists\b"
    r"|\b(?:path|file|directory)\b.*\b(?:not found|does not exist)\b"
    r"|\bno such file or directory\b|\bpermission denied\b|\bis a directory\b|\[errno \d+\]"
    r"|\bfile has (?:not been read yet|been modified since)\b"
    r"|\bno changes (?:to make|were made)\b|\bare (?:exactly )?the same\b|\bare identical\b"
    r"|\bno file (?:is )?open\b|\binvalid `?\w+`? parameter\b"
    r"|\bpatch (?:failed|does not apply)\b|\bverification failed\b|\binvalid patch\b",
)
_MADE = r"(?:added|applied|created|edited|inserted|modified|replaced|saved|updated|written|wrote)\b"
_DONE = re.compile(
    rf"(?i)\s*(?:successfully |text )?{_MADE}"
    rf"|\s*(?:the )?(?:file |text )?(?:at |in )?\S+ (?:ha(?:s|ve) been|was|were) (?:\w+ )?{_MADE}"
)
"""Start of an output that reports success; the rest may quote what was written."""


def refused(output: str) -> bool:
    """Whether an editor's output begins by saying that nothing was changed.

    Only the first line counts: the rest may show the file, which may contain the same words.
    """
    head = output[:_HEAD]
    error = _ERROR.match(head)
    line = head[error.end() if error else 0 :].lstrip().split("\n", 1)[0]
    return _DONE.match(line) is None and (error is not None or _REFUSED.anywhere(line))
