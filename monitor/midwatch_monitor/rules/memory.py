"""What the rules remember, in room that never grows: numbers by key, and file contents."""

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


_SEPARATORS_TO_BLANKS = bytes(
    each if each > 127 or chr(each).isalnum() or chr(each) in "_@/.-" else ord(" ")
    for each in range(256)
)
"""For `translate`: what is no part of a word, a number or a path becomes a blank."""
_ROOM = 256
"""Words and lines that are remembered."""
_LONG = 3000
"""Characters up to which an answer may have nothing new; a longer one always counts as new."""
_FEW = 3
"""Different words, or lines, that an answer has at least: "ok" and "done" come after anything."""


class RecentSums:
    """Remembers the newest of many checksums of 32 bits; the oldest go first.

    Slower than a `Memory` for one of them, and faster for thirty; and it forgets none early.
    """

    __slots__ = ("_known", "_room")

    def __init__(self, room: int) -> None:
        self._room = room
        self._known = array("I")

    def learn(self, sums: set[int]) -> set[int]:
        """Those that were not known; they are from now on."""
        if new := sums.difference(self._known):
            self._known.extend(new)
            del self._known[: -self._room]
        return new

    def forget(self) -> None:
        """Nothing is known."""
        self._known = array("I")


class Vocabulary:
    """Remembers the words of short answers, and the lines of long ones."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # By their checksums, which are the same in every process.
        self._known = RecentSums(_ROOM)

    def learn(self, answer: str, *, anew: bool) -> bool:
        """Whether there is anything new in an answer, whose words or lines are known from now on.

        One of very few words, or of very many lines, counts as new. `anew` forgets all first.
        """
        if anew:
            self._known.forget()
        if not answer or len(answer) > _LONG:
            return True
        text = answer.encode(errors="surrogatepass")
        sums = {*map(crc32, _words(text) if len(answer) <= SHORT else text.split(b"\n"))}
        return bool(self._known.learn(sums)) or len(sums) < _FEW


def _words(text: bytes) -> list[bytes]:
    """Words, numbers and paths, without the full stop that ends a sentence."""
    ends = text.replace(b".\n", b"\n").replace(b". ", b" ").rstrip(b".")
    return ends.translate(_SEPARATORS_TO_BLANKS).split()


_FILES = 32
_CONTENTS = 64
_GONE = "(deleted)"
_HALF = 0xFFFFFFFF


class EditMark(NamedTuple):
    """An edit as it is compared: digests instead of a path and a content."""

    path: str
    own: bool
    """Whether the worker made it."""
    deleted: bool
    file: int
    content: int
    """32 bits of the content; 0 where the edit does not say."""
    both: int
    """The content of this very file."""
    taken: int = 0
    """What was taken out of it, where only that is known."""
    given: int = 0
    """What was put there instead."""


def marks(edits: Sequence[Edit], taken: str = "", given: str = "") -> tuple[EditMark, ...]:
    """Edits as they are compared. Of a single one that says no more, the texts that it swaps."""
    return tuple(_mark(edit, taken.strip(), given.strip()) for edit in edits)


def _mark(edit: Edit, taken: str, given: str) -> EditMark:
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


class Touch(NamedTuple):
    """What one edit by the worker did to a file."""

    path: str
    same: bool = False
    """It left the file as it was."""
    back: bool = False
    """It put the file back to a content that it had before."""
    new: bool = False
    """The file has a content that it never had. Of an edit that does not say, nothing is known."""


class Contents:
    """Remembers what each file contains, and what it contained before."""

    __slots__ = ("_known", "_now")

    def __init__(self) -> None:
        self._now = Memory(_FILES)
        self._known = Memory(_CONTENTS)

    def observe(self, edits: Sequence[EditMark]) -> tuple[Touch, ...]:
        """What the worker's edits of a step did, the last one of each file. All are learned."""
        if len(edits) == 1:
            touch = self._touch(edits[0])
            return (touch,) if edits[0].own else ()
        touches: dict[str, Touch] = {}
        for edit in edits:
            touch = self._touch(edit)
            if edit.own:
                touches[edit.path] = touch
        return tuple(touches.values())

    def _touch(self, edit: EditMark) -> Touch:
        before = self._now.put(edit.file, edit.content)
        if not edit.content:
            back = bool(edit.given) and self._known.get(edit.given) is not None
            if edit.taken:
                self._known.put(edit.taken, 1)
            return Touch(edit.path, back=back)
        if before == edit.content:
            return Touch(edit.path, same=True)
        back = self._known.put(edit.both, 1) is not None
        return Touch(edit.path, back=back, new=not back and not edit.deleted)
