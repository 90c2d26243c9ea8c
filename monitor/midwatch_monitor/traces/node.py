"""A value of a foreign JSON document, read without trust in its shape."""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from midwatch_monitor.time_range import plausible


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON value, or `None` for one that is not there."""

    value: object = None

    def __getitem__(self, key: str) -> "Node":
        """The value under a key; empty where there is none."""
        return Node(self.members.get(key))

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def __iter__(self) -> Iterator["Node"]:
        """The elements of an array; none for anything else."""
        # isinstance alone leaves the type of the elements unknown.
        value = self.value
        return map(Node, cast("list[object]", value) if isinstance(value, list) else ())

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def members(self) -> Mapping[str, object]:
        """What an object holds; nothing for anything else."""
        value = self.value
        return cast("dict[str, object]", value) if isinstance(value, dict) else {}

    def without(self, names: Set[str]) -> "Node":
        """The object without these members, and without those that are null."""
        members = self.members.items()
        return Node(
            {key: value for key, value in members if key not in names and value is not None}
        )

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def text(self) -> str:
        """The text that it is; empty for anything else."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def whole(self) -> int | None:
        """The integer that it is, also as text or as a float without a fraction."""
        match self.value:
            case bool():
                return None
            case int():
                return self.value
            case float() if self.value.is_integer():
                return int(self.value)
            case str() if _is_integer(self.value):
                return int(self.value)
            case _:
                return None

    @property
    def amount(self) -> float:
        """The number that it is, from 0; 0 for anything else."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            return 0.0
        return max(float(self.value), 0.0) if abs(self.value) < _HUGE else 0.0

    @property
    def count(self) -> int:
        """The whole number that it is, from 0; 0 for anything else."""
        return int(self.amount)

    @property
    def time(self) -> datetime | None:
        """The moment that it names: ISO 8601 (without a zone: UTC), or seconds since 1970.

        `None` where it names none, or one that is not plausible.
        """
        try:
            if isinstance(self.value, str):
                moment = datetime.fromisoformat(self.value)
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            else:
                moment = datetime.fromtimestamp(self.amount, UTC) if self.amount else None
        except (ValueError, OverflowError, OSError):
            return None
        return moment if moment and plausible(moment) else None

    @property
    def decoded(self) -> "Node":
        """What a text of JSON says; anything else as it is."""
        if not isinstance(self.value, str):
            return self
        try:
            return Node(json.loads(self.value))
        except (ValueError, RecursionError):
            return self

    @property
    def canonical(self) -> str:
        """JSON that is equal for equal values; a text is left as it is."""
        if isinstance(self.value, str):
            return self.value
        try:
            return json.dumps(self.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except RecursionError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of a trace: its place, counted from 1, and what it says."""

    number: int
    node: Node


_HUGE = 1e18


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) < 19 and digits.isascii() and digits.isdigit()
