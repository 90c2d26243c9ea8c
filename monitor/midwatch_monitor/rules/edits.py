"""The rules about changes to files, observed by content hashes."""

from collections.abc import Iterator, Sequence

from midwatch_monitor.config.rules import RepeatedEdits, RevertChurn
from midwatch_monitor.records import AlertKey, Event, Finding, Movement, Resolution
from midwatch_monitor.rules.act import Act, CheckKind, Facet
from midwatch_monitor.rules.detector import (
    BETTER,
    Clear,
    Detector,
    EvidenceKind,
    GradedDetector,
    Repeat,
    RuleAnswer,
    Seen,
)
from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.memory import EditEffect, Memory, remember

MAX_FILES = 16
"""Number of files tracked at a time; the least recently edited one is dropped."""
_MAX_STEPS = 12
_FAILURES = 16
_MADE = 32
"""Number of files whose creator is remembered."""


class _File:
    """The edits of one file since a check last passed, or failed in fewer places."""

    __slots__ = ("checked", "count", "made", "steps", "untold")

    def __init__(self, made: bool) -> None:
        self.made = made
        """Whether the worker created it, such as a reproduction or a script to try something."""
        self.count = 0
        self.untold = 0
        """Edits that changed existing content since a check last showed anything new."""
        self.checked = False
        """Whether a check since then showed nothing new."""
        self.steps: tuple[int, ...] = ()


