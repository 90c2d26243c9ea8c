"""The rules over acts that fail."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import BlockedEnvironment, ErrorStreak, SameFailure
from midwatch_monitor.records import Event, Step
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import Answer, Evidence, GradedDetector, Recent, Seen
from midwatch_monitor.rules.failure import failure_line
from midwatch_monitor.rules.identity import mask_lines
from midwatch_monitor.rules.memory import Memory, remember

_FAILURES = 16
_SUBJECTS = 8
_MAX_STEPS = 12
_STALE = 20
"""Steps after which an obstacle that was not met again is forgotten."""


class ErrorStreakDetector(GradedDetector):
    """How many of the last steps of work failed, each in whatever way."""

    __slots__ = ("_recent", "_window")
    rule = "error_streak"
    evidence = Evidence.FAILURE
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: ErrorStreak) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._recent = Recent(settings.window)

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
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


class SameFailureDetector(GradedDetector):
    """The same failure comes again after something was changed, each time in another way perhaps.

    A failure is known by what its output tells of it, so that one test less that fails is another.
    """

    __slots__ = ("_action", "_known", "_steps")
    rule = "same_failure"
    evidence = Evidence.FAILURE
    hears = Facet.FAILURE | Facet.MOVED
    windowed = True

    def __init__(self, settings: SameFailure) -> None:
        super().__init__(settings)
        self._action = 0
        self._forget()

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while a failure has outlived enough changes."""
        act = seen.act
        if act.failure and (act.shell or not act.edits):
            return self._failed(event, seen)
        if act.failed is False and act.action == self._action:
            self._forget()
            return self.clear()
        return ()

    def _failed(self, event: Event, seen: Seen) -> Sequence[Answer]:
        failure, changes = seen.act.failure, seen.changes & 0xFFFF
        packed = self._known.get(failure)
        outlived, stamp = (0, changes) if packed is None else divmod(packed, 1 << 16)
        if stamp != changes:
            outlived += 1
        self._known.put(failure, outlived << 16 | changes)
        if outlived:
            self._steps = (*self._steps, seen.act.number)[-_MAX_STEPS:]
        if self._leaves(seen.act.action, outlived) or not isinstance(event, Step):
            return ()
        words = mask_lines(failure_line(event.output))
        summary = f"the same failure after {outlived} more changes: {words}"
        return self.find(outlived, summary, self._steps, subject=words)

    def _leaves(self, action: int, outlived: int) -> bool:
        """Whether a failure leaves all as it is: another command's new one does not end the old."""
        other = action != self._action
        leaves = self.rests(outlived, about="" if other else None)
        if not leaves or not self.stands:
            self._action = action
        return leaves

    def _forget(self) -> None:
        self._known = Memory(_FAILURES)
        self._steps: tuple[int, ...] = ()

    def restart(self) -> None:
        super().restart()
        self._forget()


class BlockedEnvironmentDetector(GradedDetector):
    """Something in the surroundings stands in the way: a program, a permission, the network."""

    __slots__ = ("_met",)
    rule = "blocked_environment"
    evidence = Evidence.SURROUNDINGS
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: BlockedEnvironment) -> None:
        super().__init__(settings)
        self._met: dict[str, tuple[int, ...]] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
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
