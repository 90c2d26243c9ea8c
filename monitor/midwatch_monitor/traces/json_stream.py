"""Reads JSON as a stream: a file with one object a line, or a document with one long array."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from midwatch_monitor.errors import TraceError
from midwatch_monitor.traces.foreign import JsonNode, TraceItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A skipped part, and the reason."""

    line: int
    """Line of the file, or index of the entry in a JSON document, from 1."""
    problem: str
    breaks_off: bool = False
    """Whether nothing after it can be read: the rest may not have been written yet."""


HEAD = 1024 * 1024
"""Bytes of whole lines that are read to recognise a file."""
MAX_LINE = 32 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is damage and not kept in memory."""


def lines(path: Path) -> Iterator[TraceItem | Damage]:
    """Yield the objects of a file. An unreadable line becomes damage."""
    for number, line in _raw_lines(path):
        yield item_of(line, number)


def first_lines(path: Path) -> Iterator[JsonNode]:
    """Yield the objects in the head of a file; other lines are skipped."""
    left = HEAD
    for _, line in _raw_lines(path):
        read = object_of(line)
        if not isinstance(read, str):
            yield read
        left -= len(line)
        if left < 0:
            return


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines with their numbers; for an overlong one, only the start."""
    number = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE + 1):
            number += 1
            rest = line
            while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE + 1)
            if line.strip():
                yield number, line


def document(path: Path, number: int) -> TraceItem | Damage:
    """Return the object that a file is, or damage."""
    with path.open("rb") as file:
        return item_of(file.read(MAX_LINE + 1), number)


def item_of(line: bytes, number: int) -> TraceItem | Damage:
    """Return the object on a line, or damage."""
    read = object_of(line)
    if isinstance(read, str):
        return Damage(line=number, problem=read)
    return TraceItem(number=number, node=read)


def object_of(line: bytes) -> JsonNode | str:
    """Return the object on a line, or what is wrong with it."""
    if len(line) > MAX_LINE:
        return f"longer than {MAX_LINE} bytes"
    try:
        node = JsonNode(json.loads(line.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return node if node.is_object else "not a JSON object"


ARRAY_HEAD = 1024 * 1024
"""Bytes that are read to recognise a document."""
MAX_DEPTH = 256
"""Deepest nesting of arrays and objects that is read; a deeper document is damaged."""
MAX_ITEM = 32 * 1024 * 1024
"""Bytes of the longest entry that is read, and of the longest text outside entries. Reading takes
twice as much memory. A document with a longer one breaks off there.
"""
_BOM = b"\xef\xbb\xbf"
_OPENING = frozenset({"start_map", "start_array"})
_CLOSING = frozenset({"end_map", "end_array"})

_Parsed = tuple[Sequence[str], str, object]
"""The location (a key for each enclosing object, `""` for an array), the event, and its value."""


def items(path: Path, array: str) -> Iterator[TraceItem | Damage]:
    """Yield the objects of a document's array in order; with `""`, the document is the array.

    Anything else in the array is damage. A document that breaks off yields everything up to there,
    then one damage.
    """
    number = 0
    with _open_file(path) as file:
        try:
            for value in _array_values(file, array):
                number += 1
                node = JsonNode(value)
                if node.is_object:
                    yield TraceItem(number=number, node=node)
                else:
                    yield Damage(line=number, problem=f"item {number} is not a JSON object")
        except TraceError as error:
            problem = f"the document breaks off after item {number}: {error}"
            yield Damage(line=number + 1, problem=problem, breaks_off=True)


def first_items(path: Path, array: str) -> Iterator[JsonNode]:
    """Yield the complete entries of a document's array in the head of the file."""
    try:
        yield from map(JsonNode, _array_values(_file_head(path), array))
    except TraceError:
        return


def first_keys(path: Path, array: str) -> frozenset[str] | None:
    """Return the keys of the first object in a document's array, as far as the file's head shows.

    `None` if there is no such array; empty if it is empty or contains no object.
    """
    keys, reading = set[str](), False
    place = _key_path(array)
    try:
        for at, event, value in _parser_events(_file_head(path)):
            if len(at) <= len(place):
                if reading:
                    break
                reading = event == "start_array" and at == place
            elif reading and len(at) == len(place) + 2 and event == "map_key":
                keys.add(str(value))
            elif reading and len(at) == len(place) + 1 and event == "end_map":
                break
    except TraceError:
        pass
    return frozenset(keys) if reading else None


def text_at(path: Path, *keys: str) -> str:
    """Return the text under nested keys, if the head of the file contains it."""
    place = list(keys)
    try:
        for at, event, value in _parser_events(_file_head(path)):
            if event == "string" and at == place:
                return str(value)
    except TraceError:
        pass
    return ""


def _array_values(file: IO[bytes], array: str) -> Iterator[object]:
    """Yield the values of an array, each as soon as it is complete."""
    place, reading = _key_path(array), False
    builder, metered = _builder(), _Metered(file)
    for at, event, value in _parser_events(metered):
        if len(at) <= len(place):
            reading = event == "start_array" and at == place
        elif reading:
            builder.event(event, value)
            if len(at) == len(place) + 1 and event not in _OPENING:
                yield builder.value
                builder = _builder()
                metered.taken = 0
        if not reading:
            metered.taken = 0


class _Metered:
    """A file that fails if too much of it is read at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.taken = 0
        """Bytes read since this was last set to 0."""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises TraceError after too many."""
        if self.taken > MAX_ITEM:
            raise TraceError(f"longer than {MAX_ITEM} bytes")
        data = self._file.read(size)
        self.taken += len(data)
        return data


def _builder() -> Any:
    """Return the parser's own builder, which has no types."""
    from ijson.common import ObjectBuilder  # pyright: ignore[reportMissingTypeStubs]

    return ObjectBuilder()


def _parser_events(file: "IO[bytes] | _Metered") -> Iterator[_Parsed]:
    """Yield the parser's events. The location is the same list every time, valid during the event.

    The parser's own locations are not used: their cost per event grows with the depth. Raises
    TraceError if the rest of the document cannot be read.
    """
    import ijson  # pyright: ignore[reportMissingTypeStubs]

    at: list[str] = []
    try:
        for event, value in ijson.basic_parse(file, use_float=True):
            if event in _CLOSING:
                at.pop()
            elif event == "map_key":
                at[-1] = value
            yield at, event, value
            if event in _OPENING:
                at.append("")
            if len(at) > MAX_DEPTH:
                raise TraceError(f"arrays and objects are nested more than {MAX_DEPTH} deep")
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise TraceError(_first_line(error)) from error


def _key_path(array: str) -> list[str]:
    return [array] if array else []


def _file_head(path: Path) -> BytesIO:
    """Return the beginning of a file that may be JSON; empty for any other file."""
    with _open_file(path) as file:
        head = file.read(ARRAY_HEAD)
    return BytesIO(head if head.lstrip().startswith((b"{", b"[")) else b"")


@contextmanager
def _open_file(path: Path) -> Generator[IO[bytes], None, None]:
    """Open the file after its byte order mark, if it has one."""
    with path.open("rb") as file:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        yield file


def _first_line(error: Exception) -> str:
    """Return the parser's message without the excerpt from the document."""
    text = str(error.args[0] if error.args else error)
    return text.removeprefix("b'").partition("\n")[0].partition("\\n")[0]
