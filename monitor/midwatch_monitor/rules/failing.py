"""The rules over acts that fail."""

from collections.abc import Sequence
from typing import NamedTuple

from midwatch_monitor.config.rules import BlockedEnvironment, ErrorStreak, SameFailure
from midwatch_monitor.records import Event, Step
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import EvidenceKind, GradedDetector, Recent, RuleAnswer, Seen
from midwatch_monitor.rules.failure import failure_line
from midwatch_monitor.rules.identity import digest, mask_lines
from midwatch_monitor.rules.memory import Memory, remember

_FAILURES = 16
_SUBJECTS = 8
_MAX_STEPS = 12
_BYTE = 0xFF
_STAMP = 0xFFFF
_TOLD = 2_000
"""Characters at the end of an output that are compared as a whole."""
_STALE = 20
"""Steps after which an obstacle that was not met again is forgotten."""


class ErrorStreakDetector(GradedDetector):
    """How many of the last steps of work failed, each in whatever way."""

    __slots__ = ("_recent", "_window")
    rule = "error_streak"
    evidence = EvidenceKind.FAILURE
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: ErrorStreak) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._recent = Recent(settings.window)

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """A finding while enough of the window failed."""
        recent, act = self._recent, seen.act
        count = recent.add(seen.place, act.number) if act.error else recent.count(seen.place)
        if self.rests(count):
            return ()
        return self.find(count, f"{count} of the last {self._window} steps failed", recent.steps)

    @property
    def awake(self) -> bool:
        """While it stands, any step may end it."""
        return self.stands

    def restart(self) -> None:
        super().restart()
        self._recent.clear()


class _Outlived(NamedTuple):
    """What one failure has outlived, small enough for one number of the memory."""

    changes: int = 0
    """How many changes."""
    idle: int = 0
    """Of these, those of the same file as before, after which nothing else was told either."""
    stamp: int = 0
    """How many steps had changed files when it last came."""

    @classmethod
    def read(cls, number: int) -> "_Outlived":
        return cls(number >> 24, number >> 16 & _BYTE, number & _STAMP)

    @property
    def written(self) -> int:
        return min(self.changes, _BYTE) << 24 | min(self.idle, _BYTE) << 16 | self.stamp


class SameFailureDetector(GradedDetector):
    """The same failure comes again after something was changed, each time in another way perhaps.

    A failure is known by what its output tells of it, so that one test less that fails is another.
    As long as the changes go to different files, or something else in the output moves, the worker
    finds out more: such a change counts for the notice, and half for what is above.
    """

    __slots__ = ("_action", "_edited", "_known", "_steps", "_told")
    rule = "same_failure"
    evidence = EvidenceKind.FAILURE
    hears = Facet.FAILURE | Facet.MOVED | Facet.EDIT
    windowed = True

    def __init__(self, settings: SameFailure) -> None:
        super().__init__(settings)
        self._action = 0
        self._edited = ""
        """The file that was changed last."""
        self._forget()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """A finding while a failure has outlived enough changes."""
        act = seen.act
        answers: Sequence[RuleAnswer] = ()
        if act.failure and (act.shell or not act.edits) and isinstance(event, Step):
            answers = self._take_failure(event, seen)
        elif act.failed is False and act.action == self._action:
            self._forget()
            answers = self.clear()
        if act.edits:
            self._edited = act.edits[-1].path
        return answers

    def _take_failure(self, event: Step, seen: Seen) -> Sequence[RuleAnswer]:
        failure, stamp = seen.act.failure, seen.changes & _STAMP
        number = self._known.get(failure)
        known = _Outlived(stamp=stamp) if number is None else _Outlived.read(number)
        if known.stamp != stamp:
            idle = known.idle + self._idle(failure, digest(mask_lines(event.output[-_TOLD:])))
            known = _Outlived(known.changes + 1, idle, stamp)
        self._known.put(failure, known.written)
        if known.changes:
            self._steps = (*self._steps, seen.act.number)[-_MAX_STEPS:]
        value = max(known.idle, known.changes // 2, min(known.changes, self._settings.notice_after))
        if self._leaves(seen.act.action, value):
            return ()
        words = mask_lines(failure_line(event.output))
        summary = f"the same failure after {known.changes} more changes: {words}"
        return self.find(value, summary, self._steps, subject=words)

    def _idle(self, failure: int, told: int) -> bool:
        """Whether nothing moved: the same file was changed as before, and all is told as before."""
        edited, before = self._told.get(failure, ("", told))
        remember(self._told, failure, (self._edited, told), _SUBJECTS)
        return told == before and edited in ("", self._edited)

    def _leaves(self, action: int, value: int) -> bool:
        """Whether a failure leaves all as it is: another command's new one does not end the old."""
        other = action != self._action
        leaves = self.rests(value, about="" if other else None)
        if not leaves or not self.stands:
            self._action = action
        return leaves

    def _forget(self) -> None:
        self._known = Memory(_FAILURES)
        self._told: dict[int, tuple[str, int]] = {}
        """By failure, which file had been changed when it last came, and all that was told."""
        self._steps: tuple[int, ...] = ()

    def restart(self) -> None:
        super().restart()
        self._forget()


class BlockedEnvironmentDetector(GradedDetector):
    """Something in the surroundings stands in the way: a program, a permission, the network."""

    __slots__ = ("_met",)
    rule = "blocked_environment"
    evidence = EvidenceKind.SURROUNDINGS
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: BlockedEnvironment) -> None:
        super().__init__(settings)
        self._met: dict[str, tuple[int, ...]] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """A finding while the same obstacle was met often enough of late."""
        number, blocked = seen.act.number, seen.act.blocked
        if not blocked:
            subject = self.subject
            forgotten = subject is not None and not self._recent(subject, number)
            return self.clear() if forgotten else ()
        steps = (*self._recent(blocked, number), number)[-_STALE:]
        remember(self._met, blocked, steps, _SUBJECTS)
        if self.rests(len(steps), about=blocked):
            return ()
        summary = f"{blocked}: in the way {len(steps)} times"
        return self.find(len(steps), summary, steps, subject=blocked)

    @property
    def awake(self) -> bool:
        """What stands is forgotten if it is not met again."""
        return self.stands

    def _recent(self, blocked: str, number: int) -> tuple[int, ...]:
        """The steps at which it was met, if the last of them is not long ago."""
        steps = self._met.get(blocked, ())
        return steps if steps and number - steps[-1] < _STALE else ()

    def restart(self) -> None:
        """Forget what was met; where the work goes on it will be met again."""
        super().restart()
        self._met.clear()
