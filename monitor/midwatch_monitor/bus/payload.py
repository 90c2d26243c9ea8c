"""The topics of a fleet, and its messages as bytes. Every message is validated first.

Hints are sent as an array of arrays, `[entry, kind, task, step, note]`; the topic names the
attempt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from midwatch_monitor.records import Hint, NodeStatus

_ROOT = "midwatch/v1"
"""Contains the version of the payloads, so that a process gets only payloads that it can read."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", re.ASCII)
_ATTEMPT = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one fleet."""

    fleet: str

    @property
    def statuses(self) -> str:
        """Topic filter for the status of every node."""
        return self.status("+")

    @property
    def events(self) -> str:
        """Topic filter for the hints of every attempt."""
        return f"{_ROOT}/{self.fleet}/attempts/+/events"

    def turns(self, group: str) -> str:
        """Return the topic filter that gives each hint to only one member of a group."""
        return f"$share/{group}/{self.events}"

    def status(self, node: str) -> str:
        """Return the topic of a node's status."""
        return f"{_ROOT}/{self.fleet}/nodes/{node}/status"

    def events_of(self, attempt: int | None) -> str:
        """Return the topic of an attempt's hints; those about no attempt have the number 0."""
        return f"{_ROOT}/{self.fleet}/attempts/{attempt or 0}/events"

    def node_of(self, topic: str) -> str | None:
        """Return the node whose status a topic carries; `None` for another topic."""
        name = self._middle_part(topic, "nodes", "status")
        return name if is_topic_name(name) else None

    def attempt_of(self, topic: str) -> int | None:
        """Return the attempt whose hints a topic carries, 0 for none; `None` for another topic."""
        number = self._middle_part(topic, "attempts", "events")
        return int(number) if _ATTEMPT.fullmatch(number) else None

    def _middle_part(self, topic: str, kind: str, last: str) -> str:
        before, after = f"{_ROOT}/{self.fleet}/{kind}/", f"/{last}"
        if topic.startswith(before) and topic.endswith(after):
            return topic[len(before) : -len(after)]
        return ""


def is_topic_name(name: str) -> bool:
    """Return whether a name can be one level of a topic, without wildcards."""
    return _NAME.fullmatch(name) is not None


MAX_STATUS = 8_192
"""Maximum bytes of a node's status."""
_MAX_NOTE = 160
_MAX_WORD = 80
_MAX_LABELS = 64
_MAX_SLOTS = 1_000_000
_ROW = 64
"""Bytes that most hints do not exceed; a message that is too long is split again."""

_UNSEEN = "\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
"""Characters that a terminal interprets, or does not show."""
_VISIBLE = re.compile(f"[^{_UNSEEN}]*")

_Id = Annotated[int, Field(ge=0, lt=2**63)]
_Row = tuple[
    _Id,
    Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,39}$")],
    _Id | None,
    _Id | None,
    Annotated[str, Field(max_length=_MAX_NOTE, pattern=f"^{_VISIBLE.pattern}$")],
]


def encode_hints(hints: Sequence[Hint], limit: int) -> list[tuple[bytes, Sequence[Hint]]]:
    """Return messages of at most `limit` bytes, each with the hints in it.

    The hints must be of one attempt, and the limit 1,024 or more. Hints that fit into no message
    are left out.
    """
    length = max(1, limit // _ROW)
    pieces = [hints[start : start + length] for start in range(0, len(hints), length)]
    return [message for piece in pieces for message in _split(piece, limit)]


def _split(hints: Sequence[Hint], limit: int) -> list[tuple[bytes, Sequence[Hint]]]:
    rows = [
        (entry, kind, task, step, note and _printable_note(note))
        for entry, kind, task, _, step, note in hints
    ]
    try:
        payload = to_json(rows)
    except PydanticSerializationError:  # a lone surrogate in a kind
        payload = b""
    if payload and len(payload) <= limit:
        return [(payload, hints)]
    half = len(hints) // 2
    return _split(hints[:half], limit) + _split(hints[half:], limit) if half else []


def _printable_note(note: str) -> str:
    if len(note) <= _MAX_NOTE and note.isprintable():
        return note
    cut = note if len(note) <= _MAX_NOTE else f"{note[: _MAX_NOTE - 1]}…"
    return "".join(each if each.isprintable() else " " for each in cut)


def decode_hints(payload: bytes, attempt: int | None) -> list[Hint] | None:
    """Return the hints in a message about an attempt, or `None` if the message is not valid."""
    try:
        rows = _rows().validate_json(payload)
    except ValidationError:
        return None
    return [Hint(entry, kind, task, attempt, step, note) for entry, kind, task, step, note in rows]


@cache
def _rows() -> TypeAdapter[list[_Row]]:
    return TypeAdapter(list[_Row], config={"strict": True})


def encode_status(status: NodeStatus) -> bytes:
    """Return a node's status as a message."""
    return _status_adapter().dump_json(status)


def decode_status(payload: bytes, node: str) -> NodeStatus | None:
    """Return the status that a node sent, or `None` if it is not valid or of another node."""
    if len(payload) > MAX_STATUS:
        return None
    try:
        status = _status_adapter().validate_json(payload, strict=True)
    except ValidationError:
        return None
    return status if status.name == node and _is_valid(status) else None


def _is_valid(status: NodeStatus) -> bool:
    words = (status.boot, status.version, status.revision, *status.labels)
    times = (status.started_at, status.beat_at, status.doubted_at)
    return (
        is_topic_name(status.name)
        and bool(status.boot)
        and all(len(word) <= _MAX_WORD and _VISIBLE.fullmatch(word) for word in words)
        and len(status.labels) <= _MAX_LABELS
        and 0 <= status.slots <= _MAX_SLOTS
        and 0 <= status.busy <= _MAX_SLOTS
        and all(time is None or time.tzinfo is not None for time in times)
    )


@cache
def _status_adapter() -> TypeAdapter[NodeStatus]:
    return TypeAdapter(NodeStatus)
