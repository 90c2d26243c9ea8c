"""The detectors of one attempt: who hears what, with the thresholds of the tool, and who broke."""

from collections.abc import Sequence
from functools import lru_cache

from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.records import Change, Course, Event, Fault
from midwatch_monitor.rules import DETECTORS, Answer, Detector, Seen
from midwatch_monitor.rules.tuning import ToolTuning, TunedDetector, rule_settings

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
        if moved_on:
            self._pivots = 0
            return True
        return self._pivots_again(event)

    def _pivots_again(self, event: Event) -> bool:
        if isinstance(event, Change) or event.checkpoint is None:
            return False
        if event.checkpoint.decision is not Course.PIVOT:
            return False
        self._pivots += 1
        return self._pivots <= MAX_PIVOTS

    def _changed(self, change: Change) -> bool:
        restart = False
        if change.plan_step is not None and change.plan_step != self._plan_step:
            self._plan_step = change.plan_step
            restart = True
        if change.revision is not None and change.revision != self._revision:
            self._revision = change.revision
            restart = True
        return restart


Broken = tuple[str, Fault]


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

    __slots__ = ("_awake", "_detectors", "_names", "_roster", "broken")

    def __init__(self, rules: Rules) -> None:
        settings = rule_settings(rules)
        names = tuple(name for name in DETECTORS if settings[name].enabled)
        self._awake: Sequence[Detector] = ()
        self.broken: tuple[Broken, ...] = ()
        """The rules that broke since this was last emptied."""
        self._seat(names, tuple(_detector(name, rules, settings[name]) for name in names))

    def _seat(self, names: tuple[str, ...], detectors: tuple[Detector, ...]) -> None:
        self._names = _shared(names)
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
                said = detector.observe(event, seen)
            except Exception as error:  # a broken rule is off and shown; all else goes on
                self._drop(detector, error)
                continue
            if said:
                answers += said
            if detector.awake:
                awake.append(detector)
        self._awake = awake
        return answers

    def restart(self) -> Sequence[str]:
        """Empty all windows; answers the names of the rules that have one."""
        pairs = zip(self._names, self._detectors, strict=True)
        windowed = [(name, each) for name, each in pairs if each.windowed]
        for _, detector in windowed:
            try:
                detector.restart()
            except Exception as error:  # as above
                self._drop(detector, error)
        self._awake = tuple(each for each in self._detectors if each.awake)
        return [name for name, _ in windowed]

    def _drop(self, detector: Detector, error: Exception) -> None:
        gone = self._detectors.index(detector)
        name = self._names[gone]
        kept = [place for place in range(len(self._names)) if place != gone]
        self._seat(
            tuple(self._names[place] for place in kept),
            tuple(self._detectors[place] for place in kept),
        )
        fault = Fault(part=name, error=f"{type(error).__name__}: {error}")
        self.broken = (*self.broken, (name, fault))


def _detector(name: str, rules: Rules, settings: RuleSettings) -> Detector:
    if not settings.tools:
        return DETECTORS[name](rules)
    tuning = ToolTuning(settings)
    return TunedDetector(DETECTORS[name](rules.model_copy(update={name: tuning.widest})), tuning)


@lru_cache(maxsize=64)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """One tuple for all panels of the same rules."""
    return names
