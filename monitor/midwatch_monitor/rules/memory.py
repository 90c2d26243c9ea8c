"""Bounded memory for the rules: numbers by key, and file contents."""

from array import array
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar
from zlib import crc32

from midwatch_monitor.records import Edit, Writer
from midwatch_monitor.rules.identity import SHORT, digest

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_WAYS = 4
_BOTH = 2 * _WAYS


class Memory:
    """Remembers a number for each of the newest keys, in a fixed amount of memory.

    Keys are 64-bit digests, of which 32 bits are kept; numbers have 32 bits. A key has four
    possible slots and replaces the oldest of the four, so a key may be forgotten early but never
    late.
    """

    __slots__ = ("_mask", "_places")

    def __init__(self, room: int) -> None:
        self._mask = room // _WAYS - 1
        # Groups of four keys followed by their four numbers.
        self._places = array("I", bytes(8 * room))

    def get(self, key: int) -> int | None:
        """Return the number of a key, or `None` if it is not remembered."""
        at = (key & self._mask) * _BOTH
        tag = key >> 32
        four = self._places[at : at + _WAYS]
        return self._places[at + _WAYS + four.index(tag)] if tag in four else None

    def put(self, key: int, number: int) -> int | None:
        """Store a number; return the previous one, or `None` for a new key."""
        at = (key & self._mask) * _BOTH
        tag = key >> 32
        places = self._places
        four = places[at : at + _WAYS]
        if tag in four:
            place = at + _WAYS + four.index(tag)
            before = places[place]
            places[place] = number
            return before
        # Shift keys and numbers of the group by one; the oldest of each drops out.
        places[at + 1 : at + _BOTH] = places[at : at + _BOTH - 1]
        places[at], places[at + _WAYS] = tag, number
        return None


def remember(memory: dict[K, V], key: K, value: V, limit: int) -> K | None:
    """Make a key the newest of a dict; return the oldest key if it was dropped."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) <= limit:
        return None
    oldest = next(iter(memory))
    del memory[oldest]
    return oldest


_SEPARATORS_TO_BLANKS = bytes(
    each if each > 127 or chr(each).isalnum() or chr(each) in "_@/.-" else ord(" ")
    for each in range(256)
)
"""For `translate`: everything that is not part of a word, a number or a path becomes a blank."""
_ROOM = 256
"""Number of words and lines remembered."""
_LONG = 3000
"""Longest answer that can be stale, in characters; a longer one always counts as new."""
_FEW = 3
"""Fewest distinct words or lines in a stale answer: "ok" and "done" can follow anything."""


class RecentSums:
    """Remembers the newest of many 32-bit checksums.

    It is slower than a `Memory` for one checksum but faster for thirty, and forgets none early.
    """

    __slots__ = ("_known", "_room")

    def __init__(self, room: int) -> None:
        self._room = room
        self._known = array("I")

    def learn(self, sums: set[int]) -> set[int]:
        """Add checksums; return those that were not known."""
        if new := sums.difference(self._known):
            self._known.extend(new)
            del self._known[: -self._room]
        return new

    def forget(self) -> None:
        """Forget everything."""
        self._known = array("I")


class Vocabulary:
    """Remembers the words of short answers and the lines of long ones."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # Checksums, because they are the same in every process.
        self._known = RecentSums(_ROOM)

    def learn(self, answer: str, *, anew: bool) -> bool:
        """Learn an answer; return whether it contains anything new.

        Answers of very few words, and very long ones, always count as new. `anew` forgets
        everything first.
        """
        if anew:
            self._known.forget()
        if not answer or len(answer) > _LONG:
            return True
        text = answer.encode(errors="surrogatepass")
        sums = {*map(crc32, _split_words(text) if len(answer) <= SHORT else text.split(b"\n"))}
        return bool(self._known.learn(sums)) or len(sums) < _FEW


def _split_words(text: bytes) -> list[bytes]:
    """Return words, numbers and paths, without full stops at the end of sentences."""
    ends = text.replace(b".\n", b"\n").replace(b". ", b" ").rstrip(b".")
    return ends.translate(_SEPARATORS_TO_BLANKS).split()


_FILES = 32
_CONTENTS = 64
_GONE = "(deleted)"
_HALF = 0xFFFFFFFF


class EditMark(NamedTuple):
    """An edit in a form that is fast to compare: digests instead of path and content."""

    path: str
    own: bool
    """Whether the worker made it."""
    deleted: bool
    file: int
    content: int
    """32 bits of the content's digest; 0 if the edit has none."""
    both: int
    """Digest of path and content together."""
    taken: int = 0
    """Digest of the removed text, if only that is known."""
    given: int = 0
    """Digest of the text put in its place."""


def marks(edits: Sequence[Edit], taken: str = "", given: str = "") -> tuple[EditMark, ...]:
    """Return edits as marks; `taken` and `given` are the texts that a single edit exchanges."""
    return tuple(_edit_mark(edit, taken.strip(), given.strip()) for edit in edits)


def _edit_mark(edit: Edit, taken: str, given: str) -> EditMark:
    content = _GONE if edit.deleted else edit.digest
    return EditMark(
        edit.path,
        edit.writer is Writer.WORKER,
        edit.deleted,
        digest(edit.path),
        digest(content) & _HALF if content else 0,
        digest(f"{edit.path}\0{content}") if content else 0,
        digest(f"{edit.path}\0-{taken}") if taken else 0,
        digest(f"{edit.path}\0-{given}") if given else 0,
    )


class EditEffect(NamedTuple):
    """The effect of one edit by the worker on a file."""

    path: str
    same: bool = False
    """The content is unchanged."""
    back: bool = False
    """The file has an earlier content again."""
    new: bool = False
    """The file has a content it never had before; false if the edit does not show it."""


class Contents:
    """Remembers the current and earlier contents of each file."""

    __slots__ = ("_known", "_now")

    def __init__(self) -> None:
        self._now = Memory(_FILES)
        self._known = Memory(_CONTENTS)

    def observe(self, edits: Sequence[EditMark]) -> tuple[EditEffect, ...]:
        """Learn a step's edits; return the effects of the worker's, the last one of each file."""
        if len(edits) == 1:
            touch = self._remember_edit(edits[0])
            return (touch,) if edits[0].own else ()
        touches: dict[str, EditEffect] = {}
        for edit in edits:
            touch = self._remember_edit(edit)
            if edit.own:
                touches[edit.path] = touch
        return tuple(touches.values())

    def _remember_edit(self, edit: EditMark) -> EditEffect:
        before = self._now.put(edit.file, edit.content)
        if not edit.content:
            back = bool(edit.given) and self._known.get(edit.given) is not None
            if edit.taken:
                self._known.put(edit.taken, 1)
            return EditEffect(edit.path, back=back)
        if before == edit.content:
            return EditEffect(edit.path, same=True)
        back = self._known.put(edit.both, 1) is not None
        return EditEffect(edit.path, back=back, new=not back and not edit.deleted)
