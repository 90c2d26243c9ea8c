"""The rules over files that change, as observed by the digest of their content."""

from collections.abc import Iterator, Sequence

from midwatch_monitor.config.rules import RepeatedEdits, RevertChurn
from midwatch_monitor.records import AlertKey, Event, Finding, Movement, Resolution
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import (
    BETTER,
    Answer,
    Clear,
    Detector,
    Evidence,
    GradedDetector,
    Moved,
    Seen,
)
from midwatch_monitor.rules.memory import Touch, remember

MAX_FILES = 16
"""Files that are followed at a time; the one least recently edited is dropped."""
_MAX_STEPS = 12


class _File:
    """The edits of one file in this window."""

    __slots__ = ("count", "steps")

    def __init__(self) -> None:
        self.count = 0
        self.steps: tuple[int, ...] = ()


class RepeatedEditsDetector(Detector):
    """Counts the worker's own edits of each file. What a worker says it did counts for nothing."""

    __slots__ = ("_files", "_lowest", "_settings")
    rule = "repeated_edits"
    evidence = Evidence.EDITS
    hears = Facet.EDIT | Facet.MOVED
    windowed = True

    def __init__(self, settings: RepeatedEdits) -> None:
        self._settings = settings
        self._lowest = settings.lowest
        self._files: dict[str, _File] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding for each file whose count stands at a threshold after this step's edits.

        The edits of a step come after its movement: they are the first of the new count.
        """
        moved = seen.moved
        answers = list(self._move(moved)) if moved.kinds and self._files else []
        for touch in moved.touches:
            if not touch.same:
                answers += self._take(touch, seen.act.number)
        return answers

    def restart(self) -> None:
        self._files.clear()

    def _move(self, moved: Moved) -> Iterator[Answer]:
        resets = self._settings.movement_resets and bool(moved.kinds & BETTER)
        if not resets and Movement.CHECK_PASSED not in moved.kinds:
            return
        for path, file in self._files.items():
            if self._settings.grade(file.count) is not None:
                yield Clear(key=_key(path))
        if resets:
            self._files.clear()

    def _take(self, touch: Touch, step: int) -> Sequence[Answer]:
        path = touch.path
        file = self._files.pop(path, None) or _File()
        file.count += self._settings.return_weight if touch.back else 1
        file.steps = (*file.steps[1 - _MAX_STEPS :], step)
        self._files[path] = file
        gone = self._drop() if len(self._files) > MAX_FILES else ()
        severity = self._settings.grade(file.count) if file.count >= self._lowest else None
        if severity is None:
            return gone
        finding = Finding(
            key=_key(path),
            severity=severity,
            value=file.count,
            summary=f"{path} changes again and again: {file.count} edits counted",
            evidence=file.steps,
        )
        return (*gone, finding)

    def _drop(self) -> Sequence[Answer]:
        """Forget the file least recently edited: what was found of it is not looked at again."""
        oldest = next(iter(self._files))
        found = self._files.pop(oldest).count >= self._lowest
        return (Clear(key=_key(oldest), resolution=Resolution.RESTARTED),) if found else ()


class RevertChurnDetector(GradedDetector):
    """One file goes back, again and again, to a content that it had before.

    Once is how one cleans up; to go back, to try, and to go back again is to get nowhere.
    """

    __slots__ = ("_returns", "_window")
    rule = "revert_churn"
    evidence = Evidence.EDITS
    hears = Facet.RETURN
    windowed = True

    def __init__(self, settings: RevertChurn) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._returns: dict[str, tuple[int, ...]] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while one file went back often enough in the last steps."""
        touched = [touch.path for touch in seen.moved.touches if touch.back]
        back = dict.fromkeys((*seen.act.reverted, *touched))
        answers = [answer for path in back for answer in self._went_back(path, seen.act.number)]
        return answers or self._look(seen.act.number)

    @property
    def awake(self) -> bool:
        """What stands is forgotten after a while."""
        return self.stands

    def _went_back(self, path: str, number: int) -> Sequence[Answer]:
        steps = (*self._recent(path, number), number)
        remember(self._returns, path, steps, MAX_FILES)
        if self.rests(len(steps), about=path):
            return ()
        summary = f"{path} went back to what it was {len(steps)} times in {self._window} steps"
        return self.find(len(steps), summary, steps, subject=path)

    def _look(self, number: int) -> Sequence[Answer]:
        """Whether what stood is so old by now that it no longer does."""
        path = self.subject
        return () if path is None or self._recent(path, number) else self.clear()

    def _recent(self, path: str, number: int) -> tuple[int, ...]:
        steps = self._returns.get(path, ())
        return tuple(each for each in steps if number - each < self._window)

    def restart(self) -> None:
        super().restart()
        self._returns.clear()


def _key(path: str) -> AlertKey:
    return AlertKey(rule="repeated_edits", subject=path)
