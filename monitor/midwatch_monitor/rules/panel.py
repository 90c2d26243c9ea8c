"""The detectors of one attempt: who hears what, with the thresholds of the tool, and who broke."""

from collections.abc import Sequence
from functools import lru_cache

from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.records import Change, Course, Event, Fault
from midwatch_monitor.rules import DETECTORS, Answer, Detector, Seen
from midwatch_monitor.rules.overrides import ToolDetector, rule_settings

MAX_PIVOTS = 2
"""Pivots that end windows in one plan step: who pivots more often only goes round and round."""


class Windows:
    """Follows plan step, revision and pivots, and answers whether an event ends the windows."""

    __slots__ = ("_pivots", "_plan_step", "_revision")

    def __init__(self) -> None:
        self._plan_step: int | None = None
        self._revision = 0
        self._pivots = 0

    def restart(self, event: Event) -> bool:
        """Whether what was counted so far belongs to something that is over.

        The checkpoint of a pivot that ends the old window belongs to no window.
        """
        if isinstance(event, Change):
            moved_on = self._changed(event)
        elif event.checkpoint is None:
            return False
        else:
            before, self._plan_step = self._plan_step, event.checkpoint.plan_step
            moved_on = before is not None and before != event.checkpoint.plan_step
            if not moved_on and event.checkpoint.decision is Course.PIVOT:
                self._pivots += 1
                return self._pivots <= MAX_PIVOTS
        self._pivots = 0 if moved_on else self._pivots
        return moved_on

    def _changed(self, change: Change) -> bool:
        before = (self._plan_step, self._revision)
        self._plan_step = self._plan_step if change.plan_step is None else change.plan_step
        self._revision = self._revision if change.revision is None else change.revision
        return (self._plan_step, self._revision) != before


class Roster(dict[int, tuple[int, ...]]):
    """By facets, the places of a panel that hear one of them: the same for panels of like rules."""

    def __init__(self, hears: Sequence[int]) -> None:
        super().__init__()
        self._hears = hears

    def __missing__(self, facets: int) -> tuple[int, ...]:
        found = tuple(place for place, each in enumerate(self._hears) if each & facets)
        self[facets] = found
        return found


@lru_cache(maxsize=64)
def _roster(hears: tuple[int, ...]) -> Roster:
    return Roster(hears)


class Panel:
    """Asks the detectors that hear what an event is, and those that are awake."""

    __slots__ = ("_awake", "_detectors", "_roster", "broken")

    def __init__(self, rules: Rules) -> None:
        self._awake: Sequence[Detector] = ()
        self.broken: tuple[Fault, ...] = ()
        """The rules that broke since this was last emptied."""
        self._seat(
            tuple(
                _detector(name, settings)
                for name, settings in rule_settings(rules).items()
                if settings.enabled and name in DETECTORS
            )
        )

    def _seat(self, detectors: tuple[Detector, ...]) -> None:
        self._detectors = detectors
        self._roster = _roster(tuple(each.hears for each in detectors))

    def asked(self, facets: int) -> Sequence[Detector]:
        """The detectors that an event is to be shown that is all this (`Facet`)."""
        places, awake = self._roster[facets], self._awake
        if not places:
            return awake
        detectors = self._detectors
        hearing = [detectors[place] for place in places]
        return hearing + [each for each in awake if not each.hears & facets] if awake else hearing

    def ask(self, asked: Sequence[Detector], event: Event, seen: Seen) -> Sequence[Answer]:
        """What they say of it."""
        awake: list[Detector] = []
        answers: list[Answer] = []
        for detector in asked:
            try:
                answers += detector.observe(event, seen)
            except Exception as error:  # a broken rule is off and shown; all else goes on
                self._drop(detector, error)
                continue
            if detector.awake:
                awake.append(detector)
        self._awake = awake
        return answers

    def restart(self) -> Sequence[str]:
        """Empty all windows; answers the names of the rules that have one."""
        windowed = [each for each in self._detectors if each.windowed]
        for detector in windowed:
            try:
                detector.restart()
            except Exception as error:  # as above
                self._drop(detector, error)
        self._awake = tuple(each for each in self._detectors if each.awake)
        return [each.rule for each in windowed]

    def _drop(self, detector: Detector, error: Exception) -> None:
        self._seat(tuple(each for each in self._detectors if each is not detector))
        fault = Fault(part=detector.rule, error=f"{type(error).__name__}: {error}")
        self.broken = (*self.broken, fault)


def _detector(name: str, settings: RuleSettings) -> Detector:
    detector = DETECTORS[name]
    return ToolDetector(detector, settings) if settings.tools else detector(settings)
