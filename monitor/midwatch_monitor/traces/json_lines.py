"""Files with one JSON object a line, read as a stream."""

import json
from collections.abc import Iterator
from pathlib import Path

from midwatch_monitor.traces.damage import Damage
from midwatch_monitor.traces.node import Item, Node

HEAD = 1024 * 1024
"""Bytes of whole lines that are looked at to recognise a file."""
MAX_LINE = 32 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is damage, and is not held in memory."""


def lines(path: Path) -> Iterator[Item | Damage]:
    """The objects of a file. A line that cannot be read becomes damage, and is skipped."""
    for number, line in _raw(path):
        read = object_of(line)
        if isinstance(read, str):
            yield Damage(line=number, problem=read)
        else:
            yield Item(number=number, node=read)


def first_lines(path: Path) -> Iterator[Node]:
    """The objects in the head of a file; what is none is passed over."""
    left = HEAD
    for _, line in _raw(path):
        read = object_of(line)
        if not isinstance(read, str):
            yield read
        left -= len(line)
        if left < 0:
            return


def _raw(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; of one that is too long only its start."""
    number = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE + 1):
            number += 1
            rest = line
            while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE + 1)
            if line.strip():
                yield number, line


def object_of(line: bytes) -> Node | str:
    """The object that a line is, or what is wrong with it."""
    if len(line) > MAX_LINE:
        return f"longer than {MAX_LINE} bytes"
    try:
        node = Node(json.loads(line.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return node if node.is_object else "not a JSON object"
