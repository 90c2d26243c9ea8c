"""The rules over files that change, as observed by the digest of their content."""

from collections import deque
from collections.abc import Iterator, Sequence

from midwatch_monitor.config.rules import RepeatedEdits
from midwatch_monitor.rules.detector import Answer, Clear, Moved, remember
from midwatch_monitor.words import (
    AlertKey,
    Change,
    Edit,
    Event,
    Finding,
    Movement,
    Resolution,
    Step,
    Writer,
)

MAX_FILES = 64
"""Files that are followed at a time; the one least recently edited is dropped."""
_MAX_CONTENTS = 64
_MAX_STEPS = 20

_GONE = "(deleted)"
_RESETS = frozenset({Movement.CHECK_PASSED, Movement.NEW_FAILURE})


class _File:
    """What is known of one file: its content, those before, and the edits in this window."""

    __slots__ = ("_contents", "_known", "count", "steps")

    def __init__(self) -> None:
        self._known = ""
        self._contents: dict[str, None] = {}
        self.count = 0
        self.steps = deque[int](maxlen=_MAX_STEPS)

    def take(self, edit: Edit, step: int, return_weight: int) -> bool:
        """Count a worker's edit; answers whether it was one at all."""
        content = _content(edit)
        if content and content == self._known:
            return False
        self.count += return_weight if content and content in self._contents else 1
        self.steps.append(step)
        self.know(content)
        return True

    def know(self, content: str) -> None:
        """The file has this content now; empty where it is not known."""
        self._known = content
        if content:
            remember(self._contents, content, None, _MAX_CONTENTS)

    def forget_edits(self) -> None:
        self.count = 0
        self.steps.clear()


class RepeatedEditsDetector:
    """Counts the worker's own edits of each file. What a worker says it did counts for nothing."""

    windowed = True

    def __init__(self, settings: RepeatedEdits) -> None:
        self._settings = settings
        self._files: dict[str, _File] = {}

    def observe(self, event: Event, moved: Moved) -> Sequence[Answer]:
        """A finding for each file whose count stands at a threshold after this step's edits.

        The edits of a step come after its movement: they are the first of the new count.
        """
        if isinstance(event, Change):
            return ()
        answers = list(self._move(moved))
        for edit in event.edits:
            if edit.writer is not Writer.WORKER:
                self._learn(edit)
        for edit in _own(event).values():
            answers.extend(self._take(edit, event.number))
        return answers

    def restart(self) -> None:
        """Empty the counts. What the files contain stays known."""
        for file in self._files.values():
            file.forget_edits()

    def _move(self, moved: Moved) -> Iterator[Answer]:
        resets = self._settings.movement_resets and bool(moved.kinds & _RESETS)
        if not resets and Movement.CHECK_PASSED not in moved.kinds:
            return
        for path, file in self._files.items():
            if self._settings.grade(file.count) is not None:
                yield Clear(key=_key(path))
            if resets:
                file.forget_edits()

    def _learn(self, edit: Edit) -> None:
        """Another's edit counts for nothing, and pushes no file of the worker's out."""
        file = self._files.get(edit.path)
        if file is None and len(self._files) < MAX_FILES:
            file = self._files[edit.path] = _File()
        if file is not None:
            file.know(_content(edit))

    def _take(self, edit: Edit, step: int) -> Iterator[Answer]:
        file = self._files.get(edit.path) or _File()
        counted = file.take(edit, step, self._settings.return_weight)
        dropped = remember(self._files, edit.path, file, MAX_FILES)
        if dropped is not None:
            yield Clear(key=_key(dropped), resolution=Resolution.RESTARTED)
        severity = self._settings.grade(file.count)
        if counted and severity is not None:
            yield Finding(
                key=_key(edit.path),
                severity=severity,
                value=file.count,
                summary=f"{edit.path} changes again and again: {file.count} edits counted",
                evidence=tuple(file.steps),
            )


def _own(step: Step) -> dict[str, Edit]:
    """The worker's edits of a step, the last one of each file."""
    return {edit.path: edit for edit in step.edits if edit.writer is Writer.WORKER}


def _content(edit: Edit) -> str:
    return _GONE if edit.deleted else edit.digest


def _key(path: str) -> AlertKey:
    return AlertKey(rule="repeated_edits", subject=path)
