"""What the rules remember: a number for each key, in room that never grows."""

from array import array
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_WAYS = 4
_BOTH = 2 * _WAYS


class Memory:
    """Remembers a number for each of the newest keys; the room is taken at once and never grows.

    Keys are digests of 64 bits, of which 32 are kept; numbers have 32. A key has four places where
    it may stand, and the oldest of the four gives way: forgetting is sometimes early, never late.
    """

    __slots__ = ("_mask", "_places")

    def __init__(self, room: int) -> None:
        self._mask = room // _WAYS - 1
        # Four keys and then their four numbers, again and again.
        self._places = array("I", bytes(8 * room))

    def get(self, key: int) -> int | None:
        """The number of a key, or `None` for one that is not remembered."""
        at = (key & self._mask) * _BOTH
        tag = key >> 32
        four = self._places[at : at + _WAYS]
        return self._places[at + _WAYS + four.index(tag)] if tag in four else None

    def put(self, key: int, number: int) -> int | None:
        """Remember a number; answers the one before, or `None` for a key that is new here."""
        at = (key & self._mask) * _BOTH
        tag = key >> 32
        places = self._places
        four = places[at : at + _WAYS]
        if tag in four:
            place = at + _WAYS + four.index(tag)
            before = places[place]
            places[place] = number
            return before
        # All eight move up by one: the last key gives way to the first number, and so on.
        places[at + 1 : at + _BOTH] = places[at : at + _BOTH - 1]
        places[at], places[at + _WAYS] = tag, number
        return None


def remember(memory: dict[K, V], key: K, value: V, limit: int) -> K | None:
    """Put a key at the young end of a dict; answers the oldest key if it had to go."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) <= limit:
        return None
    oldest = next(iter(memory))
    del memory[oldest]
    return oldest