class RepeatedEditsDetector(Detector):
    """Counts the worker's edits of each file that no check has confirmed.

    A check that passes, or fails in fewer places, confirms all earlier edits. Two kinds of edits
    count only towards a notice: those before a check that failed in a new way, which is news, and
    those that only add to a file. The worker's own claims do not count. In a file that the worker
    created, two edits count as one.
    """

    __slots__ = ("_failures", "_files", "_lowest", "_made", "_settings")
    rule = "repeated_edits"
    evidence = EvidenceKind.EDITS
    hears = Facet.EDIT | Facet.CHECK | Facet.MOVED
    windowed = True

    def __init__(self, settings: RepeatedEdits) -> None:
        self._settings = settings
        self._lowest = settings.lowest
        self._files: dict[str, _File] = {}
        self._failures = Memory(_FAILURES)
        self._made = Memory(_MADE)

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding for each file whose count reaches a threshold with this step's edits.

        A step's edits come after its check, so they start the new count.
        """
        answers: list[RuleAnswer] = []
        if seen.act.check is not CheckKind.NONE or seen.moved.kinds:
            answers += self._check_files(seen)
        for touch in seen.moved.touches:
            made = self._creates_file(touch.path, seen.act)
            if not touch.same:
                answers += self._count_edit(touch, seen.act, made)
        return answers

    def restart(self) -> None:
        self._files.clear()

    def _check_files(self, seen: Seen) -> Iterator[RuleAnswer]:
        better = bool(seen.moved.kinds & BETTER)
        news = self._tells_new(seen)
        passes = better or (bool(news) and seen.act.failed is False)
        resets = self._settings.movement_resets
        for path in self._files_to_check(seen, whole=better):
            file = self._files[path]
            before = self._settings.grade(self._count_to_grade(file))
            file.checked = file.checked or news is False
            if resets and news:
                file.untold, file.checked = 0, False
            if resets and passes:
                del self._files[path]
            over = passes if resets else Movement.CHECK_PASSED in seen.moved.kinds
            if before and (over or self._settings.grade(self._count_to_grade(file)) is not before):
                yield Clear(key=_alert_key(path))

    def _files_to_check(self, seen: Seen, *, whole: bool) -> list[str]:
        """Return the files that a check covers.

        A program that writes files may itself be the edit, so it does not check what it wrote.
        """
        writes = seen.act.check is CheckKind.RUN and seen.act.changes and not whole
        own = {touch.path for touch in seen.moved.touches} if writes else frozenset[str]()
        return [path for path in self._files if path not in own]

    def _tells_new(self, seen: Seen) -> bool | None:
        """Whether a check showed something new; `None` if there was no check."""
        act = seen.act
        if act.check is CheckKind.NONE:
            return None
        if act.failed:
            return not (act.failure and self._failures.put(act.failure, 1) is not None)
        passed = act.failed is False and act.check is CheckKind.TESTS
        return passed or seen.echo.repeat is Repeat.NONE

    def _count_to_grade(self, file: _File) -> int:
        """The value to compare with thresholds; edits that must not alarm count up to a notice."""
        value = max(file.untold, min(file.count, self._settings.notice_after))
        return value // 2 if file.made and self._settings.movement_resets else value

    def _creates_file(self, path: str, act: Act) -> bool:
        """Whether the worker created a file, judging by its first known edit."""
        key = digest(path)
        known = self._made.get(key)
        if known is None:
            known = int(act.creates)
            self._made.put(key, known)
        return known == 1

    def _count_edit(self, touch: EditEffect, act: Act, made: bool) -> Sequence[RuleAnswer]:
        path = touch.path
        file = self._files.pop(path, None) or _File(made)
        weight = self._settings.return_weight if touch.back else 1
        file.count += weight
        if not (act.adds and self._settings.movement_resets):
            file.untold += weight
        file.steps = (*file.steps[1 - _MAX_STEPS :], act.number)
        self._files[path] = file
        gone = self._drop_oldest() if len(self._files) > MAX_FILES else ()
        value = self._count_to_grade(file)
        severity = self._settings.grade(value) if value >= self._lowest else None
        if severity is None:
            return gone
        finding = Finding(
            key=_alert_key(path),
            severity=severity,
            value=value,
            summary=f"{path} keeps changing: {_describe_count(file)}",
            evidence=file.steps,
        )
        return (*gone, finding)

    def _drop_oldest(self) -> Sequence[RuleAnswer]:
        """Drop the least recently edited file; its finding can no longer be checked."""
        oldest = next(iter(self._files))
        found = self._count_to_grade(self._files.pop(oldest)) >= self._lowest
        return (Clear(key=_alert_key(oldest), resolution=Resolution.RESTARTED),) if found else ()


class RevertChurnDetector(GradedDetector):
    """One file repeatedly returns to an earlier content.

    Going back once is cleaning up; going back, trying and going back again gets nowhere.
    """

    __slots__ = ("_returns", "_window")
    rule = "revert_churn"
    evidence = EvidenceKind.EDITS
    hears = Facet.RETURN
    windowed = True

    def __init__(self, settings: RevertChurn) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._returns: dict[str, tuple[int, ...]] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while one file has gone back often enough within the window."""
        touched = [touch.path for touch in seen.moved.touches if touch.back]
        back = dict.fromkeys((*seen.act.reverted, *touched))
        answers = [answer for path in back for answer in self._went_back(path, seen.act.number)]
        return answers or self._clear_if_past(seen.act.number)

    def _went_back(self, path: str, number: int) -> Sequence[RuleAnswer]:
        steps = (*self._recent_returns(path, number), number)
        remember(self._returns, path, steps, MAX_FILES)
        if self.rests(len(steps), about=path):
            return ()
        times = f"{len(steps)} times in {self._window} steps"
        summary = f"{path} went back to an earlier version {times}"
        return self.find(len(steps), summary, steps, subject=path)

    def _clear_if_past(self, number: int) -> Sequence[RuleAnswer]:
        """Clear the standing finding if its last return has left the window."""
        path = self.subject
        return () if path is None or self._recent_returns(path, number) else self.clear()

    def _recent_returns(self, path: str, number: int) -> tuple[int, ...]:
        steps = self._returns.get(path, ())
        return tuple(each for each in steps if number - each < self._window)

    def restart(self) -> None:
        super().restart()
        self._returns.clear()


def _describe_count(file: _File) -> str:
    if file.untold < file.count:
        return f"{file.count} edits counted"
    between = "checks show nothing new" if file.checked else "no check in between"
    return f"{file.count} edits counted, {between}"


def _alert_key(path: str) -> AlertKey:
    return AlertKey(rule="repeated_edits", subject=path)
