"""What files contained, and what an edit makes of it."""

from collections.abc import Sequence
from typing import NamedTuple

from midwatch_monitor.records import Edit, Writer
from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.memory import Memory

_FILES = 32
_CONTENTS = 64
_GONE = "(deleted)"
_HALF = 0xFFFFFFFF


class Mark(NamedTuple):
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


def marks(edits: Sequence[Edit]) -> tuple[Mark, ...]:
    """Edits as they are compared."""
    return tuple(_mark(edit) for edit in edits)


def _mark(edit: Edit) -> Mark:
    content = _GONE if edit.deleted else edit.digest
    return Mark(
        edit.path,
        edit.writer is Writer.WORKER,
        edit.deleted,
        digest(edit.path),
        digest(content) & _HALF if content else 0,
        digest(f"{edit.path}\0{content}") if content else 0,
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

    def observe(self, edits: Sequence[Mark]) -> tuple[Touch, ...]:
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

    def _touch(self, edit: Mark) -> Touch:
        before = self._now.put(edit.file, edit.content)
        if not edit.content:
            return Touch(edit.path)
        if before == edit.content:
            return Touch(edit.path, same=True)
        back = self._known.put(edit.both, 1) is not None
        return Touch(edit.path, back=back, new=not back and not edit.deleted)
