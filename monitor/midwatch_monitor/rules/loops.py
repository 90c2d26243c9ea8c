"""The rules about repeated work."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import Cycle, RedundantSteps, RepeatedCall
from midwatch_monitor.records import Event, Step
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import (
    FULL,
    EvidenceKind,
    GradedDetector,
    Recent,
    Repeat,
    RuleAnswer,
    Seen,
)

_HALF = frozenset({Repeat.VERIFIED, Repeat.LOOKED})


class RedundantStepsDetector(GradedDetector):
    """How many of the last steps of work could not show anything new.

    A step that repeats a result counts as one, a repeated success after a change as half. This
    covers long cycles, and going over the same files again with other steps in between.
    """

    __slots__ = ("_full", "_half", "_window")
    rule = "redundant_steps"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT | Facet.MOVED
    windowed = True

    def __init__(self, settings: RedundantSteps) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._full = Recent(settings.window)
        self._half = Recent(settings.window)

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while enough of the window repeats; improvement restarts the count."""
        if seen.act.better:
            self._clear_memories()
            return self.clear()
        repeat = seen.echo.repeat
        if repeat in _HALF or repeat in FULL:
            counted = self._half if repeat in _HALF else self._full
            counted.add(seen.place, seen.act.number)
        value = self._full.count(seen.place) + self._half.count(seen.place) / 2
        if self.rests(value):
            return ()
        steps = tuple(sorted((*self._full.steps, *self._half.steps)))
        counts = f"{len(steps)} of the last {self._window}"
        return self.find(value, f"repeated steps, nothing new learned ({counts})", steps)

    def _clear_memories(self) -> None:
        self._full.clear()
        self._half.clear()

    def restart(self) -> None:
        super().restart()
        self._clear_memories()


class RepeatedCallDetector(GradedDetector):
    """The same call gives the same result several times in a row."""

    __slots__ = ("_count", "_first", "_place")
    rule = "repeated_call"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT
    windowed = True

    def __init__(self, settings: RepeatedCall) -> None:
        super().__init__(settings)
        self._count = 1
        self._first = 0
        self._place = 0
        """Index among the steps of work of the last call in the row."""

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while there are enough calls in a row; any other call clears it."""
        if not seen.act.work or not isinstance(event, Step):
            return ()
        again = seen.echo.distance == 1 and seen.echo.repeat in FULL
        goes_on = self._place == seen.place - 1
        self._place = seen.place
        if not again or not self._count:
            self._count, self._first = 1, event.number
        elif goes_on:
            self._count += 1
        else:
            self._count, self._first = 2, seen.echo.before
        if self.rests(self._count):
            return ()
        summary = f"{event.tool} gave the same result {self._count} times in a row"
        return self.find(self._count, summary, (self._first, event.number), subject=event.tool)

    @property
    def awake(self) -> bool:
        """While a finding stands, any other call ends it. After a restart, counting begins with the
        next call.
        """
        return super().awake or not self._count

    def restart(self) -> None:
        super().restart()
        self._count = 0


class CycleDetector(GradedDetector):
    """A sequence of steps is repeated with the same results.

    Each step of a cycle repeats an earlier one at the same distance, so a single number covers
    cycles of any period. One other step may interrupt each round.
    """

    __slots__ = ("_longest", "_period", "_place", "_run", "_since_miss")
    rule = "cycle"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT
    windowed = True

    def __init__(self, settings: Cycle) -> None:
        super().__init__(settings)
        self._longest = settings.max_period
        self._place = 0
        """Index among the steps of work of the last one that fitted the cycle."""
        self._reset_counts()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while the cycle continues; the value is the number of rounds."""
        if not seen.act.work:
            return ()
        if not self._continues_cycle(seen):
            return self.clear() if not self._period else ()
        value = 1 + self._run // self._period
        if self.rests(value):
            return ()
        summary = f"the same {self._period} steps ran {value} times with the same results"
        first = max(1, seen.act.number - self._run - self._period + 1)
        return self.find(value, summary, (first, seen.act.number))

    def _continues_cycle(self, seen: Seen) -> bool:
        """Take in one step; return whether it continues a cycle, or may begin one."""
        missed = seen.place - self._place - 1
        if self._period and missed and not self._forgives_gap(missed):
            self._reset_counts()
        distance = seen.echo.distance
        if not 2 <= distance <= self._longest + 1:
            self._period = self._period if self._forgives_gap(missed + 1) else 0
            return False
        self._place = seen.place
        if self._period and abs(distance - self._period) <= 1:
            self._run += 1
            self._since_miss = 1 if missed else self._since_miss + 1
        else:
            self._period, self._run, self._since_miss = distance, 1, 1
        return True

    def _forgives_gap(self, missed: int) -> bool:
        """Whether a gap is forgiven: one step, if a full round has passed since the last gap."""
        return missed == 1 and 0 < self._period <= self._since_miss

    def _reset_counts(self) -> None:
        self._period = self._run = self._since_miss = 0

    def restart(self) -> None:
        super().restart()
        self._reset_counts()
