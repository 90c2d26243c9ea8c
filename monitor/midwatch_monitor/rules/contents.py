"""What files contained, and what an edit makes of it."""

from collections.abc import Sequence
from typing import NamedTuple

from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.memory import Memory
from midwatch_monitor.words import Edit, Writer

_FILES = 32
_CONTENTS = 64
_GONE = "(deleted)"
_HALF = 0xFFFFFFFF


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

    def observe(self, edits: Sequence[Edit]) -> tuple[Touch, ...]:
        """What the worker's edits of a step did, the last one of each file. All are learned."""
        if len(edits) == 1:
            touch = self._touch(edits[0])
            return (touch,) if edits[0].writer is Writer.WORKER else ()
        touches: dict[str, Touch] = {}
        for edit in edits:
            touch = self._touch(edit)
            if edit.writer is Writer.WORKER:
                touches[edit.path] = touch
        return tuple(touches.values())

    def _touch(self, edit: Edit) -> Touch:
        content = _GONE if edit.deleted else edit.digest
        path = digest(edit.path)
        if not content:
            self._now.put(path, 0)
            return Touch(edit.path)
        short = digest(content) & _HALF
        before = self._now.put(path, short)
        if before == short:
            return Touch(edit.path, same=True)
        back = self._known.put(digest(f"{edit.path}\0{content}"), 1) is not None
        return Touch(edit.path, back=back, new=not back and not edit.deleted)
