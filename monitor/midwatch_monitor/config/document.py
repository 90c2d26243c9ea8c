"""A YAML file as plain values, with the line of every key.

YAML 1.2's core schema: only `true` and `false` are booleans, so that `mode: off` is a word; dates,
`12:30` and `1_000` are strings, and `010` is ten.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from midwatch_monitor.errors import ConfigError, FilePosition

Keys = tuple[str | int, ...]
"""The location of a value in a document: keys, and list indexes from 0."""

MAX_CHARACTERS = 500_000
"""Size limit of one file: some thousand tasks, which take about two seconds to read."""
_TOO_LONG = f"is longer than {MAX_CHARACTERS:,} characters: split it into several files"
_TAG = "tag:yaml.org,2002:"
_MAX_NODES = 100_000
"""Limits aliases of aliases, which can make a small file enormous."""


@dataclass(slots=True, kw_only=True)
class Document:
    """The content of one file. With problems, `data` contains what could be read."""

    file: Path
    data: dict[str, object] = field(default_factory=dict[str, object])
    lines: dict[Keys, int] = field(default_factory=dict[Keys, int])
    """The line of every key and list item, from 1."""
    problems: list[ConfigError] = field(default_factory=list[ConfigError])

    @property
    def holds_tasks(self) -> bool:
        """Whether it is a task file: it has the key `tasks`. False for an unreadable one."""
        return "tasks" in self.data


def dotted_path(path: Keys) -> str:
    """Return a location as people write it: `tasks[0].goal`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def read_document(file: Path, text: str | None = None) -> Document:
    """Read a YAML mapping, from the file or its text. An empty file is an empty mapping.

    Raises nothing.
    """
    document = Document(file=file)
    try:
        text = _read(file) if text is None else text
        if len(text) > MAX_CHARACTERS:
            _add_problem(document, None, _TOO_LONG)
            return document
        root: Node | None = _Loader(text).get_single_node()
        if root is not None:
            _Reading(document).root(root)
    except RecursionError:
        _add_problem(document, None, "is nested too deeply, or too large")
    except ReaderError as error:
        _add_problem(document, None, f"holds a character that YAML does not allow: {error.reason}")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        _add_problem(document, mark.line + 1 if mark else None, f"is not YAML: {said}")
    except UnicodeDecodeError:
        _add_problem(document, None, "is not UTF-8 text")
    except FileNotFoundError:
        _add_problem(document, None, "there is no such file")
    except OSError as error:
        _add_problem(document, None, f"cannot be read: {error.strerror}")
    return document


def _add_problem(document: Document, line: int | None, problem: str) -> None:
    document.problems.append(ConfigError(FilePosition(file=document.file, line=line), "", problem))


_PLAIN = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    ),
}


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's loader with the core schema's tags and without object construction."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)

    def resolve(self, kind: type[Node], value: str, implicit: object) -> str:
        """Return the tag of a node without one; `implicit` tells first whether it is unquoted."""
        if kind is not ScalarNode:
            return _TAG + ("map" if kind is MappingNode else "seq")
        plain = isinstance(implicit, tuple) and bool(cast("tuple[bool, bool]", implicit)[0])
        names = (name for name, pattern in _PLAIN.items() if plain and pattern.fullmatch(value))
        return _TAG + next(names, "str")


def _read(file: Path) -> str:
    """Return the file's text, or enough of it to see that it is too long."""
    with file.open(encoding="utf-8-sig") as stream:
        return stream.read(MAX_CHARACTERS + 1)


class _Reading:
    """One pass over the nodes: values, lines, and problems."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._nodes = 0

    def root(self, node: Node) -> None:
        value = self._value(node, ())
        if isinstance(value, dict):
            self._document.data = cast("dict[str, object]", value)
        elif value is not None:
            self._add_problem(node, (), "must be a mapping: `key: value`")

    def _value(self, node: Node, path: Keys) -> object:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise RecursionError
        match node:
            case MappingNode():
                return self._read_mapping(node, path)
            case SequenceNode():
                items = cast("list[Node]", node.value)
                return [self._item(item, (*path, at)) for at, item in enumerate(items)]
            case _:
                return self._scalar(node, path)

    def _item(self, node: Node, path: Keys) -> object:
        self._document.lines[path] = node.start_mark.line + 1
        return self._value(node, path)

    def _read_mapping(self, node: MappingNode, path: Keys) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in cast("list[tuple[Node, Node]]", node.value):
            if not isinstance(key, ScalarNode):
                self._add_problem(key, path, "a key must be a word")
                continue
            name = str(key.value)
            here = (*path, name)
            if name in values:
                first = self._document.lines[here]
                self._add_problem(key, here, f"is here twice, first in line {first}")
                continue
            self._document.lines[here] = key.start_mark.line + 1
            values[name] = self._value(value, here)
        return values

    def _scalar(self, node: Node, path: Keys) -> object:
        text, tag = str(node.value), str(node.tag).removeprefix(_TAG)
        match tag:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return _integer(text)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case _:
                self._add_problem(node, path, f"the tag {node.tag} has no meaning here")
                return text

    def _add_problem(self, node: Node, path: Keys, problem: str) -> None:
        place = FilePosition(file=self._document.file, line=node.start_mark.line + 1)
        self._document.problems.append(ConfigError(place, dotted_path(path), problem))


def _integer(text: str) -> int | str:
    """Return a number, or the text if it has more digits than Python reads (4,300)."""
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        return int(text, base)
    except ValueError:
        return text
